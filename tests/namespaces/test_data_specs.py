"""tf.data: specs, cardinality, options and iterators."""

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.datasets import INT64, Dataset, to_list
from tests.namespaces.helpers import assert_raises

SPECS = {
    "range": (lambda d: d, INT64, 5),
    "batch": (lambda d: d.batch(2), tf.TensorSpec([None], tf.int64), 3),
    "batch_drop": (lambda d: d.batch(2, True), tf.TensorSpec([2], tf.int64), 2),
    "map": (lambda d: d.map(lambda x: [tf.cast(x, tf.float32)]), (tf.TensorSpec([]),), 5),
    "map_batches": (
        lambda d: d.batch(2).map(lambda x: x[:, None]),
        tf.TensorSpec([None, 1], tf.int64),
        3,
    ),
    "map_lengths": (lambda d: d.map(tf.range), tf.TensorSpec([None], tf.int64), 5),
    "padded": (
        lambda d: d.map(tf.range).padded_batch(2),
        tf.TensorSpec([None, None], tf.int64),
        3,
    ),
    "filter": (lambda d: d.filter(lambda x: x > 1), INT64, -2),
    "flat_map": (lambda d: d.flat_map(Dataset.range), INT64, -2),
    "interleave": (lambda d: d.interleave(lambda _x: Dataset.range(3)), INT64, -2),
    "unbatch": (lambda d: d.batch(2).unbatch(), INT64, -2),
    "unbatch_full": (lambda d: d.batch(2, True).unbatch(), INT64, 4),
    "unbatch_infinite": (lambda d: d.batch(2, True).repeat().unbatch(), INT64, -1),
    "rebatch": (lambda d: d.batch(2).rebatch(3, True), tf.TensorSpec([3], tf.int64), -2),
    "rebatch_evenly": (
        lambda d: d.batch(4, True).rebatch(2),
        tf.TensorSpec([2], tf.int64),
        -2,
    ),
    "flat_map_of_dicts": (
        lambda d: d.batch(2).map(lambda x: {"a": x}).flat_map(Dataset.from_tensors),
        {"a": tf.TensorSpec([None], tf.int64)},
        -2,
    ),
    "ragged_rows_unbatched": (
        lambda _d: Dataset.from_tensor_slices(tf.ragged.constant([[1, 2], [3]])).unbatch(),
        tf.TensorSpec([], tf.int32),
        -2,
    ),
    "rebatch_cyclic": (
        lambda d: d.batch(2).rebatch([1, 2], True),
        tf.TensorSpec([None], tf.int64),
        -2,
    ),
    "window": (lambda d: d.window(2), tf.data.DatasetSpec(INT64), 3),
    "scan": (lambda d: d.scan(np.int64(0), lambda s, x: (s, x)), INT64, 5),
    "enumerate": (lambda d: d.enumerate(), (INT64, INT64), 5),
    "ignore_errors": (lambda d: d.ignore_errors(), INT64, -2),
    "concatenate": (lambda d: d.concatenate(d.repeat()), INT64, -1),
    "repeat": (lambda d: d.repeat(), INT64, -1),
    "repeat_empty": (lambda d: d.take(0).repeat(), INT64, 0),
    "random": (lambda _d: Dataset.random(1), INT64, -1),
    "counter": (lambda _d: Dataset.counter(dtype=tf.int32), tf.TensorSpec([], tf.int32), -1),
    "skip": (lambda d: d.skip(9), INT64, 0),
    "shuffle": (lambda d: d.shuffle(3).cache().prefetch(1), INT64, 5),
    "asserted": (
        lambda d: d.filter(lambda x: x < 9).apply(tf.data.experimental.assert_cardinality(5)),
        INT64,
        5,
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_specs_and_cardinalities_match_tensorflow(name):
    make, spec, count = SPECS[name]
    dataset = make(Dataset.range(5))
    assert dataset.element_spec == spec
    assert int(dataset.cardinality()) == int(tf.data.experimental.cardinality(dataset)) == count


CALLS = {
    "numbers": (lambda d, f: d.map(f), lambda x: x + 1, 1),
    "tuples": (lambda d, f: d.enumerate().map(f), lambda i, x: {"a": i * x}, 1),
    "fixed_batches": (lambda d, f: d.batch(2, True).map(f), lambda x: x[:, None], 1),
    "unknown_batch_size": (lambda d, f: d.batch(2).map(f), lambda x: x[:, None], 2),
    "value_dependent": (lambda d, f: d.map(f), lambda x: tf.zeros([int(x)]), 2),
    "lengths": (lambda d, f: d.map(f), tf.range, 2),
    "numpy": (lambda d, f: d.map(f), lambda x: np.zeros(x.numpy()), 2),
    "numpy_function": (lambda d, f: d.map(f), lambda x: tf.numpy_function(np.ones, [x], "f8"), 2),
    "masked": (lambda d, f: d.map(f), lambda x: tf.boolean_mask([1, 2], [x > 0, True]), 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_spec_inference_calls_functions_as_little_as_possible(name):
    calls = []
    make, function, expected = CALLS[name]
    dataset = make(Dataset.range(5), lambda *x: calls.append(1) or function(*x))
    assert calls == []
    spec = dataset.element_spec
    assert dataset.element_spec == spec
    assert len(calls) == expected
    for element in dataset:
        assert all(
            s.is_compatible_with(x)
            for s, x in zip(tf.nest.flatten(spec), tf.nest.flatten(element), strict=True)
        )


EMPTY = {
    "map": (lambda d: d.map(lambda x: x + 1), INT64),
    "ragged": (
        lambda d: d.map(tf.range).ragged_batch(2).map(lambda x: x.to_tensor()),
        tf.TensorSpec([None, None], tf.int64),
    ),
    "sparse": (
        lambda d: d.map(tf.range).sparse_batch(2, [9]).map(tf.sparse.to_dense),
        tf.TensorSpec([None, 9], tf.int64),
    ),
    "windows": (
        lambda d: d.window(2).flat_map(lambda w: w.batch(2)),
        tf.TensorSpec([None], tf.int64),
    ),
    "groups": (
        lambda d: d.group_by_window(
            lambda x: x % 2, lambda _k, w: w.map(tf.range).padded_batch(3), 3
        ),
        tf.TensorSpec([None, None], tf.int64),
    ),
    "value_dependent": (
        lambda d: d.batch(4, True).map(lambda x: tf.range(tf.reduce_sum(x) % 4)),
        tf.TensorSpec([None], tf.int64),
    ),
}


@pytest.mark.parametrize("name", EMPTY)
def test_spec_of_empty_datasets(name):
    make, spec = EMPTY[name]
    dataset = make(Dataset.range(0))
    assert dataset.element_spec == spec
    assert list(dataset) == []
    assert all(spec.is_compatible_with(element) for element in make(Dataset.range(9)))


def test_spec_inference_propagates_errors():
    def fail(_x):
        raise KeyError("not today")

    with pytest.raises(KeyError, match="not today"):
        Dataset.range(0).map(fail).element_spec  # noqa: B018


def test_spec_inference_draws_no_random_numbers():
    tf.random.set_seed(1)
    expected = tf.random.uniform([]).numpy()
    tf.random.set_seed(1)
    assert Dataset.range(3).map(lambda _x: tf.random.uniform([2])).element_spec.shape == [2]
    assert tf.random.uniform([]).numpy() == expected


def test_bool_len_and_repr():
    assert Dataset.range(0)
    assert len(Dataset.range(7)) == 7
    assert_raises(lambda: len(Dataset.range(3).repeat()), TypeError, "The dataset is infinite.")
    unknown = Dataset.range(3).filter(lambda x: x > 1)
    assert_raises(lambda: len(unknown), TypeError, "The dataset length is unknown.")
    assert repr(Dataset.range(3)) == f"<_RangeDataset element_spec={INT64!r}>"


def test_iterators():
    iterator = iter(Dataset.range(2))
    assert isinstance(iterator, tf.data.Iterator)
    assert iterator.element_spec == INT64
    assert int(iterator.get_next()) == 0
    optional = iterator.get_next_as_optional()
    assert bool(optional.has_value())
    assert int(optional.get_value()) == 1
    empty = iterator.get_next_as_optional()
    assert not empty.has_value()
    assert_raises(
        empty.get_value,
        tf.errors.InvalidArgumentError,
        "The given optional does not have a value. Check has_value() first.",
    )
    assert_raises(iterator.get_next, tf.errors.OutOfRangeError, "End of sequence")


def test_legacy_option_names():
    options = tf.data.Options()
    options.experimental_deterministic = False
    options.experimental_threading.private_threadpool_size = 3
    assert options.deterministic is options.experimental_deterministic is False
    assert options.threading.private_threadpool_size == 3
    other = tf.data.Options()
    other.experimental_threading = options.threading
    assert other.threading is options.threading is options.experimental_threading
    assert Dataset.range(1).with_options(options).options() == options


def test_options_are_merged():
    first, second = tf.data.Options(), tf.data.Options()
    first.deterministic = False
    second.threading.private_threadpool_size = 3
    options = Dataset.range(1).with_options(first).with_options(second).batch(1).options()
    assert options.deterministic is False
    assert options.threading.private_threadpool_size == 3
    assert_raises(
        lambda: setattr(first, "foo", 1),
        AttributeError,
        "Cannot set the property foo on Options.",
    )
    assert_raises(
        lambda: setattr(first, "deterministic", "x"),
        TypeError,
        "Property \"deterministic\" must be of type <class 'bool'>, got: 'x' (type: <class 'str'>)",
    )


def test_tapes_do_not_record_inside_datasets():
    v = tf.Variable(2.0)
    x = tf.constant([1.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.add_n(list(Dataset.from_tensor_slices(x).map(lambda x: x * v)))
    assert float(y) == 8.0
    assert tape.gradient(y, [v, x]) == [None, None]


def test_elements_do_not_alias_variables():
    x = np.arange(4.0)
    dataset = Dataset.from_tensor_slices(x).batch(2)
    first = next(iter(dataset))
    x[:] = -1
    first.numpy()[:] = -1
    v = tf.Variable(first)
    v.assign_add([1.0, 1.0])
    assert to_list(dataset) == [[0.0, 1.0], [2.0, 3.0]]
    assert first.numpy().tolist() == [0.0, 1.0]
