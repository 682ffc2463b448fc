"""The methods of `Dataset` that transform, select or reorder elements."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from retrograde.data import _nodes, _saving, _transforms
from retrograde.data._base import BaseDataset, as_seed, call_to_dataset, node_of
from retrograde.data._elements import call, common_spec, infer_spec, normalize
from retrograde.data._fingerprint import fingerprint
from retrograde.data._seeds import Seeds
from retrograde.io.files import tensorflow_errors
from retrograde.ops.arguments import integer
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid

if TYPE_CHECKING:
    from retrograde.data.dataset import Dataset


class ElementMethods(BaseDataset):
    """Methods that transform, select or reorder elements."""

    # Elementwise transformations

    def map(
        self,
        map_func: Callable,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Applies `map_func` to each element, on threads if `num_parallel_calls` is given.

        A tuple is passed as several arguments. Results keep their order unless `deterministic` is
        false.

        >>> data = tf.data.Dataset.zip(tf.data.Dataset.range(3), tf.data.Dataset.range(5, 8))
        >>> list(data.map(lambda a, b: a * b).as_numpy_iterator())
        [np.int64(0), np.int64(6), np.int64(14)]
        """
        if not callable(map_func):
            raise ValueError(f"`map_func` must be callable. Received: {shown(map_func)}.")
        calls = _check_parallel_calls(num_parallel_calls)
        deterministic = self._options.deterministic if deterministic is None else deterministic
        return self._derive(
            _nodes.Map(self._node, _transforms.as_element_function(map_func), calls, deterministic)
        )

    def filter(self, predicate: Callable, name: str | None = None) -> Dataset:
        """Keeps the elements for which `predicate` is true."""
        keep = functools.partial(_transforms.evaluate_predicate, predicate)
        return self._transform(lambda elements, _run: filter(keep, elements), "Filter")

    def take_while(self, predicate: Callable, name: str | None = None) -> Dataset:
        """Stops at the first element for which `predicate` is false."""
        keep = functools.partial(_transforms.evaluate_predicate, predicate)
        return self._transform(
            lambda elements, _run: _transforms.take_while_true(keep, elements), "TakeWhile"
        )

    def flat_map(self, map_func: Callable, name: str | None = None) -> Dataset:
        """Concatenates the datasets that `map_func` returns."""
        return self._interleave_datasets(map_func, 1, 1, False, "FlatMap")

    def interleave(
        self,
        map_func: Callable,
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Interleaves `cycle_length` datasets of `map_func`, `block_length` elements at a time.

        >>> data = tf.data.Dataset.range(1, 4).interleave(
        ...     lambda x: tf.data.Dataset.from_tensors(x).repeat(2), cycle_length=2
        ... )
        >>> [int(x) for x in data]
        [1, 2, 1, 2, 3, 3]
        """
        calls = _check_parallel_calls(num_parallel_calls)
        cycle = (
            _default_cycle_length(calls)
            if cycle_length is None
            else _nodes.threads(integer(cycle_length, "cycle_length", TypeError))
        )
        block = 1 if block_length is None else integer(block_length, "block_length", TypeError)
        _nodes.check_positive(cycle, "interleave: cycle_length")
        _nodes.check_positive(block, "interleave: block_length")
        return self._interleave_datasets(map_func, cycle, block, calls is not None, "Interleave")

    def _interleave_datasets(
        self, map_func: Callable, cycle: int, block: int, prefetch: bool, name: str
    ) -> Any:
        make = functools.partial(call_to_dataset, map_func)
        spec = lambda: infer_spec(make, self._node.spec, self._node.first).element_spec  # noqa: E731
        step = lambda elements, run: _transforms.InterleavedElements(  # noqa: E731
            map(make, elements), cycle, block, prefetch, run
        )
        cardinality = _nodes.only_infinite if prefetch else _nodes.unknown_count
        dataset = self._transform(
            step, name, spec=spec, cardinality=cardinality, spec_needs_call=True
        )
        dataset._node.make_dataset = make
        return dataset

    def scan(self, initial_state: Any, scan_func: Callable, name: str | None = None) -> Dataset:
        """Returns the outputs of `state, output = scan_func(state, element)`."""
        start = normalize(initial_state)
        function = lambda element: _transforms.scan_step(scan_func, start, element)[1]  # noqa: E731
        spec = lambda: infer_spec(function, self._node.spec, self._node.first)  # noqa: E731
        step = lambda elements, _run: _transforms.scan(scan_func, start, elements)  # noqa: E731
        return self._transform(
            step, "Scan", spec=spec, cardinality=_nodes.preserve_count, spec_needs_call=True
        )

    def enumerate(self, start: Any = 0, name: str | None = None) -> Dataset:
        """Pairs each element with its index, starting at `start`."""
        return self.zip(self.counter(start), self)

    def unique(self, name: str | None = None) -> Dataset:
        """Drops repeated elements."""
        return self._transform(lambda elements, _run: _transforms.unique(elements), "Unique")

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """Drops elements that raise an error."""
        return self._transform(
            lambda elements, _run: _transforms.skip_errors(elements), "IgnoreErrors"
        )

    # Selection and order

    def take(self, count: Any, name: str | None = None) -> Dataset:
        """Returns the first `count` elements, or all if `count` is negative."""
        return self._derive(_nodes.Take(self._node, integer(count, "count", TypeError)))

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """Skips the first `count` elements, or all if `count` is negative."""
        return self._derive(_nodes.Skip(self._node, integer(count, "count", TypeError)))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Returns every `num_shards`-th element, starting at `index`."""
        shards, shard_index = (
            integer(num_shards, "num_shards", TypeError),
            integer(index, "index", TypeError),
        )
        _nodes.check_positive(shards, "shard: num_shards")
        if not 0 <= shard_index < shards:
            raise invalid(
                f"shard: index must be between 0 and {shards - 1}. Received: index {shard_index}."
            )
        return self._derive(_nodes.Shard(self._node, shards, shard_index))

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """Repeats the elements `count` times, or forever by default.

        >>> [int(x) for x in tf.data.Dataset.range(2).repeat(3)]
        [0, 1, 0, 1, 0, 1]
        """
        times = -1 if count is None else integer(count, "count", TypeError)
        return self._derive(_nodes.Repeat(self._node, times))

    def shuffle(
        self,
        buffer_size: Any,
        seed: Any = None,
        reshuffle_each_iteration: bool = True,
        name: str | None = None,
    ) -> Dataset:
        """Draws elements at random from a buffer of `buffer_size`.

        A buffer that holds all elements gives a uniform shuffle. Each iteration has a different
        order unless `reshuffle_each_iteration=False`.

        >>> data = tf.data.Dataset.range(5).shuffle(5)
        >>> sorted(int(x) for x in data)
        [0, 1, 2, 3, 4]
        """
        size = integer(buffer_size, "buffer_size", TypeError)
        if size != _nodes.UNKNOWN_CARDINALITY and size < 1:
            raise invalid(
                "shuffle: buffer_size must be greater than zero or UNKNOWN_CARDINALITY. "
                f"Received: {size}."
            )
        seeds = Seeds(as_seed(seed), reshuffle_each_iteration is not False)
        return self._derive(_nodes.Shuffle(self._node, None if size < 0 else size, seeds))

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """Caches the elements of the first complete iteration for all later ones.

        The cache is in memory, or in the directory `filename`. A directory is also used by other
        processes, regardless of their dataset, until it is deleted.
        """
        if filename:
            return self._cache_on_disk(os.fspath(filename), "Cache")
        return self._derive(_nodes.Cache(self._node))

    def snapshot(
        self,
        path: Any,
        compression: str = "AUTO",
        reader_func: Callable | None = None,
        shard_func: Callable | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Caches the elements of the first complete iteration in a subdirectory of `path`.

        Each dataset has its own subdirectory, named by its `fingerprint`.
        """
        shard_index = os.path.join(os.fspath(path), f"{fingerprint(self._node):016x}")
        return self._cache_on_disk(shard_index, "Snapshot", reader_func, shard_func)

    def _cache_on_disk(
        self,
        path: str,
        name: str,
        reader_func: Callable | None = None,
        shard_func: Callable | None = None,
    ) -> Any:
        read = lambda directory: self._load_node(directory, reader_func)  # noqa: E731
        return self._derive(
            _saving.DiskCache(self._node, path, name, _shard_function(shard_func), read)
        )

    def save(
        self,
        path: Any,
        compression: str | None = None,
        shard_func: Callable | None = None,
        checkpoint_args: Any = None,
    ) -> None:
        """Saves all elements to a directory, which appears once it is complete.

        `shard_func` returns the shard of an element. Files are not compressed.

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/numbers"
        >>> tf.data.Dataset.range(3).save(path)
        >>> [int(x) for x in tf.data.Dataset.load(path)]
        [0, 1, 2]
        """
        if checkpoint_args is not None:
            raise NotImplementedError("save: `checkpoint_args` is not supported. Omit it.")
        directory = os.fspath(path)
        with tensorflow_errors(directory):
            _saving.save(iter(self), directory, self._node, _shard_function(shard_func))

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Dataset:
        """Computes up to `buffer_size` elements ahead of time in a thread."""
        size = (
            _nodes.AUTOTUNE
            if buffer_size is None
            else integer(buffer_size, "buffer_size", TypeError)
        )
        if size < _nodes.AUTOTUNE:
            raise invalid(f"prefetch: buffer_size must be >= 0 or AUTOTUNE. Received: {size}.")
        return self._derive(_nodes.Prefetch(self._node, size))

    def concatenate(self, dataset: BaseDataset, name: str | None = None) -> Dataset:
        """Appends the elements of another dataset."""
        nodes = self._node, node_of(dataset, "concatenate")
        if not any(node.spec_needs_call for node in nodes):
            _common(*nodes)
        return self._derive(_nodes.Concatenate(*nodes, lambda: _common(*nodes)))


def _shard_function(shard_func: Callable | None) -> Callable | None:
    return shard_func and (lambda element: integer(call(shard_func, element), "shard_func"))


def _check_parallel_calls(num_parallel_calls: Any) -> int | None:
    if num_parallel_calls is None:
        return None
    calls = integer(num_parallel_calls, "num_parallel_calls", TypeError)
    if calls != _nodes.AUTOTUNE:
        _nodes.check_positive(calls, "num_parallel_calls")
    return calls


def _default_cycle_length(num_parallel_calls: int | None) -> int:
    cores = _nodes.available_cores()
    if num_parallel_calls is None:
        return cores
    if num_parallel_calls == _nodes.AUTOTUNE:
        return (cores + 2) // 3
    return min(num_parallel_calls, cores)


def _common(first: _nodes.Node, second: _nodes.Node) -> Any:
    spec = common_spec(first.spec, second.spec)
    if spec is None:
        raise TypeError(f"Incompatible dataset elements:\n  {first.spec} vs.   {second.spec}")
    return spec
