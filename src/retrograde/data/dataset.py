"""Dataset: a sequence of elements that are computed on demand."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor, wrap
from retrograde.data import _mixing, _nodes, _saving, _sources, _transforms
from retrograde.data._base import as_seed, call_to_dataset, node_of
from retrograde.data._batch_methods import BatchMethods
from retrograde.data._element_methods import ElementMethods
from retrograde.data._elements import common_spec
from retrograde.data._fingerprint import fingerprint
from retrograde.data._generators import check_elements, resolve_signature
from retrograde.data._seeds import Seeds
from retrograde.data.iterator import Iterator as DatasetIterator
from retrograde.data.iterator import NumpyIterator
from retrograde.data.options import Options
from retrograde.io.files import tensorflow_errors
from retrograde.ops.conversion import as_tensor
from retrograde.values import dtypes, nest
from retrograde.values.arguments import as_text
from retrograde.values.composites import CompositeTensor
from retrograde.values.errors import invalid, to_list
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TypeSpec


class Dataset(ElementMethods, BatchMethods):
    """A sequence of elements: tensors, or nested tuples and dicts of tensors.

    Methods return new datasets. Elements are computed on demand, separately for each `iter()`.
    Tapes do not record the functions passed to methods.

    >>> data = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4, 5])
    >>> data = data.map(lambda x: 10 * x).batch(2)
    >>> [batch.tolist() for batch in data.as_numpy_iterator()]
    [[10, 20], [30, 40], [50]]
    """

    @staticmethod
    def _from_node(node: _nodes.Node, options: Options | None = None) -> Dataset:
        return Dataset(node, options)

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self.element_spec)

    @staticmethod
    def _spec_of_datasets(element_spec: Any) -> DatasetSpec:
        return DatasetSpec(element_spec)

    def _load_node(self, path: str, reader_func: Callable | None) -> _nodes.Node:
        return _load_node(path, reader_func)

    # Sources

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """Creates a dataset with a single element."""
        return Dataset(_sources.from_tensors(tensors))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """Creates a dataset with one element for each row of the tensors.

        >>> features, labels = [[1, 2], [3, 4]], ["a", "b"]
        >>> for x, y in tf.data.Dataset.from_tensor_slices((features, labels)):
        ...     print(x.numpy(), y.numpy())
        [1 2] b'a'
        [3 4] b'b'
        """
        return Dataset(_sources.from_slices(tensors))

    @staticmethod
    def from_generator(
        generator: Callable,
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """Creates a dataset from a Python generator. Each iteration calls `generator(*args)`."""
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        spec = resolve_signature(output_types, output_shapes, output_signature)
        arguments = [as_tensor(arg).numpy() for arg in args or ()]
        make = lambda _run: check_elements(generator(*arguments), spec)  # noqa: E731
        return Dataset(_nodes.FunctionSource(make, spec, _nodes.UNKNOWN_CARDINALITY, "FlatMap"))

    @staticmethod
    def range(*args: Any, **kwargs: Any) -> Dataset:
        """Creates a dataset of the numbers of Python's `range`, int64 or `output_type`."""
        return Dataset(_sources.from_range(args, kwargs))

    @staticmethod
    def counter(
        start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64, name: str | None = None
    ) -> Dataset:
        """Creates an infinite dataset `start`, `start + step`, ..."""
        return Dataset(_sources.counter_source(start, step, dtype))

    @staticmethod
    def random(
        seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Dataset:
        """Creates an infinite dataset of random numbers from 0 to 2**32 - 1."""
        return Dataset(
            _sources.random_numbers(Seeds(as_seed(seed), bool(rerandomize_each_iteration)))
        )

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: Any = None, name: str | None = None
    ) -> Dataset:
        """Creates a dataset of the file names that match one or several patterns.

        Each iteration has a different order, unless `shuffle` is false: then names are sorted.
        """
        names = Dataset.from_tensor_slices(_sources.match_files(file_pattern))
        return names if shuffle is False else names.shuffle(len(names), seed)

    @staticmethod
    def load(
        path: Any,
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Callable | None = None,
        wait: bool = False,
    ) -> Dataset:
        """Loads a dataset that `save` wrote to a directory.

        `reader_func` combines a dataset of the datasets of all shards; by default they are
        interleaved. With `wait`, it waits until the directory exists.
        """
        directory = os.fspath(path)
        while wait and not _saving.is_saved(directory):
            time.sleep(0.1)
        with tensorflow_errors(directory):
            node = _load_node(directory, reader_func)
        if element_spec is not None and common_spec(element_spec, node.spec) != element_spec:
            raise invalid(
                f"The elements in {directory} have the spec {node.spec}, which is not compatible "
                f"with the given element_spec {as_text(element_spec)}."
            )
        return Dataset(node)

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Zips several datasets. Elements have the structure of the argument."""
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
        options = functools.reduce(Options.merge, [leaf._options for leaf in flat])
        return Dataset(_nodes.Zip([leaf._node for leaf in flat], pack), options)

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = True
    ) -> Dataset:
        """Takes each element from the dataset whose index is the next of `choice_dataset`."""
        _check_not_empty(datasets)
        if not isinstance(choice_dataset, Dataset):
            raise TypeError(
                "Invalid `choice_dataset`. `choice_dataset` should be a `tf.data.Dataset` but is "
                f"{type(choice_dataset)}."
            )
        if not choice_dataset._node.spec_needs_call and choice_dataset.element_spec != _nodes.INT64:
            raise TypeError(
                "Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` "
                f"tensors but are {choice_dataset.element_spec}."
            )
        nodes = [node_of(dataset, "choose_from_datasets") for dataset in datasets]
        make = lambda choices, run: _mixing.choose_elements(  # noqa: E731
            nodes, map(int, choices), stop_on_empty_dataset, run
        )
        spec = lambda: _common_spec_of_all(nodes)  # noqa: E731
        return choice_dataset._transform(make, "DirectedInterleave", spec=spec, other_inputs=nodes)

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[Dataset],
        weights: Any = None,
        seed: Any = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:
        """Takes each element from a random dataset, with probabilities `weights`.

        `weights` may be a dataset, which has the weights for each element.
        """
        _check_not_empty(datasets)
        weights = _weights(weights, len(datasets))
        nodes = [node_of(dataset, "sample_from_datasets") for dataset in datasets]
        seeds = Seeds(as_seed(seed), bool(rerandomize_each_iteration))

        def make(_first: Any, run: Any) -> Any:
            rng, never = seeds.generator(run), ()
            if isinstance(weights, Dataset):
                choices = _mixing.draw_changing_choices(weights._node.open(run), rng)
            else:
                choices = _mixing.draw_choices(len(nodes), weights, rng)
                never = () if weights is None else np.flatnonzero(weights == 0).tolist()
            return _mixing.choose_elements(nodes, choices, stop_on_empty_dataset, run, never)

        spec = lambda: _common_spec_of_all(nodes)  # noqa: E731
        base = Dataset.counter().with_options(datasets[0].options())

        def cardinality(_: int) -> int:
            infinite = _nodes.INFINITE_CARDINALITY in [node.cardinality() for node in nodes]
            if infinite and not stop_on_empty_dataset:
                return _nodes.INFINITE_CARDINALITY
            return _nodes.UNKNOWN_CARDINALITY

        return base._transform(
            make,
            "DirectedInterleave",
            spec=spec,
            cardinality=cardinality,
            other_inputs=nodes,
            seeds=seeds,
        )

    # Properties

    @property
    def element_spec(self) -> Any:
        """The spec of elements: a `tf.TypeSpec` for each component.

        For `map` and similar methods, it is inferred by calling the function with dummy elements.
        """
        return self._node.spec

    def cardinality(self) -> Tensor:
        """Returns the number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""
        return wrap(np.int64(self._node.cardinality()))

    def fingerprint(self) -> Tensor:
        """Returns a 64-bit hash of the dataset, which is the same in other processes.

        It depends on the steps, the data, and the code and closures of functions.
        """
        return wrap(np.uint64(fingerprint(self._node)))

    def options(self) -> Options:
        """Returns the options of this dataset, which cannot be changed."""
        return self._options.freeze()

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """Returns this dataset with `options` for the following steps."""
        return Dataset(self._node, self._options.merge(options))

    def apply(self, transformation_func: Callable) -> Dataset:
        """Returns `transformation_func(self)`."""
        result = transformation_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(
                f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(result)}."
            )
        return result

    def as_numpy_iterator(self) -> NumpyIterator:
        """Returns an iterator over the elements as NumPy arrays."""
        if not self._node.spec_needs_call:
            for leaf in nest.flatten(self.element_spec):
                if isinstance(leaf, DatasetSpec):
                    raise TypeError("as_numpy_iterator() does not support values of type Dataset.")
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

    def _join_datasets(self, datasets: Sequence[Any]) -> DatasetList:
        return DatasetList(datasets)

    def __repr__(self) -> str:
        return f"<_{self._node.name}Dataset element_spec={self.element_spec!r}>"


