"""Batches: where they come from, and how a step gets them."""

import itertools

import numpy as np
from keras.src import tree
from keras.src.trainers.data_adapters import raise_unsupported_arg
from keras.src.trainers.epoch_iterator import EpochIterator as KerasEpochIterator

import retrograde
from retrograde.core.tensor import Tensor
from retrograde.data import Dataset
from retrograde.keras_backend.dataset_adapter import DatasetAdapter


class EpochIterator(KerasEpochIterator):
    """Keras's iterator over the batches of an epoch, which knows retrograde's datasets as well."""

    def __init__(self, x, y=None, sample_weight=None, class_weight=None, **options):
        if isinstance(x, Dataset):
            if y is not None:
                raise_unsupported_arg("y", "the targets", "Dataset")
            if sample_weight is not None:
                raise_unsupported_arg("sample_weights", "the sample weights", "Dataset")
            x, class_weight = DatasetAdapter(x, class_weight), None
        super().__init__(x, y, sample_weight, class_weight=class_weight, **options)

    def __next__(self):
        """As Keras's, entering its context only where the data has run out."""
        first, last, batches = next(self._epoch_iterator)
        data = list(itertools.islice(batches, self.steps_per_execution))
        if len(data) < self.steps_per_execution:
            with self.catch_stop_iteration():
                raise StopIteration
        if not data:
            raise StopIteration
        return first, last, data

    def one_by_one(self):
        """The batches each for itself, however many are executed at once.

        A model is built after the first. More must not be taken from a generator by then: it is
        the only one that will come again.
        """
        self.data_adapter.on_epoch_begin()
        for batch in self._get_iterator():
            yield 0, 0, [batch]

    def _interrupted_warning(self):
        if self.steps_per_epoch:  # else an epoch is what there is
            super()._interrupted_warning()


def tensors_in(batch):
    """A batch with its arrays as tensors."""
    return tree.map_structure(_tensor, batch)


def _tensor(x):
    """An array of a batch as a tensor, without a copy: a step is over before anyone changes it."""
    if type(x) is np.ndarray and x.dtype.kind not in "OSU":
        return Tensor(x)
    return x


def recorded(step, jit_compile):
    """`step`, a function of a batch, that is recorded once and replayed from then on.

    Functions of tensors are called by a shorter way than those of structures. So a batch that is
    a tuple of arrays, which nearly every one is, is taken apart here and put together inside.
    """
    of_structure = retrograde.function(step, jit_compile=jit_compile)
    of_tensors = {}  # by which parts of the batch there are

    def run(batch):
        if type(batch) is tuple:
            parts = [_tensor(part) for part in batch]
            tensors = [part for part in parts if part is not None]
            if all([isinstance(part, Tensor) for part in tensors]):
                there = tuple([part is not None for part in parts])
                if there not in of_tensors:
                    flat = _of_parts(step, there)
                    of_tensors[there] = retrograde.function(flat, jit_compile=jit_compile)
                return of_tensors[there](*tensors)
        return of_structure(tensors_in(batch))

    return run


def _of_parts(step, there):
    """`step` as a function of the parts of a batch that are there; in place of others is `None`."""

    def flat(*tensors):
        given = iter(tensors)
        return step(tuple([next(given) if here else None for here in there]))

    flat.__name__ = step.__name__
    return flat
