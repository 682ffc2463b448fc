"""Datasets that are sharded over workers and replicas."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.data import _nodes
from retrograde.data._base import BaseDataset
from retrograde.data.dataset import Dataset
from retrograde.data.iterator import Iterator as DatasetIterator
from retrograde.data.options import AutoShardPolicy
from retrograde.distribute.file_sharding import TooFewFilesError, shard_files
from retrograde.distribute.values import PerReplicaSpec, combine_replicas
from retrograde.ops.collectives import current_group
from retrograde.values import nest
from retrograde.values.arguments import as_text, expect
from retrograde.values.errors import invalid
from retrograde.values.specs import TensorSpec


class InputContext:
    """The argument of a dataset function: the numbers of workers and replicas."""

    def __init__(
        self,
        num_input_pipelines: int = 1,
        input_pipeline_id: int = 0,
        num_replicas_in_sync: int = 1,
    ) -> None:
        self.num_input_pipelines = num_input_pipelines
        self.input_pipeline_id = input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Returns the per-replica batch size."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                "get_per_replica_batch_size: global_batch_size must be divisible by the number of "
                f"replicas ({self.num_replicas_in_sync}). Received: {as_text(global_batch_size)}."
            )
        return global_batch_size // self.num_replicas_in_sync

    def __repr__(self) -> str:
        return (
            f"InputContext(pipeline {self.input_pipeline_id} of {self.num_input_pipelines}, "
            f"{self.num_replicas_in_sync} replicas)"
        )


class ValueContext:
    """The replica that `experimental_distribute_values_from_function` calls its function for."""

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = num_replicas_in_sync

    def __repr__(self) -> str:
        return f"<replica {self.replica_id_in_sync_group} of {self.num_replicas_in_sync}>"


class InputReplicationMode(enum.Enum):
    """The number of calls of a dataset function. Ignored: there is one call per worker."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class InputOptions(NamedTuple):
    """Options of distributed datasets. Ignored: elements are created on the host."""

    experimental_fetch_to_device: bool | None = None
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


class RunOptions(NamedTuple):
    """Options of `Strategy.run`. They are accepted but have no effect."""

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None


class DistributedIterator:
    """An iterator over a distributed dataset. `strategy.run` accepts its elements."""


class _WorkerIterator(DatasetIterator, DistributedIterator):
    """An iterator over the shards of this worker."""


class DistributedDataset(Dataset):
    """A dataset whose elements are the shards of global batches for this worker."""

    def __iter__(self) -> DistributedIterator:
        return _WorkerIterator(self._node)


def distribute_dataset(strategy: Any, dataset: Any) -> Any:
    """Returns `dataset` sharded over the replicas of `strategy`.

    Each element of `dataset` is a global batch. With `AutoShardPolicy.FILE`, each worker reads its
    own files and splits batches into smaller ones. With `DATA`, all workers read all elements in
    the same order, and each keeps its rows. With `OFF`, each worker gets all rows, in batches that
    are smaller by the number of workers; a shuffle without a seed has a different order in each
    worker. `AUTO` is `FILE` if the dataset reads at least one file per worker, and `DATA`
    otherwise.
    """
    expect(dataset, BaseDataset, "experimental_distribute_dataset", "a tf.data.Dataset")
    num_workers = strategy._input_context.num_input_pipelines
    index = strategy._input_context.input_pipeline_id
    if num_workers == 1:
        num_replicas = strategy.num_replicas_in_sync
        if num_replicas == 1:
            return DistributedDataset(dataset._node, dataset._options)
        return _transform(
            dataset,
            lambda elements: (shard_per_replica(x, num_replicas) for x in elements),
            num_replicas=num_replicas,
        )
    sharded = split_without_sharding(dataset, num_workers, index)
    if sharded is not None:
        return sharded
    sharded = shard_by_files(dataset, num_workers, index)
    if sharded is not None:
        return _transform(sharded, lambda elements: _pad_until_all_finish(elements, sharded), False)
    return _transform(dataset, lambda elements: (shard(x, num_workers, index) for x in elements))


