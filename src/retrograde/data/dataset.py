"""Dataset: elements one after the other, made as they are asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor, wrap
from retrograde.data import _mixing, _nodes, _saving, _sources, _steps
from retrograde.data._base import as_seed, dataset_of, node_of
from retrograde.data._batch_steps import BatchSteps
from retrograde.data._element_steps import ElementSteps
from retrograde.data._fingerprint import fingerprint
from retrograde.data._generators import checked, signature
from retrograde.data._seeds import Seeds
from retrograde.data._structure import common_spec
from retrograde.data.iterator import Iterator as DatasetIterator
from retrograde.data.iterator import NumpyIterator
from retrograde.data.options import Options
from retrograde.io.files import tensorflow_errors
from retrograde.ops.conversion import as_tensor
from retrograde.values import dtypes, nest
from retrograde.values.arguments import as_text
from retrograde.values.errors import invalid, to_list
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TypeSpec


class Dataset(ElementSteps, BatchSteps):
    """Elements one after the other: tensors, or tuples and dicts of them.

    A dataset is a description. Each `iter()` makes one pass of its own; nothing is computed before
    an element is asked for. Its methods make new datasets. No tape follows what functions given to
    them do.

    >>> data = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4, 5])
    >>> data = data.map(lambda x: 10 * x).batch(2)
    >>> [batch.tolist() for batch in data.as_numpy_iterator()]
    [[10, 20], [30, 40], [50]]
    """

    @staticmethod
    def _made(node: _nodes.Node, options: Options | None = None) -> Dataset:
        return Dataset(node, options)

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self.element_spec)

    @staticmethod
    def _spec_of_datasets(element_spec: Any) -> DatasetSpec:
        return DatasetSpec(element_spec)

    def _loaded(self, path: str, reader_func: Callable | None) -> _nodes.Node:
        return _loaded(path, reader_func)

    # Where elements come from

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """One element."""
        return Dataset(_sources.one(tensors))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """One element for each row of a tensor, or of all tensors in a structure.

        >>> features, labels = [[1, 2], [3, 4]], ["a", "b"]
        >>> for x, y in tf.data.Dataset.from_tensor_slices((features, labels)):
        ...     print(x.numpy(), y.numpy())
        [1 2] b'a'
        [3 4] b'b'
        """
        return Dataset(_sources.slices(tensors))

    @staticmethod
    def from_generator(
        generator: Callable,
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """What a Python generator yields; `generator(*args)` is called anew for each pass."""
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        spec = signature(output_types, output_shapes, output_signature)
        arguments = [as_tensor(arg).numpy() for arg in args or ()]
        make = lambda _run: checked(generator(*arguments), spec)  # noqa: E731
        return Dataset(_nodes.Made(make, spec, _nodes.UNKNOWN_CARDINALITY, "FlatMap"))

    @staticmethod
    def range(*args: Any, **kwargs: Any) -> Dataset:
        """The numbers of Python's `range`, as int64 or as `output_type`."""
        return Dataset(_sources.numbers(args, kwargs))

    @staticmethod
    def counter(
        start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64, name: str | None = None
    ) -> Dataset:
        """`start`, `start + step` and so on without end."""
        return Dataset(_sources.count_up(start, step, dtype))

    @staticmethod
    def random(
        seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Dataset:
        """Random numbers from 0 to 2**32 - 1 without end."""
        return Dataset(_sources.at_random(Seeds(as_seed(seed), bool(rerandomize_each_iteration))))

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: Any = None, name: str | None = None
    ) -> Dataset:
        """The names of files that fit a pattern, or one of several.

        They come in another order for each pass, unless `shuffle` is false: then sorted.
        """
        names = Dataset.from_tensor_slices(_sources.files(file_pattern))
        return names if shuffle is False else names.shuffle(len(names), seed)

    @staticmethod
    def load(
        path: Any,
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Callable | None = None,
        wait: bool = False,
    ) -> Dataset:
        """The elements that `save` wrote to a directory.

        `reader_func`, given a dataset of the datasets of all shards, says how to put them together;
        by default they take turns. `wait` waits until the directory is there.
        """
        directory = os.fspath(path)
        while wait and not _saving.is_saved(directory):
            time.sleep(0.1)
        with tensorflow_errors(directory):
            node = _loaded(directory, reader_func)
        if element_spec is not None and common_spec(element_spec, node.spec) != element_spec:
            raise invalid(
                f"The elements in {directory} are {node.spec}, which does not fit the given "
                f"element_spec {as_text(element_spec)}."
            )
        return Dataset(node)

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Elements of several datasets side by side, in the structure that these are given in."""
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        if args and datasets is not None:
            raise TypeError("Both `*args` and `datasets` cannot be set.")
        structure = datasets if not args else args[0] if len(args) == 1 else args
        flat, pack = nest.flatten_with_pack(structure)
        if not flat:
            raise invalid("Must pass at least one dataset to `zip`. Received an empty structure.")
        if any(not isinstance(leaf, Dataset) for leaf in flat) or isinstance(structure, list):
            raise TypeError(
                "Invalid input to `zip`. Expected datasets, in tuples and dicts but not in lists."
            )
        return Dataset(_nodes.Zip([leaf._node for leaf in flat], pack), flat[0]._options)

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = True
    ) -> Dataset:
        """The next element of that dataset, each time, whose number `choice_dataset` gives."""
        _check_some(datasets)
        if not isinstance(choice_dataset, Dataset):
            raise TypeError(
                "Invalid `choice_dataset`. `choice_dataset` should be a `tf.data.Dataset` but is "
                f"{type(choice_dataset)}."
            )
        if not choice_dataset._node.tries and choice_dataset.element_spec != _nodes.INT64:
            raise TypeError(
                "Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` "
                f"tensors but are {choice_dataset.element_spec}."
            )
        nodes = [node_of(dataset, "choose_from_datasets") for dataset in datasets]
        make = lambda choices, run: _mixing.chosen(  # noqa: E731
            nodes, map(int, choices), stop_on_empty_dataset, run
        )
        spec = lambda: _all_common(nodes)  # noqa: E731
        return choice_dataset._stream(make, "DirectedInterleave", spec=spec, others=nodes)

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[Dataset],
        weights: Any = None,
        seed: Any = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:
        """The next element, each time, of a dataset drawn at random with chances `weights`."""
        _check_some(datasets)
        if isinstance(weights, range):  # which may be longer than `len` can tell
            weights = to_list("sample_from_datasets", weights)
        if weights is not None and len(weights) != len(datasets):
            raise ValueError(
                "Invalid `weights`. `weights` should have the same length as `datasets` but got "
                f"`len(weights)={len(weights)}` vs. `len(datasets)={len(datasets)}`."
            )
        nodes = [node_of(dataset, "sample_from_datasets") for dataset in datasets]
        seeds = Seeds(as_seed(seed), bool(rerandomize_each_iteration))
        make = lambda _first, run: _mixing.chosen(  # noqa: E731
            nodes,
            _mixing.drawn(len(nodes), weights, seeds.generator(run)),
            stop_on_empty_dataset,
            run,
        )
        spec = lambda: _all_common(nodes)  # noqa: E731
        base = Dataset.counter().with_options(datasets[0].options())
        return base._stream(make, "DirectedInterleave", spec=spec, others=nodes, seeds=seeds)

    # What this is

    @property
    def element_spec(self) -> Any:
        """What elements look like: a `tf.TypeSpec` for each part.

        After `map` and its relatives this is found by trying the function on made-up elements.
        """
        return self._node.spec

    def cardinality(self) -> Tensor:
        """How many elements there are, or `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""
        return wrap(np.int64(self._node.cardinality()))

    def fingerprint(self) -> Tensor:
        """A number of 64 bits that tells datasets apart, the same in other processes.

        It depends on the steps, on the data, and on the code of functions and what they refer to.
        """
        return wrap(np.uint64(fingerprint(self._node)))

    def options(self) -> Options:
        """The options that hold for this dataset."""
        return self._options

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """The same elements; `options` hold for the steps after this one."""
        return Dataset(self._node, self._options.merge(options))

    def apply(self, transformation_func: Callable) -> Dataset:
        """`transformation_func(self)`, for transformations that are functions."""
        result = transformation_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(
                f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(result)}."
            )
        return result

    def as_numpy_iterator(self) -> NumpyIterator:
        """The elements with NumPy arrays in place of tensors."""
        return NumpyIterator(iter(self))

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(self._node)

    def __len__(self) -> int:
        count = self._node.cardinality()
        if count == _nodes.INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        if count == _nodes.UNKNOWN_CARDINALITY:
            raise TypeError("The dataset length is unknown.")
        return count

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<_{self._node.name}Dataset element_spec={self.element_spec!r}>"


class DatasetSpec(TypeSpec):
    """What the elements of a dataset look like, where it is an element itself."""

    __slots__ = ("_element_spec",)

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self._element_spec = element_spec

    @property
    def element_spec(self) -> Any:
        """What elements look like."""
        return self._element_spec

    @property
    def value_type(self) -> type:
        """`tf.data.Dataset`."""
        return Dataset

    def _sample(self, which: int) -> Dataset:
        from retrograde.data._structure import _sample

        return Dataset.from_tensors(_sample(self._element_spec, which)).repeat(2 + which)

    def _serialize(self) -> tuple:
        return self._element_spec, TensorShape([])


# What the methods are made of


def _loaded(path: str, reader_func: Callable | None) -> _nodes.Node:
    """The elements of a directory, as one node."""
    shards = [Dataset(node) for node in _saving.shards(path)]
    spec = shards[0].element_spec
    if reader_func is not None:
        both = _nodes.Made(lambda _run: shards, DatasetSpec(spec), len(shards), "Load")
        return dataset_of(reader_func, Dataset(both))._node
    make = lambda run: _steps.interleaved(iter(shards), len(shards), 1, False, run)  # noqa: E731
    return _nodes.Made(make, spec, sum(map(len, shards)), "Load")


def _check_some(datasets: Sequence[Dataset]) -> None:
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")


def _all_common(nodes: Sequence[_nodes.Node]) -> Any:
    found = nodes[0].spec
    for node in nodes[1:]:
        found = found and common_spec(found, node.spec)
    if found is None:
        specs = ", ".join(str(node.spec) for node in nodes)
        raise TypeError(
            f"Invalid `datasets`. `datasets` must have compatible element specs. Received: {specs}."
        )
    return found
