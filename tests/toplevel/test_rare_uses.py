"""Rare uses of tapes, functions, datasets and checkpoints, as in TensorFlow."""

import collections
import pathlib
import time

import numpy as np
import pytest

import retrograde as tf


def test_timestamp_in_a_function_is_the_time_of_the_call():
    f = tf.function(tf.timestamp)
    before = f().numpy()
    time.sleep(0.01)

    assert f().numpy() > before


def test_checkpoints_are_written_in_each_call_of_a_function(tmp_path):
    v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(v=v)
    path = str(tmp_path / "checkpoint")

    @tf.function
    def add_and_write():
        v.assign_add(1.0)
        checkpoint.write(path)

    for expected in (2.0, 3.0, 4.0):
        add_and_write()
        read = tf.Variable(0.0)
        tf.train.Checkpoint(v=read).read(path)
        assert read.numpy() == expected


def test_the_path_of_a_checkpoint_can_be_a_tensor(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    path = str(tmp_path / "checkpoint")

    assert checkpoint.write(tf.constant(path)) == path
    checkpoint.read(tf.constant(path)).assert_consumed()
    checkpoint.sync()


def test_primals_are_distinct():
    x = tf.constant(-2.0)

    with pytest.raises(ValueError, match="A tensor is a primal several times"):
        tf.autodiff.ForwardAccumulator([x, x], [tf.constant(1.0), tf.constant(2.0)])


def test_watched_variables_are_in_the_order_of_creation():
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        b * b + a * a

    assert [v.numpy() for v in tape.watched_variables()] == [1.0, 2.0]


@pytest.mark.parametrize("pfor", [True, False])
def test_the_jacobian_of_an_empty_target_is_empty(pfor):
    v = tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * tf.zeros([0, 7])

    assert tape.jacobian(y, v, experimental_use_pfor=pfor).shape == (0, 7)


def test_logm_preserves_the_random_state():
    np.random.seed(3)
    expected = np.random.rand()
    np.random.seed(3)
    tf.linalg.logm(np.random.RandomState(0).rand(8, 8).astype(complex))

    assert np.random.rand() == expected


def test_nest_flattens_views_of_dicts():
    values = collections.OrderedDict(b=1, a=2)

    assert tf.nest.flatten(values.values()) == [1, 2]
    assert tf.nest.flatten(values.keys()) == ["b", "a"]


def test_named_tuples_with_equal_names_and_fields_have_the_same_structure():
    first = collections.namedtuple("Point", ["x", "y"])
    second = collections.namedtuple("Point", ["x", "y"])

    tf.nest.assert_same_structure(first(1, 2), second(3, 4))
    with pytest.raises(TypeError, match="the types Point and Pair differ"):
        tf.nest.assert_same_structure(first(1, 2), collections.namedtuple("Pair", ["x", "y"])(1, 2))


def test_datasets_read_paths(tmp_path: pathlib.Path):
    path = tmp_path / "lines.txt"
    path.write_text("ab\ncd\n")
    lines = tf.data.TextLineDataset

    assert list(lines(path).as_numpy_iterator()) == [b"ab", b"cd"]
    assert len(list(lines([path, path]))) == 4
    assert list(tf.data.FixedLengthRecordDataset(path, 3).as_numpy_iterator()) == [b"ab\n", b"cd\n"]


def test_minus_one_in_padded_shapes_is_an_unknown_size():
    data = tf.data.Dataset.range(1, 4).map(lambda x: tf.fill([x], x))

    batches = [x.numpy().tolist() for x in data.padded_batch(2, padded_shapes=[-1])]
    assert batches == [[[1, 0], [2, 2]], [[3, 3, 3]]]


def test_assertions_accept_composites():
    case = tf.test.TestCase()
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])

    case.assertAllEqual(x, [[1.0, 2.0], [3.0]])
    case.assertAllEqual(tf.ragged.constant([["a"]]), [["a"]])
    case.assertAllClose(x, [[1.0, 2.0 + 1e-9], [3.0]])
    case.assertAllEqual(case.evaluate(x), x)
    with pytest.raises(AssertionError):
        case.assertAllEqual(x, [[1.0], [2.0, 3.0]])
    with pytest.raises(AssertionError):
        case.assertAllClose(x, [[1.0, 2.5], [3.0]])
    case.assertAllEqual(tf.sparse.from_dense([[1, 0]]), [[1, 0]])