class DatasetSpec(TypeSpec):
    """The spec of a dataset that is an element of another dataset, or of several of them."""

    __slots__ = ("_element_spec", "_shape")

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self._element_spec = element_spec
        self._shape = TensorShape(dataset_shape)

    @property
    def shape(self) -> TensorShape:
        """The number of datasets along each axis; `()` for one dataset."""
        return self._shape

    def _batch(self, size: int | None) -> DatasetSpec:
        return DatasetSpec(self._element_spec, TensorShape([size]).concatenate(self._shape))

    def _unbatch(self) -> DatasetSpec:
        if not self._shape.rank:
            raise ValueError(f"Cannot take rows of {self!r}. Expected a list of datasets.")
        return DatasetSpec(self._element_spec, self._shape[1:])

    @property
    def element_spec(self) -> Any:
        """The spec of the elements."""
        return self._element_spec

    @property
    def value_type(self) -> type:
        """`tf.data.Dataset`."""
        return Dataset

    def _sample(self, sample_index: int) -> Dataset:
        from retrograde.data._elements import _sample

        return Dataset.from_tensors(_sample(self._element_spec, sample_index)).repeat(
            2 + sample_index
        )

    def _serialize(self) -> tuple:
        return self._element_spec, self._shape


class DatasetList(CompositeTensor):
    """Several datasets in one component. Its rows are the datasets."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        self._datasets = list(datasets)

    def __getitem__(self, index: int) -> Any:
        return self._datasets[index]

    @property
    def shape(self) -> TensorShape:
        """The number of datasets along each axis."""
        return self._type_spec.shape

    @property
    def _type_spec(self) -> Any:
        first, *others = [dataset._type_spec for dataset in self._datasets]
        spec = first.most_specific_common_supertype(others)
        if spec is None:
            raise ValueError(
                "Datasets in a list must have compatible element specs. Received: "
                f"{', '.join(map(str, (first, *others)))}."
            )
        return spec._batch(len(self._datasets))

    def _join_datasets(self, values: Sequence[Any]) -> DatasetList:
        return DatasetList(values)

    def _components(self) -> Sequence[Tensor]:
        return ()

    def _with_components(self, components: Any) -> DatasetList:
        return self


# Helpers


def _load_node(path: str, reader_func: Callable | None) -> _nodes.Node:
    """Returns a node with the elements of a directory."""
    shards = [Dataset(node) for node in _saving.shards(path)]
    spec = shards[0].element_spec
    if reader_func is not None:
        shard_source = _nodes.FunctionSource(
            lambda _run: shards, DatasetSpec(spec), len(shards), "Load"
        )
        return call_to_dataset(reader_func, Dataset(shard_source))._node
    make = lambda run: _transforms.InterleavedElements(iter(shards), len(shards), 1, False, run)  # noqa: E731
    return _nodes.FunctionSource(make, spec, sum(map(len, shards)), "Load")


def _weights(weights: Any, count: int) -> Any:
    """Converts the weights of `count` datasets to an array, unless they are a dataset."""
    if weights is None or isinstance(weights, Dataset):
        return weights
    if isinstance(weights, range):  # may be too long for `len`
        weights = to_list("sample_from_datasets", weights)
    if len(weights) != count:
        raise ValueError(
            "Invalid `weights`. `weights` should have the same length as `datasets` but got "
            f"`len(weights)={len(weights)}` vs. `len(datasets)={count}`."
        )
    tensor = as_tensor(weights)
    if tensor.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(
            "Invalid `weights`. `weights` type must be either `tf.float32` or `tf.float64` but is "
            f"{tensor.dtype!r}."
        )
    return np.asarray(tensor._array)


def _check_not_empty(datasets: Sequence[Dataset]) -> None:
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")


def _common_spec_of_all(nodes: Sequence[_nodes.Node]) -> Any:
    spec = nodes[0].spec
    for node in nodes[1:]:
        spec = spec and common_spec(spec, node.spec)
    if spec is None:
        specs = ", ".join(str(node.spec) for node in nodes)
        raise TypeError(
            f"Invalid `datasets`. `datasets` must have compatible element specs. Received: {specs}."
        )
    return spec