def distribute_unless_by_rows(strategy: Any, dataset: Any) -> Any:
    """Returns `dataset` distributed over workers, unless they split its batches by rows."""
    workers = strategy._input_context.num_input_pipelines
    if workers == 1 or isinstance(dataset, DistributedDataset):
        return dataset
    is_off = policy_of(dataset) is AutoShardPolicy.OFF
    if is_off or shard_by_files(dataset, workers, 0) is not None:
        return distribute_dataset(strategy, dataset)
    return dataset


def policy_of(dataset: Any) -> AutoShardPolicy:
    """Returns the policy by which workers split a dataset."""
    return dataset.options().experimental_distribute.auto_shard_policy or AutoShardPolicy.AUTO


def split_without_sharding(dataset: Any, num_workers: int, index: int) -> Dataset | None:
    """Returns `dataset` with all rows for each worker, if its policy is `OFF`.

    Batches are smaller by the number of workers.
    """
    if policy_of(dataset) is not AutoShardPolicy.OFF:
        return None
    node = _WorkerOrder(dataset._node, index)
    return _transform(
        Dataset(node, dataset._options),
        lambda elements: _split_batches(elements, num_workers),
        preserves_count=False,
    )


class _WorkerOrder(_nodes.Step):
    """Makes shuffles without a seed differ between workers."""

    name = "OrderOfWorker"

    def __init__(self, input: _nodes.Node, worker: int) -> None:
        super().__init__(input)
        self._worker = worker

    def open_after(self, run: Any, count: int) -> Iterator:
        for seeds in self.all_seeds():
            seeds.iterations_in(run, self._worker)
        return self.input.open_after(run, count)

    def elements(self, run: Any) -> Iterator:
        return self.open_after(run, 0)

    def cardinality(self) -> int:
        return self.input.cardinality()


def shard_by_files(dataset: Any, num_workers: int, index: int) -> Dataset | None:
    """Returns `dataset` sharded by files, or `None` if workers shard each batch by rows instead.

    Each worker reads its own global batches and splits them into `num_workers` smaller ones. The
    batches of all workers in one step together have the rows of one global batch. Raises an
    `InvalidArgumentError` if the policy is `FILE` and the dataset cannot be sharded by files.
    """
    policy = policy_of(dataset)
    if policy not in (AutoShardPolicy.FILE, AutoShardPolicy.AUTO):
        return None
    try:
        node = shard_files(dataset._node, num_workers, index)
    except TooFewFilesError as error:
        if policy is AutoShardPolicy.AUTO:
            return None
        raise invalid(
            "experimental_distribute_dataset: AutoShardPolicy.FILE requires at least one file per "
            f"worker. Received: {error.num_files} files for {num_workers} workers. Use "
            "AutoShardPolicy.DATA or OFF."
        ) from None
    if node is not None:
        sharded = Dataset(node, dataset._options)
        return _transform(sharded, lambda elements: _split_batches(elements, num_workers), False)
    if policy is AutoShardPolicy.FILE:
        raise invalid(
            "experimental_distribute_dataset: AutoShardPolicy.FILE requires a dataset whose "
            "sources all read files, such as tf.data.TextLineDataset. Use AutoShardPolicy.DATA or "
            "OFF."
        )
    return None


def _transform(
    dataset: Any,
    make: Callable[[Iterator], Iterator],
    preserves_count: bool = True,
    num_replicas: int = 1,
) -> DistributedDataset:
    node = _nodes.Transform(
        dataset._node,
        lambda elements, _run: make(elements),
        "Distribute",
        spec=lambda: _with_unknown_rows(dataset.element_spec, num_replicas),
        cardinality=_nodes.preserve_count if preserves_count else _unknown_count,
    )
    return DistributedDataset(node, dataset._options)


def _unknown_count(_count: int) -> int:
    return _nodes.UNKNOWN_CARDINALITY


