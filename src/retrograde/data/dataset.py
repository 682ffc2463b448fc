"""Dataset: elements one after the other, made as they are asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.arrays._arguments import integer
from retrograde.core import dtypes, nest
from retrograde.core.composites import CompositeTensor
from retrograde.core.errors import invalid
from retrograde.core.shapes import TensorShape
from retrograde.core.spec import TensorSpec, TypeSpec
from retrograde.core.tensor import Tensor, wrap
from retrograde.data import _mixing, _nodes, _rows
from retrograde.data._generators import checked, signature
from retrograde.data._padding import padded, padded_spec
from retrograde.data._structure import (
    call,
    common_spec,
    element_of,
    from_function,
    map_specs,
    normalise,
    row_counts,
    row_spec,
    rows_of,
    spec_by_trial,
    spec_of_element,
)
from retrograde.data.iterator import Iterator as DatasetIterator
from retrograde.data.iterator import NumpyIterator
from retrograde.data.options import Options
from retrograde.ops.conversion import as_tensor


class Dataset(CompositeTensor):
    """Elements one after the other: tensors, or tuples and dicts of them.

    A dataset is a description. Each `iter()` makes one pass of its own; nothing is computed before
    an element is asked for. Its methods make new datasets. No tape follows what functions given to
    them do.

    >>> data = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4, 5])
    >>> data = data.map(lambda x: 10 * x).batch(2)
    >>> [batch.tolist() for batch in data.as_numpy_iterator()]
    [[10, 20], [30, 40], [50]]
    """

    _instead = "Take its elements with a loop."

    def __init__(self, node: _nodes.Node, options: Options | None = None) -> None:
        self._node = node
        self._options = options or Options()

    def _then(self, node: _nodes.Node) -> Dataset:
        return Dataset(node, self._options)

    def _components(self) -> Sequence[Tensor]:
        return ()

    def _with_components(self, components: Iterator[Any]) -> Dataset:
        return self

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self.element_spec)

    # Where elements come from

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """One element."""
        flat, pack = element_of(tensors)
        element = pack(flat)
        return Dataset(_nodes.Made(lambda: [element], spec_of_element(element), 1, "Tensor"))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """The rows of tensors, along their first axes."""
        flat, pack = element_of(tensors)
        counts = row_counts(flat)
        if len(counts) > 1:
            raise ValueError(
                f"Dimensions {' and '.join(map(str, sorted(counts)))} are not compatible. Expected "
                "tensors with first axes of one size."
            )
        (count,) = counts
        spec = map_specs(row_spec, spec_of_element(pack(flat)))
        if all(type(leaf) is Tensor for leaf in flat):
            source = _rows.Slices([np.asarray(leaf._array) for leaf in flat], pack)
            return Dataset(_nodes.Slices(source, count, spec))
        return Dataset(_nodes.Made(lambda: _rows_together(flat, pack), spec, count, "TensorSlice"))

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
        make = lambda: checked(generator(*arguments), spec)  # noqa: E731
        return Dataset(_nodes.Made(make, spec, _nodes.UNKNOWN, "FlatMap"))

    @staticmethod
    def range(*args: Any, **kwargs: Any) -> Dataset:
        """The numbers of Python's `range`, as int64 or as `output_type`."""
        if not 1 <= len(args) <= 3:
            raise ValueError(
                "Invalid `args`. The length of `args` should be between 1 and 3 but was "
                f"{len(args)}."
            )
        numbers = [integer(value, "range", TypeError) for value in args]
        if len(numbers) == 3 and not numbers[2]:
            raise invalid("range: step must be a non-zero integer. Received: 0.")
        span = range(*numbers)
        dtype = dtypes.as_dtype(kwargs.get("output_type", dtypes.int64))
        source = _rows.Numbers(span.start, span.step, dtype.numpy_dtype)
        return Dataset(_nodes.Slices(source, len(span), TensorSpec([], dtype), "Range"))

    @staticmethod
    def counter(
        start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64, name: str | None = None
    ) -> Dataset:
        """`start`, `start + step` and so on without end."""
        dtype = dtypes.as_dtype(dtype)
        first, by = integer(start, "start"), integer(step, "step")
        source = _rows.Numbers(first, by, dtype.numpy_dtype)
        return Dataset(_nodes.Slices(source, None, TensorSpec([], dtype), "Counter"))

    @staticmethod
    def random(
        seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Dataset:
        """Random numbers from 0 to 2**32 - 1 without end."""
        seeds = _nodes.Seeds(_seed(seed), bool(rerandomize_each_iteration))
        draw = lambda rng: (wrap(np.int64(rng.integers(1 << 32))) for _ in iter(int, 1))  # noqa: E731
        make = lambda: draw(seeds.generator())  # noqa: E731
        return Dataset(_nodes.Made(make, _nodes.INT64, _nodes.INFINITE, "Random"))

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Elements of several datasets side by side, in the structure that these are given in."""
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        if args and datasets is not None:
            raise TypeError("Both `*args` and `datasets` cannot be set.")
        structure = datasets if not args else args[0] if len(args) == 1 else args
        flat, pack = nest.flatten_with_pack(structure)
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
        if not choice_dataset._node.tries and choice_dataset.element_spec != _nodes.INT64:
            raise TypeError(
                "Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` "
                f"tensors but are {choice_dataset.element_spec}."
            )
        nodes = [dataset._node for dataset in datasets]
        make = lambda choices, run: _mixing.chosen(  # noqa: E731
            nodes, map(int, choices), stop_on_empty_dataset, run
        )
        tries = any(node.tries for node in nodes)
        spec = lambda: _all_common(nodes)  # noqa: E731
        return choice_dataset._stream(make, "DirectedInterleave", spec=spec, tries=tries)

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
        if weights is not None and len(weights) != len(datasets):
            raise ValueError(
                "Invalid `weights`. `weights` should have the same length as `datasets` but got "
                f"`len(weights)={len(weights)}` vs. `len(datasets)={len(datasets)}`."
            )
        nodes = [dataset._node for dataset in datasets]
        seeds = _nodes.Seeds(_seed(seed), bool(rerandomize_each_iteration))
        make = lambda _first, run: _mixing.chosen(  # noqa: E731
            nodes,
            _mixing.drawn(len(nodes), weights, seeds.generator()),
            stop_on_empty_dataset,
            run,
        )
        spec = lambda: _all_common(nodes)  # noqa: E731
        tries = any(node.tries for node in nodes)
        base = Dataset.counter().with_options(datasets[0].options())
        return base._stream(make, "DirectedInterleave", spec=spec, tries=tries)

    # One element after the other

    def map(
        self,
        map_func: Callable,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """`map_func` of each element, on threads ahead of time if `num_parallel_calls` is given.

        A tuple comes as several arguments. Results keep their order unless `deterministic` is
        false.

        >>> data = tf.data.Dataset.zip(tf.data.Dataset.range(3), tf.data.Dataset.range(5, 8))
        >>> list(data.map(lambda a, b: a * b).as_numpy_iterator())
        [np.int64(0), np.int64(6), np.int64(14)]
        """
        if not callable(map_func):
            raise ValueError(f"`map_func` must be callable. Received: {map_func!r}.")
        calls = _parallel(num_parallel_calls)
        in_order = self._options.deterministic if deterministic is None else deterministic
        return self._then(_nodes.Map(self._node, _on_element(map_func), calls, in_order))

    def filter(self, predicate: Callable, name: str | None = None) -> Dataset:
        """The elements for which `predicate` is true."""
        keep = functools.partial(_truth, predicate, "predicate")
        return self._stream(lambda elements, _run: filter(keep, elements), "Filter")

    def take_while(self, predicate: Callable, name: str | None = None) -> Dataset:
        """The elements before the first for which `predicate` is false."""
        keep = functools.partial(_truth, predicate, "predicate")
        return self._stream(lambda elements, _run: _while(keep, elements), "TakeWhile")

    def flat_map(self, map_func: Callable, name: str | None = None) -> Dataset:
        """The elements of the datasets that `map_func` returns, one dataset after the other."""
        return self._joined(map_func, 1, 1, False, "FlatMap")

    def interleave(
        self,
        map_func: Callable,
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """`block_length` elements at a time of each of `cycle_length` datasets in turn.

        >>> data = tf.data.Dataset.range(1, 4).interleave(
        ...     lambda x: tf.data.Dataset.from_tensors(x).repeat(2), cycle_length=2
        ... )
        >>> [int(x) for x in data]
        [1, 2, 1, 2, 3, 3]
        """
        cycle = _nodes.AUTOTUNE if cycle_length is None else integer(cycle_length, "cycle_length")
        cycle = _nodes.threads(cycle)
        block = 1 if block_length is None else integer(block_length, "block_length")
        _nodes.check_positive(cycle, "interleave: cycle_length")
        _nodes.check_positive(block, "interleave: block_length")
        ahead = _parallel(num_parallel_calls) is not None
        return self._joined(map_func, cycle, block, ahead, "Interleave")

    def _joined(
        self, map_func: Callable, cycle: int, block: int, ahead: bool, name: str
    ) -> Dataset:
        make = functools.partial(_dataset_of, map_func)
        spec = lambda: spec_by_trial(make, self._node.spec, self._node.first).element_spec  # noqa: E731
        step = lambda elements, run: _nodes.interleaved(  # noqa: E731
            map(make, elements), cycle, block, ahead, run
        )
        return self._stream(step, name, spec=spec, tries=True)

    def scan(self, initial_state: Any, scan_func: Callable, name: str | None = None) -> Dataset:
        """What `scan_func(state, element)` returns beside the next state, element by element."""
        start = normalise(initial_state)
        function = lambda element: _scanned(scan_func, start, element)[1]  # noqa: E731
        spec = lambda: spec_by_trial(function, self._node.spec, self._node.first)  # noqa: E731
        step = lambda elements, _run: _scan(scan_func, start, elements)  # noqa: E731
        return self._stream(step, "Scan", spec=spec, cardinality=_nodes.same_count, tries=True)

    def enumerate(self, start: Any = 0, name: str | None = None) -> Dataset:
        """Pairs of a number and an element."""
        return Dataset.zip(Dataset.counter(start), self)

    def unique(self, name: str | None = None) -> Dataset:
        """Each element once, where it comes first."""
        return self._stream(lambda elements, _run: _unique(elements), "Unique")

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """The elements that can be made without an error."""
        return self._stream(lambda elements, _run: _nodes.surviving(elements), "IgnoreErrors")

    def _stream(self, make: Callable, name: str, **described: Any) -> Dataset:
        return self._then(_nodes.Stream(self._node, make, name, **described))

    # Which elements, and in what order

    def take(self, count: Any, name: str | None = None) -> Dataset:
        """The first `count` elements; all if it is negative."""
        return self._then(_nodes.Take(self._node, integer(count, "count")))

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """All but the first `count` elements; none if it is negative."""
        return self._then(_nodes.Skip(self._node, integer(count, "count")))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Every `num_shards`th element, from the one at `index` on."""
        shards, place = integer(num_shards, "num_shards"), integer(index, "index")
        _nodes.check_positive(shards, "shard: num_shards")
        if not 0 <= place < shards:
            raise invalid(
                f"shard: index must be between 0 and {shards - 1}. Received: index {place}."
            )
        return self._then(_nodes.Shard(self._node, shards, place))

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """All elements `count` times; by default without end."""
        times = -1 if count is None else integer(count, "count")
        return self._then(_nodes.Repeat(self._node, times))

    def shuffle(
        self,
        buffer_size: Any,
        seed: Any = None,
        reshuffle_each_iteration: bool = True,
        name: str | None = None,
    ) -> Dataset:
        """Elements drawn from a buffer of `buffer_size`, in another order for each pass.

        A buffer that holds all elements makes every order equally likely.
        """
        size = integer(buffer_size, "buffer_size")
        if size != _nodes.UNKNOWN and size < 1:
            raise invalid(
                "shuffle: buffer_size must be greater than zero or UNKNOWN_CARDINALITY. "
                f"Received: {size}."
            )
        seeds = _nodes.Seeds(_seed(seed), reshuffle_each_iteration is not False)
        return self._then(_nodes.Shuffle(self._node, None if size < 0 else size, seeds))

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """What the first whole pass yields, kept in memory for all later ones."""
        if filename:
            raise NotImplementedError("cache keeps elements in memory only. Leave `filename` out.")
        return self._then(_nodes.Cache(self._node))

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Dataset:
        """The same elements, up to `buffer_size` of them made ahead of time by a thread."""
        size = _nodes.AUTOTUNE if buffer_size is None else integer(buffer_size, "buffer_size")
        if size < _nodes.AUTOTUNE:
            raise invalid(f"prefetch: buffer_size must be >= 0 or AUTOTUNE. Received: {size}.")
        step = lambda elements, run: _nodes.prefetched(elements, size, run)  # noqa: E731
        return self._stream(step, "Prefetch", cardinality=_nodes.same_count)

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """The elements of this dataset and then those of another."""
        nodes = self._node, dataset._node
        if not any(node.tries for node in nodes):
            _common(*nodes)
        return self._then(_nodes.Concatenate(*nodes, lambda: _common(*nodes)))

    # Many elements as one

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Elements stacked, `batch_size` at a time."""
        return self._batched(batch_size, drop_remainder)

    def _batched(self, batch_size: Any, drop: Any, stack: Callable | None = None) -> Dataset:
        size = integer(batch_size, "batch_size")
        _nodes.check_positive(size, "batch: batch_size")
        return self._then(_nodes.Batch(self._node, size, bool(drop), stack))

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Elements stacked after each is padded, to `padded_shapes` or to the longest of a batch.

        >>> data = tf.data.Dataset.range(1, 4).map(lambda n: tf.fill([n], n)).padded_batch(3)
        >>> next(iter(data)).numpy().tolist()
        [[1, 0, 0], [2, 2, 0], [3, 3, 3]]
        """
        stack = functools.partial(padded, shapes=padded_shapes, values=padding_values)
        batches = self._batched(batch_size, drop_remainder, stack)
        size = batches._node.size if drop_remainder else None
        batches._node.find_spec = lambda: padded_spec(self._node.spec, padded_shapes, size)
        return batches

    def unbatch(self, name: str | None = None) -> Dataset:
        """The rows of elements, one by one."""
        spec = lambda: map_specs(row_spec, self._node.spec)  # noqa: E731
        if not self._node.tries:
            spec()
        return self._stream(lambda elements, _run: _unbatched(elements), "Unbatch", spec=spec)

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: Any = None) -> Dataset:
        """Batches of another size."""
        return self.unbatch().batch(batch_size, drop_remainder)

    def window(
        self,
        size: Any,
        shift: Any = None,
        stride: Any = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Datasets of `size` elements that are `stride` apart, one window every `shift`."""
        size, stride = integer(size, "size"), integer(stride, "stride")
        shift = size if shift is None else integer(shift, "shift")
        for what, value in (("size", size), ("shift", shift), ("stride", stride)):
            _nodes.check_positive(value, f"window: {what}")
        reach = (size - 1) * stride + 1
        spec = lambda: map_specs(DatasetSpec, self._node.spec)  # noqa: E731
        as_datasets = lambda part: _window(part, self._node)  # noqa: E731
        return self._stream(
            lambda elements, _run: map(
                as_datasets, _windows(elements, reach, shift, stride, drop_remainder)
            ),
            "Window",
            spec=spec,
            cardinality=lambda n: _window_count(n, reach, shift, drop_remainder),
        )

    def group_by_window(
        self,
        key_func: Callable,
        reduce_func: Callable,
        window_size: Any = None,
        window_size_func: Callable | None = None,
        name: str | None = None,
    ) -> Dataset:
        """The elements of `reduce_func(key, window)`, for windows of elements that share a key."""
        if (window_size is None) == (window_size_func is None):
            raise ValueError(
                "Either the `window_size` argument or the `window_size_func` argument must be "
                "specified, and not both."
            )
        size = (lambda _key: window_size) if window_size_func is None else window_size_func

        def reduce(key: int, elements: list) -> _nodes.Node:
            window = Dataset(
                _nodes.Made(lambda: elements, self._node.spec, len(elements), "Window")
            )
            return _dataset_of(reduce_func, (wrap(np.int64(key)), window))._node

        return self._stream(
            lambda elements, run: _mixing.by_key(
                elements, key_func, reduce, lambda key: int(size(wrap(np.int64(key)))), run
            ),
            "GroupByWindow",
            spec=lambda: reduce(0, [self._node.first()]).spec,
            tries=True,
        )

    def reduce(self, initial_state: Any, reduce_func: Callable, name: str | None = None) -> Any:
        """The last state, of those that `reduce_func(state, element)` makes one by one."""
        state = normalise(initial_state)
        for element in self:
            following = from_function(reduce_func(state, element))
            _check_state("reduce_func", state, following)
            state = following
        return state

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element."""
        elements = list(self.take(2))
        if len(elements) != 1:
            problem = "had more than one element" if elements else "was empty"
            raise invalid(f"Dataset {problem}. Expected exactly one element.")
        return elements[0]

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
        if count == _nodes.INFINITE:
            raise TypeError("The dataset is infinite.")
        if count == _nodes.UNKNOWN:
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


def _seed(seed: Any) -> int | None:
    return None if seed is None else integer(seed, "seed")


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


def _parallel(num_parallel_calls: Any) -> int | None:
    if num_parallel_calls is None:
        return None
    calls = integer(num_parallel_calls, "num_parallel_calls")
    if calls != _nodes.AUTOTUNE:
        _nodes.check_positive(calls, "num_parallel_calls")
    return calls


def _on_element(function: Callable) -> Callable:
    return lambda element: from_function(call(function, element))


def _truth(predicate: Callable, what: str, element: Any) -> bool:
    result = from_function(call(predicate, element))
    if type(result) is not Tensor or result._array.dtype != bool or result._array.ndim:
        raise ValueError(
            f"Invalid `{what}`. `{what}` must return a `tf.bool` scalar tensor, but its return "
            f"type is {spec_of_element(result)}."
        )
    return bool(result._array)


def _while(keep: Callable, elements: Iterator) -> Iterator:
    for element in elements:
        if not keep(element):
            return
        yield element


def _dataset_of(map_func: Callable, element: Any) -> Dataset:
    result = call(map_func, element)
    if not isinstance(result, Dataset):
        raise TypeError(
            "Invalid `map_func`. `map_func` must return a `tf.data.Dataset` object. Got "
            f"{type(result)}."
        )
    return result


def _scanned(scan_func: Callable, state: Any, element: Any) -> tuple:
    result = scan_func(state, element)
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(
            "Invalid `scan_func`. `scan_func` should return a pair consisting of new state and the "
            f"output value but it returned {result!r}."
        )
    following, output = map(from_function, result)
    _check_state("scan_func", state, following)
    return following, output


def _scan(scan_func: Callable, state: Any, elements: Iterator) -> Iterator:
    for element in elements:
        state, output = _scanned(scan_func, state, element)
        yield output


def _check_state(what: str, state: Any, following: Any) -> None:
    before, after = spec_of_element(state), spec_of_element(following)
    if common_spec(before, after) is None:
        raise TypeError(
            f"Invalid `{what}`. The element types for the new state must match the initial state. "
            f"Expected {before}, got {after}."
        )


def _unique(elements: Iterator) -> Iterator:
    seen = set()
    for element in elements:
        if type(element) is not Tensor:
            raise invalid("unique: only elements that are one tensor are supported.")
        array = np.asarray(element._array)
        if array.dtype not in (np.int32, np.int64, np.dtype(object)):
            raise TypeError(
                f"`tf.data.Dataset.unique` does not support type {element.dtype!r} -- only "
                "`tf.int32`, `tf.int64`, and `tf.string` are supported."
            )
        key = (array.shape, tuple(array.reshape(-1).tolist()))
        if key not in seen:
            seen.add(key)
            yield element


def _rows_together(flat: Sequence[Any], pack: Callable) -> Iterator:
    return (pack(list(row)) for row in zip(*map(rows_of, flat), strict=False))


def _unbatched(elements: Iterator) -> Iterator:
    for element in elements:
        flat, pack = nest.flatten_with_pack(element)
        counts = row_counts(flat)
        if len(counts) > 1:
            raise ValueError(
                "`unbatch()` is only supported for datasets of elements whose components have a "
                f"matching leading dimension. Encountered {sorted(counts)}."
            )
        yield from _rows_together(flat, pack)


def _common(first: _nodes.Node, second: _nodes.Node) -> Any:
    found = common_spec(first.spec, second.spec)
    if found is None:
        raise TypeError(f"Incompatible dataset elements:\n  {first.spec} vs.   {second.spec}")
    return found


def _windows(elements: Iterator, reach: int, shift: int, stride: int, drop: bool) -> Iterator[list]:
    """Lists of elements, each beginning `shift` after the one before."""
    buffer: list = []
    ahead = 0  # elements before the next window that are still to come
    for element in elements:
        if ahead:
            ahead -= 1
            continue
        buffer.append(element)
        if len(buffer) == reach:
            yield buffer[::stride]
            ahead = max(shift - reach, 0)
            del buffer[:shift]
    while buffer and not drop:
        yield buffer[::stride]
        del buffer[:shift]


def _window_count(n: int, reach: int, shift: int, drop: bool) -> int:
    if n < 0:
        return n
    return max(0, (n - reach) // shift + 1) if drop else -(-n // shift)


def _window(elements: list, node: _nodes.Node) -> Any:
    """A dataset for each part of these elements."""
    _, pack = nest.flatten_with_pack(elements[0])
    columns = zip(*map(nest.flatten, elements), strict=True)
    return pack([_listed(list(column)) for column in columns])


def _listed(column: list) -> Dataset:
    spec = functools.reduce(
        common_spec, map(spec_of_element, column[1:]), spec_of_element(column[0])
    )
    return Dataset(_nodes.Made(lambda: column, spec, len(column), "Window"))
