"""AutoShardPolicy.FILE: each worker reads its own files. These tests start no processes."""

import types

import pytest

import retrograde as tf
from retrograde.distribute.file_sharding import shard_files
from retrograde.distribute.input import distribute_dataset, shard_by_files
from retrograde.ops.collectives import Group, use_group
from tests.namespaces.helpers import assert_raises

POLICY = tf.data.experimental.AutoShardPolicy
ROWS_PER_FILE = 4


@pytest.fixture
def files(tmp_path):
    """Returns the names of five files; file i has the lines "i0" to "i3"."""
    paths = [tmp_path / f"{i}.txt" for i in range(5)]
    for i, path in enumerate(paths):
        path.write_text("".join(f"{i}{row}\n" for row in range(ROWS_PER_FILE)))
    return list(map(str, paths))


def lines(*indices):
    return [f"{i}{row}" for i in indices for row in range(ROWS_PER_FILE)]


def decoded(x):
    return x.numpy().decode()


def read_sharded(dataset, num_workers, index):
    node = shard_files(dataset._node, num_workers, index)
    return None if node is None else list(map(decoded, tf.data.Dataset(node)))


def with_policy(dataset, policy):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.with_options(options)


PIPELINES = {
    "reader": tf.data.TextLineDataset,
    "parallel reader": lambda files: tf.data.TextLineDataset(files, num_parallel_reads=1),
    "names in a dataset": lambda files: tf.data.TextLineDataset(
        tf.data.Dataset.from_tensor_slices(files)
    ),
    "fixed-length records": lambda files: tf.data.FixedLengthRecordDataset(files, 3).map(
        lambda record: tf.strings.substr(record, 0, 2)
    ),
    "flat_map": lambda files: tf.data.Dataset.from_tensor_slices(files).flat_map(
        tf.data.TextLineDataset
    ),
    "interleave": lambda files: tf.data.Dataset.from_tensor_slices(files).interleave(
        lambda name: tf.data.TextLineDataset(name).map(tf.identity), cycle_length=1
    ),
    "nested flat_map": lambda files: tf.data.Dataset.from_tensor_slices(files).flat_map(
        lambda name: tf.data.Dataset.from_tensors(name).flat_map(tf.data.TextLineDataset)
    ),
    "names and labels": lambda files: tf.data.Dataset.from_tensor_slices(
        (files, list(range(5)))
    ).flat_map(lambda name, _label: tf.data.TextLineDataset(name)),
    "names without a known cardinality": lambda files: tf.data.TextLineDataset(
        tf.data.Dataset.from_tensor_slices(files).filter(lambda _: True)
    ),
    "steps after the reader": lambda files: (
        tf.data.TextLineDataset(files).map(tf.identity).cache().batch(3).unbatch().prefetch(1)
    ),
}


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_each_worker_reads_every_nth_file(files, pipeline):
    dataset = PIPELINES[pipeline](files)
    assert read_sharded(dataset, 2, 0) == lines(0, 2, 4)
    assert read_sharded(dataset, 2, 1) == lines(1, 3)
    assert list(map(decoded, dataset)) == lines(0, 1, 2, 3, 4)


@pytest.mark.usefixtures("files")
def test_names_are_sharded_before_they_are_shuffled(tmp_path):
    names = tf.data.Dataset.list_files(str(tmp_path / "*.txt"))
    shards = [read_sharded(tf.data.TextLineDataset(names), 2, i) for i in range(2)]
    assert sorted(shards[0]) == lines(0, 2, 4)
    assert sorted(shards[1]) == lines(1, 3)


def test_names_are_sharded_before_they_are_repeated(files):
    names = tf.data.Dataset.from_tensor_slices(files).repeat(2)
    assert read_sharded(tf.data.TextLineDataset(names), 5, 3) == lines(3, 3)


def test_a_shard_does_not_use_the_cache_of_the_whole_dataset(files):
    dataset = tf.data.TextLineDataset(files).cache()
    assert len(list(dataset)) == 20
    assert read_sharded(dataset, 5, 1) == lines(1)
    assert len(list(dataset)) == 20