def shard(element: Any, num_shards: int, index: int) -> Any:
    """Returns the rows of shard `index` in a global batch.

    All shards have the same number of rows, except that the last ones of an uneven batch have
    fewer rows or none.
    """
    leaves = list(nest.leaves(element, expand_composites=True))
    count = -(-_count_rows(leaves) // num_shards)
    kept = [_rows(x, index * count, (index + 1) * count) for x in leaves]
    return nest.pack(element, iter(kept), expand_composites=True)


def shard_per_replica(element: Any, num_replicas: int) -> Any:
    """Returns the shards of a global batch for the replicas of this process."""
    return combine_replicas([shard(element, num_replicas, i) for i in range(num_replicas)])


def without_rows(element: Any) -> Any:
    """Returns an empty batch with the other dimensions of `element`."""
    leaves = [_rows(x, 0, 0) for x in nest.leaves(element, expand_composites=True)]
    return nest.pack(element, iter(leaves), expand_composites=True)


def _split_batches(elements: Iterator, count: int) -> Iterator:
    """Yields up to `count` batches for each batch, none of them empty; scalars as they are."""
    for element in elements:
        rows = _count_rows(list(nest.leaves(element, expand_composites=True)))
        if not rows:
            yield element
            continue
        size = -(-rows // count)
        for i in range(-(-rows // size)):
            yield shard(element, count, i)


def _count_rows(leaves: list) -> int:
    return next((x._spec.shape[0] for x in leaves if isinstance(x, Tensor) and x.ndim), 0)


def _rows(x: Any, start: int, stop: int) -> Any:
    return Tensor(x._array[start:stop]) if isinstance(x, Tensor) and x.ndim else x


def _with_unknown_rows(specs: Any, num_replicas: int) -> Any:
    """Returns the specs of the shards of batches, for several replicas as `PerReplicaSpec`."""

    def unknown(spec: Any) -> Any:
        if isinstance(spec, TensorSpec) and spec.shape.rank:
            spec = TensorSpec([None, *spec.shape[1:]], spec.dtype)
        return spec if num_replicas == 1 else PerReplicaSpec(*[spec] * num_replicas)

    return nest.pack(specs, iter([unknown(spec) for spec in nest.leaves(specs)]))


def distribute_dataset_from_function(strategy: Any, dataset_fn: Callable) -> Any:
    """Returns the dataset that `dataset_fn` creates for this worker.

    If workers have different numbers of elements, a worker that has none left gets empty batches
    until all workers have finished.
    """
    dataset = dataset_fn(strategy._input_context)
    workers = strategy._input_context.num_input_pipelines
    if not isinstance(dataset, BaseDataset):
        return dataset
    if workers == 1:
        replicas = strategy.num_replicas_in_sync
        if replicas == 1:
            return DistributedDataset(dataset._node, dataset._options)
        return _transform(dataset, lambda elements: _group_by_replica(elements, replicas), False)
    return _transform(dataset, lambda elements: _pad_until_all_finish(elements, dataset), False)


def _group_by_replica(elements: Iterator, replicas: int) -> Iterator:
    """Yields one element per replica. The last group is padded with empty batches."""
    while group := list(itertools.islice(elements, replicas)):
        missing = replicas - len(group)
        yield combine_replicas(group + [without_rows(group[0])] * missing)


def _pad_until_all_finish(elements: Iterator, dataset: Any) -> Iterator:
    """Yields the elements, then empty batches until all workers have finished."""
    group = current_group()
    count = dataset._node.cardinality()
    counts = group.gather_integers(count)
    if count >= 0 and len(set(counts)) == 1:
        yield from elements
        return
    last = None
    while True:
        element = next(elements, None)
        if not any(group.gather_integers(int(element is not None))):
            return
        if element is None:
            last = _empty_batch(dataset.element_spec) if last is None else without_rows(last)
        else:
            last = element
        yield last


def _empty_batch(specs: Any) -> Any:
    def zeros(spec: Any) -> Tensor:
        shape = [0, *[n or 0 for n in spec.shape.as_list()[1:]]] if spec.shape.rank else []
        return Tensor(np.zeros(shape, spec.dtype.as_numpy_dtype))

    return nest.pack(specs, iter([zeros(spec) for spec in nest.leaves(specs)]))
