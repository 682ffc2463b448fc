"""tf.data: saving and restoring iterators."""

import gc
import itertools
import threading

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.datasets import Dataset
from tests.namespaces.helpers import assert_raises

ROWS = np.arange(23)
# Datasets of all kinds. Functions run only for elements after the restored position.
DATASETS = {
    "range": lambda: Dataset.range(23),
    "batch": lambda: Dataset.range(23).batch(4),
    "shuffle": lambda: Dataset.range(23).shuffle(23),
    "small_buffer": lambda: Dataset.range(23).shuffle(5),
    "same_order": lambda: Dataset.range(23).shuffle(9, reshuffle_each_iteration=False).repeat(2),
    "epochs": lambda: Dataset.from_tensor_slices(ROWS).shuffle(23).repeat(3).batch(4),
    "map": lambda: Dataset.range(23).map(lambda x: x * x),
    "parallel": lambda: Dataset.range(23).map(lambda x: x * x, 2).prefetch(2),
    "map_shuffle": lambda: Dataset.range(23).map(lambda x: x * x).shuffle(6).repeat(2).batch(3),
    "repeat_map": lambda: Dataset.range(5).shuffle(5).map(lambda x: -x).repeat(4),
    "filter": lambda: Dataset.range(40).shuffle(40).filter(lambda x: x % 2 == 0),
    "take_skip": lambda: Dataset.range(40).map(lambda x: x).skip(3).take(23),
    "shard": lambda: Dataset.range(60).map(lambda x: x).shard(3, 1),
    "zip": lambda: Dataset.zip(Dataset.range(23).shuffle(23), Dataset.range(9).shuffle(9).repeat()),
    "zip_map": lambda: Dataset.zip(Dataset.range(23).map(lambda x: x), Dataset.range(30)),
    "concatenate": lambda: (
        Dataset.range(9).shuffle(9).concatenate(Dataset.range(9, 20).shuffle(11)).repeat(2)
    ),
    "interleave": lambda: Dataset.range(4).interleave(lambda x: Dataset.range(x, x + 6), 2),
    "flat_map": lambda: Dataset.range(4).flat_map(lambda x: Dataset.range(x, x + 6)),
    "cache": lambda: Dataset.range(8).shuffle(8).map(lambda x: x).cache().repeat(3),
    "cached_rows": lambda: Dataset.range(8).shuffle(8).cache().repeat(3),
    "padded": lambda: Dataset.range(23).map(tf.range).padded_batch(2),
    "window": lambda: Dataset.range(23).window(3, 2).flat_map(lambda w: w.batch(3)),
    "samples": lambda: Dataset.sample_from_datasets(
        [Dataset.range(20).shuffle(20), Dataset.range(100, 120)], rerandomize_each_iteration=True
    ),
    "random": lambda: Dataset.random(rerandomize_each_iteration=True).take(20),
    "drawn_in_parallel": lambda: Dataset.range(23).map(
        lambda _x: tf.random.uniform([], maxval=1000, dtype=tf.int32), 2
    ),
    "scan": lambda: Dataset.range(23).scan(np.int64(0), lambda s, x: (s + x, s)),
    "group": lambda: Dataset.range(23).group_by_window(
        lambda x: x % 2, lambda _k, w: w.batch(3), 3
    ),
    "unbatch": lambda: Dataset.range(23).batch(4).unbatch(),
    "resampled": lambda: Dataset.range(40).rejection_resample(lambda x: x % 2, [0.7, 0.3]),
    "structures": lambda: Dataset.from_tensor_slices({"a": ROWS, "b": (ROWS, ROWS + 1)}).shuffle(9),
}


def to_lists(element):
    return tf.nest.map_structure(lambda x: x.numpy().tolist(), element)


def remaining_elements(iterator):
    return [to_lists(element) for element in iterator]


@pytest.mark.parametrize("taken", [0, 3, 7, 19])
@pytest.mark.parametrize("name", DATASETS)
def test_restored_iterator_continues_like_the_saved_one(name, taken, tmp_path):
    """Restores into the same dataset and into an equal one, with other random draws in between."""
    dataset = DATASETS[name]()
    list(itertools.islice(dataset, 4))  # an earlier iteration
    iterator = iter(dataset)
    list(itertools.islice(iterator, taken))
    path = tf.train.Checkpoint(iterator=iterator).write(tmp_path / "a")
    expected = remaining_elements(iterator)

    tf.random.uniform([])
    for other in (iter(dataset), iter(DATASETS[name]())):
        list(itertools.islice(other, 2))
        tf.train.Checkpoint(iterator=other).read(path).assert_consumed()
        assert remaining_elements(other) == expected