def test_datasets_with_several_inputs_shard_each_of_them(files):
    first, second = tf.data.TextLineDataset(files), tf.data.TextLineDataset(files[::-1])
    assert read_sharded(first.concatenate(second), 5, 1) == lines(1, 3)
    pairs = tf.data.Dataset.zip(first, second).map(lambda x, y: x + y)
    assert read_sharded(pairs, 5, 0) == ["0040", "0141", "0242", "0343"]


def test_datasets_with_a_source_that_reads_no_files_are_not_sharded(files, tmp_path):
    reader = tf.data.TextLineDataset(files)
    for dataset in [
        tf.data.Dataset.range(8),
        tf.data.Dataset.from_tensor_slices(files),
        tf.data.Dataset.from_tensor_slices(files).flat_map(tf.data.Dataset.from_tensors),
        tf.data.Dataset.from_tensor_slices(files).take(0).flat_map(tf.data.TextLineDataset),
        reader.enumerate(),
        reader.concatenate(tf.data.Dataset.from_tensor_slices(["a"])),
        tf.data.Dataset.sample_from_datasets([reader, reader]),
        reader.cache(str(tmp_path / "cache")),
    ]:
        assert read_sharded(dataset, 2, 0) is None


def test_file_splits_global_batches(files):
    dataset = with_policy(tf.data.TextLineDataset(files).batch(5), POLICY.FILE)
    batches = [x.numpy().tolist() for x in shard_by_files(dataset, 2, 0)]
    assert list(map(len, batches)) == [3, 2, 3, 2, 1, 1]
    assert [x.decode() for batch in batches for x in batch] == lines(0, 2, 4)


def test_file_does_not_split_scalars(files):
    dataset = with_policy(tf.data.TextLineDataset(files), POLICY.FILE)
    assert list(map(decoded, shard_by_files(dataset, 2, 1))) == lines(1, 3)


def test_auto_shards_by_files_if_there_are_enough(files):
    dataset = tf.data.TextLineDataset(files).batch(4)
    assert [len(x) for x in shard_by_files(dataset, 2, 1)] == [2, 2, 2, 2]
    assert shard_by_files(dataset, 6, 1) is None
    assert shard_by_files(tf.data.Dataset.range(8).batch(4), 2, 1) is None


@pytest.mark.parametrize("policy", [POLICY.DATA, POLICY.OFF])
def test_data_and_off_do_not_shard_by_files(files, policy):
    dataset = with_policy(tf.data.TextLineDataset(files).batch(4), policy)
    assert shard_by_files(dataset, 2, 0) is None


@pytest.mark.parametrize("pipeline", ["reader", "names without a known cardinality"])
def test_file_requires_a_file_per_worker(files, pipeline):
    dataset = with_policy(PIPELINES[pipeline](files), POLICY.FILE)
    assert_raises(
        lambda: shard_by_files(dataset, 6, 0),
        tf.errors.InvalidArgumentError,
        "experimental_distribute_dataset: AutoShardPolicy.FILE requires at least one file per "
        "worker. Received: 5 files for 6 workers. Use AutoShardPolicy.DATA or OFF.",
    )


def test_file_requires_files():
    dataset = with_policy(tf.data.Dataset.range(8), POLICY.FILE)
    assert_raises(
        lambda: shard_by_files(dataset, 2, 0),
        tf.errors.InvalidArgumentError,
        "experimental_distribute_dataset: AutoShardPolicy.FILE requires a dataset whose sources "
        "all read files, such as tf.data.TextLineDataset. Use AutoShardPolicy.DATA or OFF.",
    )


class GroupOfTwo(Group):
    """A group whose other worker has `remaining` elements."""

    size = 2

    def __init__(self, remaining):
        self.remaining = remaining

    def gather_integers(self, value):
        if value < 0:  # an unknown cardinality
            return [value, value]
        self.remaining -= 1
        return [value, int(self.remaining >= 0)]


def test_a_worker_with_fewer_files_gets_empty_batches(files):
    strategy = types.SimpleNamespace(
        _input_context=tf.distribute.InputContext(2, 1, 2), num_replicas_in_sync=2
    )
    dataset = distribute_dataset(strategy, tf.data.TextLineDataset(files).batch(4))
    with use_group(GroupOfTwo(remaining=6)):
        batches = [x.numpy().tolist() for x in dataset]
    assert batches == [[b"10", b"11"], [b"12", b"13"], [b"30", b"31"], [b"32", b"33"], [], []]
