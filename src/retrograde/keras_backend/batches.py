"""Iterates over batches and passes them to traced steps."""

import itertools
from typing import Any, NamedTuple

import numpy as np
from keras.src import tree
from keras.src.trainers.data_adapters import raise_unsupported_arg
from keras.src.trainers.epoch_iterator import EpochIterator as KerasEpochIterator

import retrograde
from retrograde.core.tensor import Tensor
from retrograde.data import Dataset
from retrograde.distribute.context import context
from retrograde.distribute.input import DistributedDataset, distribute_unless_by_rows
from retrograde.keras_backend.dataset_adapter import DatasetAdapter
from retrograde.keras_backend.distribution_lib import (
    current_distribution,
    distribute_batch,
)


class LocalBatch(NamedTuple):
    """A batch that is already the shard of this worker."""

    value: Any


class EpochIterator(KerasEpochIterator):
    """Keras's iterator over the batches of an epoch, with support for retrograde's datasets."""

    is_distributed = False

    def __init__(self, x, y=None, sample_weight=None, class_weight=None, **options):
        if isinstance(x, Dataset):
            if y is not None:
                raise_unsupported_arg("y", "the targets", "Dataset")
            if sample_weight is not None:
                raise_unsupported_arg("sample_weights", "the sample weights", "Dataset")
            if context.strategy is not None and context.strategy.num_replicas_in_sync > 1:
                x = distribute_unless_by_rows(context.strategy, x)
                self.is_distributed = isinstance(x, DistributedDataset)
            distribution = current_distribution()
            if distribution is not None:
                x = distribution.distribute_dataset(x)
            x, class_weight = DatasetAdapter(x, class_weight), None
        super().__init__(x, y, sample_weight, class_weight=class_weight, **options)

    def __next__(self):
        """Returns the next batches. Enters Keras's context only when the data has run out."""
        first, last, batches = next(self._epoch_iterator)
        data = list(itertools.islice(batches, self.steps_per_execution))
        if len(data) < self.steps_per_execution:
            with self.catch_stop_iteration():
                raise StopIteration
        if not data:
            raise StopIteration
        if self.is_distributed:
            data = list(map(LocalBatch, data))
        distribution = current_distribution()
        if distribution is not None:
            data = [distribute_batch(distribution, batch) for batch in data]
        return first, last, data

    def single_batches(self):
        """Yields the batches one at a time, regardless of `steps_per_execution`.

        Building a model needs the first batch only. Keras replays just one batch of a generator,
        so no more may be consumed.
        """
        self.data_adapter.on_epoch_begin()
        for batch in self._get_iterator():
            yield 0, 0, [to_tensors(batch)]

    def _interrupted_warning(self):
        if self.steps_per_epoch:  # otherwise an epoch is all of the data
            super()._interrupted_warning()


def to_tensors(batch):
    """Converts the arrays of a batch to tensors."""
    return tree.map_structure(_to_tensor, batch)


def _to_tensor(x):
    """Converts an array to a tensor without a copy: it does not change during a step."""
    if type(x) is not np.ndarray:
        return x
    return retrograde.constant(x, "string") if x.dtype.kind in "OSU" else Tensor(x)


def trace_step(step, jit_compile):
    """Returns `step`, a function of a batch, as a traced function.

    Traced functions are faster with tensor arguments than with structures. Most batches are
    tuples of arrays, so they are passed as separate arguments.
    """
    structure_step = retrograde.function(step, jit_compile=jit_compile)
    tensor_steps = {}  # keyed by which parts of the batch are not `None`

    def run(batch):
        if type(batch) is tuple:
            parts = [_to_tensor(part) for part in batch]
            tensors = [part for part in parts if part is not None]
            if all([isinstance(part, Tensor) for part in tensors]):
                present = tuple([part is not None for part in parts])
                if present not in tensor_steps:
                    flat = _call_with_parts(step, present)
                    tensor_steps[present] = retrograde.function(flat, jit_compile=jit_compile)
                return tensor_steps[present](*tensors)
        return structure_step(to_tensors(batch))

    return run


def _call_with_parts(step, present):
    """Returns `step` as a function of the present parts of a batch; the others are `None`."""

    def flat(*tensors):
        remaining = iter(tensors)
        return step(tuple([next(remaining) if is_present else None for is_present in present]))

    flat.__name__ = step.__name__
    return flat