def test_iterations_after_a_restored_one_differ(tmp_path):
    dataset = Dataset.range(20).shuffle(20).repeat()
    iterator = iter(dataset)
    epochs = [remaining_elements(itertools.islice(iterator, 20)) for _ in range(2)]
    path = tf.train.Checkpoint(iterator=iterator).write(tmp_path / "a")
    other = iter(Dataset.range(20).shuffle(20).repeat())
    tf.train.Checkpoint(iterator=other).read(path)
    next_epoch = remaining_elements(itertools.islice(other, 20))
    assert sorted(next_epoch) == list(range(20))
    assert next_epoch not in epochs
    assert next_epoch == remaining_elements(itertools.islice(iterator, 20))


def test_skipped_elements_are_not_computed(tmp_path):
    calls = []

    def dataset():
        slow = Dataset.range(1000).map(lambda x: calls.append(int(x)) or x)
        return slow.repeat(2).batch(10).prefetch(1)

    iterator = iter(dataset())
    for _ in range(150):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(tmp_path / "a")
    del iterator
    gc.collect()
    calls.clear()
    other = iter(dataset())
    tf.train.Checkpoint(iterator=other).read(path)
    assert next(other).numpy().tolist() == list(range(500, 510))
    assert min(call for call in calls if call > 100) >= 500


def test_restoring_stops_the_previous_threads(tmp_path):
    def data_threads():
        return [t for t in threading.enumerate() if t.name.startswith("retrograde-data")]

    iterator = iter(Dataset.range(100).map(lambda x: x, 2).prefetch(2))
    next(iterator)
    before = len(data_threads())
    checkpoint = tf.train.Checkpoint(iterator=iterator)
    path = checkpoint.write(tmp_path / "a")
    for _ in range(3):
        checkpoint.read(path)
        assert int(next(iterator)) == 1
    assert len(data_threads()) <= before
    del iterator, checkpoint
    gc.collect()
    assert data_threads() == []


def test_exhausted_iterator_stays_exhausted(tmp_path):
    iterator = iter(Dataset.range(3))
    assert remaining_elements(iterator) == [0, 1, 2]
    path = tf.train.Checkpoint(iterator=iterator).write(tmp_path / "a")
    other = iter(Dataset.range(3))
    tf.train.Checkpoint(iterator=other).read(path)
    assert remaining_elements(other) == []


def test_failed_elements_are_counted(tmp_path):
    def raise_at_one(x):
        if int(x) == 1:
            raise KeyError("one")
        return x

    iterator = iter(Dataset.range(5).map(raise_at_one))
    assert int(next(iterator)) == 0
    with pytest.raises(KeyError):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(tmp_path / "a")
    other = iter(Dataset.range(5).map(raise_at_one))
    tf.train.Checkpoint(iterator=other).read(path)
    assert remaining_elements(other) == [2, 3, 4]


def test_numpy_iterators_can_be_saved(tmp_path):
    iterator = Dataset.range(5).as_numpy_iterator()
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(tmp_path / "a")
    other = Dataset.range(5).as_numpy_iterator()
    tf.train.Checkpoint(iterator=other).read(path).assert_consumed()
    assert list(other) == [1, 2, 3, 4]


def test_iterator_over_another_dataset_raises_without_side_effects(tmp_path):
    v = tf.Variable(1.0)
    path = tf.train.Checkpoint(a=v, i=iter(Dataset.range(9).shuffle(3))).write(tmp_path / "a")
    v.assign(2.0)
    other = tf.train.Checkpoint(a=v, i=iter(Dataset.range(9)))
    assert_raises(
        lambda: other.read(path),
        tf.errors.InvalidArgumentError,
        "The saved iterator has 1 random steps, but this one has 0. Restore it into an iterator "
        "over the same dataset.",
    )
    assert float(v) == 2.0
    assert int(next(other.i)) == 0


def test_training_resumes_in_the_middle_of_an_epoch(tmp_path):
    def make_state():
        data = iter(Dataset.from_tensor_slices(np.arange(40.0)).shuffle(40).repeat(2).batch(4))
        return tf.train.Checkpoint(v=tf.Variable(0.0, dtype=tf.float64), data=data)

    def train(state, steps):
        for _ in range(steps):
            state.v.assign(0.9 * state.v + tf.reduce_mean(next(state.data)))

    first = make_state()
    train(first, 13)
    path = first.save(tmp_path / "ckpt")
    train(first, 5)
    second = make_state()
    second.restore(path).assert_consumed()
    train(second, 5)
    assert float(second.v) == float(first.v)


def test_the_end_of_an_iterator_in_a_function_is_an_out_of_range_error():
    iterator = iter(tf.data.Dataset.range(1))
    f = tf.function(lambda: next(iterator))

    assert f().numpy() == 0
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        f()


def test_a_loop_over_an_iterator_in_a_function_ends():
    iterator = iter(tf.data.Dataset.range(3))

    @tf.function
    def f():
        return [x + 1 for x in iterator]

    assert [int(x) for x in f()] == [1, 2, 3]
    assert f() == []
