"""tf.data.experimental: legacy names of `Dataset` methods."""

import inspect

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.datasets import INT64, Dataset, to_list
from tests.namespaces.helpers import assert_raises

E = tf.data.experimental

EQUIVALENT = {
    "assert_cardinality": (E.assert_cardinality(6), lambda d: d),
    "bucket_by_sequence_length": (
        lambda d: d.map(tf.range).apply(E.bucket_by_sequence_length(tf.size, [3], [2, 2])),
        lambda d: d.map(tf.range).bucket_by_sequence_length(tf.size, [3], [2, 2]),
    ),
    "copy_to_device": (E.copy_to_device("/gpu:0"), lambda d: d),
    "prefetch_to_device": (E.prefetch_to_device("/gpu:0"), lambda d: d.prefetch(2)),
    "dense_to_sparse_batch": (
        lambda d: d.map(tf.range).apply(E.dense_to_sparse_batch(2, [6])),
        lambda d: d.map(tf.range).sparse_batch(2, [6]),
    ),
    "enumerate_dataset": (E.enumerate_dataset(3), lambda d: d.enumerate(3)),
    "group_by_window": (
        E.group_by_window(lambda x: x % 2, lambda _k, w: w.batch(2), 2),
        lambda d: d.group_by_window(lambda x: x % 2, lambda _k, w: w.batch(2), 2),
    ),
    "ignore_errors": (E.ignore_errors(), lambda d: d),
    "map_and_batch": (
        E.map_and_batch(lambda x: x * x, 4, drop_remainder=True),
        lambda d: d.map(lambda x: x * x).batch(4, True),
    ),
    "parallel_interleave": (
        E.parallel_interleave(lambda x: Dataset.range(x), 2),
        lambda d: d.interleave(lambda x: Dataset.range(x), 2),
    ),
    "rejection_resample": (
        E.rejection_resample(lambda x: x % 2, [0.5, 0.5], seed=1),
        lambda d: d.rejection_resample(lambda x: x % 2, [0.5, 0.5], seed=1),
    ),
    "scan": (
        E.scan(np.int64(0), lambda s, x: (s + x, s)),
        lambda d: d.scan(np.int64(0), lambda s, x: (s + x, s)),
    ),
    "shuffle_and_repeat": (
        E.shuffle_and_repeat(6, 2, seed=1),
        lambda d: d.shuffle(6, seed=1).repeat(2),
    ),
    "take_while": (E.take_while(lambda x: x < 3), lambda d: d.take_while(lambda x: x < 3)),
    "unbatch": (lambda d: d.batch(4).apply(E.unbatch()), lambda d: d),
    "unique": (lambda d: d.repeat(2).apply(E.unique()), lambda d: d),
}


@pytest.mark.parametrize("name", EQUIVALENT)
def test_transformations_are_methods(name):
    older, method = EQUIVALENT[name]
    assert to_list(Dataset.range(6).apply(older)) == to_list(method(Dataset.range(6)))


def test_ragged_batches():
    (batch,) = Dataset.range(3).map(tf.range).apply(E.dense_to_ragged_batch(3))
    assert batch.to_list() == [[], [0], [0, 1]]


def test_files(tmp_path):
    E.save(Dataset.range(3), tmp_path / "data")
    assert to_list(E.load(tmp_path / "data")) == [0, 1, 2]
    snapshot = Dataset.range(3).apply(E.snapshot(tmp_path / "snapshot"))
    assert to_list(snapshot) == to_list(snapshot) == [0, 1, 2]


def test_sources():
    assert to_list(E.Counter(2, 3).take(3)) == [2, 5, 8]
    datasets = [Dataset.range(3), Dataset.range(10, 12)]
    choices = Dataset.from_tensor_slices(np.array([0, 1, 1, 1, 0]))
    assert to_list(E.choose_from_datasets(datasets, choices)) == [0, 10, 11, 1]
    assert sorted(to_list(E.sample_from_datasets(datasets, seed=1))) == [0, 1, 2, 10, 11]
    pairs = E.from_list([(1, "a"), (2, "b")])
    assert to_list(pairs) == [(1, b"a"), (2, b"b")]
    assert len(pairs) == 2
    assert E.from_list([[1, 2], [3]]).element_spec == tf.TensorSpec([None], tf.int32)


def test_properties():
    assert int(E.cardinality(Dataset.range(3))) == 3
    assert int(E.get_single_element(Dataset.range(1))) == 0
    assert E.get_structure(iter(Dataset.range(1))) == INT64
    assert int(E.get_next_as_optional(iter(Dataset.range(1))).get_value()) == 0


def test_from_list_errors():
    assert_raises(
        lambda: E.from_list((1,)),
        ValueError,
        "Invalid `elements`. `elements` must be a list. Got <class 'tuple'>.",
    )
    assert_raises(
        lambda: E.from_list([]),
        ValueError,
        "Invalid `elements`. `elements` should not be empty. If you want an empty dataset, use "
        "`tf.data.Dataset.range(0)`.",
    )
    assert_raises(
        lambda: E.from_list([1, 2.0]),
        TypeError,
        f"Invalid `elements`. {tf.TensorSpec([])} is not compatible with "
        f"{tf.TensorSpec([], tf.int32)}.",
    )


def test_every_name_is_tested():
    functions = {name for name in E.__all__ if inspect.isfunction(getattr(E, name))}
    tried = {
        *EQUIVALENT,
        "dense_to_ragged_batch",
        "save",
        "load",
        "snapshot",
        "Counter",
        "from_list",
    }
    tried |= {"choose_from_datasets", "sample_from_datasets", "cardinality", "get_structure"}
    assert functions == tried | {"get_single_element", "get_next_as_optional"}
