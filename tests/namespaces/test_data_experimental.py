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
    tried |= {"make_batched_features_dataset", "parse_example_dataset"}
    tried |= {"make_csv_dataset", "enable_debug_mode"}  # test_data_csv.py
    assert functions == tried | {"get_single_element", "get_next_as_optional"}


# Parsed examples and options


@pytest.fixture
def example_files(tmp_path):
    """Two files of three serialized examples each."""
    for start in (0, 3):
        with tf.io.TFRecordWriter(str(tmp_path / f"{start}.tfrecord")) as writer:
            for number in range(start, start + 3):
                example = tf.train.Example()
                example.features.feature["x"].float_list.value.extend([number, number + 0.5])
                example.features.feature["y"].int64_list.value.append(number)
                writer.write(example.SerializeToString())
    return str(tmp_path / "*.tfrecord")


PARSED = {"x": tf.io.FixedLenFeature([2], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}


def test_batched_features_of_files(example_files):
    make = tf.data.experimental.make_batched_features_dataset

    ordered = make(example_files, 4, PARSED, label_key="y", num_epochs=1, shuffle=False)
    shuffled = make(example_files, 4, PARSED, num_epochs=2, shuffle_seed=1)
    endless = make(example_files, 4, PARSED, shuffle=False)

    assert [y.numpy().tolist() for _, y in ordered] == [[0, 1, 2, 3], [4, 5]]
    assert [sorted(x) for x, _ in ordered] == [["x"], ["x"]]
    assert sorted(n for batch in shuffled for n in batch["y"].numpy()) == sorted([*range(6)] * 2)
    assert [len(batch["y"]) for batch in endless.take(5)] == [4] * 5
    assert endless.element_spec["x"] == tf.TensorSpec([4, 2], tf.float32)


def test_batched_features_need_a_known_label(example_files):
    make = tf.data.experimental.make_batched_features_dataset
    with pytest.raises(ValueError, match="must be one of the `features` keys"):
        make(example_files, 2, PARSED, label_key="z")
    with pytest.raises(ValueError, match="Argument `features` is required, but not specified"):
        tf.data.experimental.parse_example_dataset(None)


# The fields of TensorFlow's options; each nested value is a class with these fields.
OPTIONS = {
    "autotune": [
        "autotune_algorithm",
        "cpu_budget",
        "enabled",
        "initial_parallelism",
        "min_parallelism",
        "ram_budget",
    ],
    "experimental_optimization": [
        "apply_default_optimizations",
        "filter_fusion",
        "filter_parallelization",
        "inject_prefetch",
        "map_and_batch_fusion",
        "map_and_filter_fusion",
        "map_fusion",
        "map_parallelization",
        "noop_elimination",
        "parallel_batch",
        "seq_interleave_prefetch",
        "shuffle_and_repeat_fusion",
    ],
    "experimental_service": ["pinned"],
    "threading": ["max_intra_op_parallelism", "private_threadpool_size"],
}
PLAIN_OPTIONS = {
    "dataset_name": "train",
    "deterministic": True,
    "experimental_external_state_policy": tf.data.experimental.ExternalStatePolicy.IGNORE,
    "experimental_slack": True,
    "experimental_symbolic_checkpoint": True,
    "experimental_warm_start": True,
    "framework_type": ["a"],
}


def test_options_have_all_fields():
    options = tf.data.Options()
    for name, value in PLAIN_OPTIONS.items():
        assert getattr(options, name) is None
        setattr(options, name, value)
    for name, fields in OPTIONS.items():
        for field in fields:
            assert getattr(getattr(options, name), field) is None
    options.autotune.enabled = False
    options.experimental_optimization.map_fusion = True

    kept = tf.data.Dataset.range(2).with_options(options).options()

    assert {name: getattr(kept, name) for name in PLAIN_OPTIONS} == PLAIN_OPTIONS
    assert (kept.autotune.enabled, kept.experimental_optimization.map_fusion) == (False, True)
    with pytest.raises(TypeError):
        options.autotune.cpu_budget = "many"
    with pytest.raises(AttributeError):
        options.experimental_optimization.unknown = True
