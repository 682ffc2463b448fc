"""The methods of `Dataset` that take elements one after the other, or choose and order them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from retrograde.data import _nodes, _saving, _steps
from retrograde.data._base import BaseDataset, as_seed, dataset_of, node_of
from retrograde.data._fingerprint import fingerprint
from retrograde.data._seeds import Seeds
from retrograde.data._structure import call, common_spec, normalise, spec_by_trial
from retrograde.io.files import tensorflow_errors
from retrograde.ops.arguments import integer
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid


class ElementSteps(BaseDataset):
    """Steps from elements to elements."""

    # One element after the other

    def map(
        self,
        map_func: Callable,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Any:
        """`map_func` of each element, on threads ahead of time if `num_parallel_calls` is given.

        A tuple comes as several arguments. Results keep their order unless `deterministic` is
        false.

        >>> data = tf.data.Dataset.zip(tf.data.Dataset.range(3), tf.data.Dataset.range(5, 8))
        >>> list(data.map(lambda a, b: a * b).as_numpy_iterator())
        [np.int64(0), np.int64(6), np.int64(14)]
        """
        if not callable(map_func):
            raise ValueError(f"`map_func` must be callable. Received: {shown(map_func)}.")
        calls = _parallel(num_parallel_calls)
        in_order = self._options.deterministic if deterministic is None else deterministic
        return self._then(_nodes.Map(self._node, _steps.on_element(map_func), calls, in_order))

    def filter(self, predicate: Callable, name: str | None = None) -> Any:
        """The elements for which `predicate` is true."""
        keep = functools.partial(_steps.truth, predicate)
        return self._stream(lambda elements, _run: filter(keep, elements), "Filter")

    def take_while(self, predicate: Callable, name: str | None = None) -> Any:
        """The elements before the first for which `predicate` is false."""
        keep = functools.partial(_steps.truth, predicate)
        return self._stream(lambda elements, _run: _steps.while_true(keep, elements), "TakeWhile")

    def flat_map(self, map_func: Callable, name: str | None = None) -> Any:
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
    ) -> Any:
        """`block_length` elements at a time of each of `cycle_length` datasets in turn.

        >>> data = tf.data.Dataset.range(1, 4).interleave(
        ...     lambda x: tf.data.Dataset.from_tensors(x).repeat(2), cycle_length=2
        ... )
        >>> [int(x) for x in data]
        [1, 2, 1, 2, 3, 3]
        """
        cycle = (
            _nodes.AUTOTUNE
            if cycle_length is None
            else integer(cycle_length, "cycle_length", TypeError)
        )
        cycle = _nodes.threads(cycle)
        block = 1 if block_length is None else integer(block_length, "block_length", TypeError)
        _nodes.check_positive(cycle, "interleave: cycle_length")
        _nodes.check_positive(block, "interleave: block_length")
        ahead = _parallel(num_parallel_calls) is not None
        return self._joined(map_func, cycle, block, ahead, "Interleave")

    def _joined(self, map_func: Callable, cycle: int, block: int, ahead: bool, name: str) -> Any:
        make = functools.partial(dataset_of, map_func)
        spec = lambda: spec_by_trial(make, self._node.spec, self._node.first).element_spec  # noqa: E731
        step = lambda elements, run: _steps.interleaved(  # noqa: E731
            map(make, elements), cycle, block, ahead, run
        )
        return self._stream(step, name, spec=spec, tries=True)

    def scan(self, initial_state: Any, scan_func: Callable, name: str | None = None) -> Any:
        """What `scan_func(state, element)` returns beside the next state, element by element."""
        start = normalise(initial_state)
        function = lambda element: _steps.scanned(scan_func, start, element)[1]  # noqa: E731
        spec = lambda: spec_by_trial(function, self._node.spec, self._node.first)  # noqa: E731
        step = lambda elements, _run: _steps.scan(scan_func, start, elements)  # noqa: E731
        return self._stream(step, "Scan", spec=spec, cardinality=_nodes.same_count, tries=True)

    def enumerate(self, start: Any = 0, name: str | None = None) -> Any:
        """Pairs of a number and an element."""
        return self.zip(self.counter(start), self)

    def unique(self, name: str | None = None) -> Any:
        """Each element once, where it comes first."""
        return self._stream(lambda elements, _run: _steps.unique(elements), "Unique")

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        """The elements that can be made without an error."""
        return self._stream(lambda elements, _run: _steps.surviving(elements), "IgnoreErrors")

    # Which elements, and in what order

    def take(self, count: Any, name: str | None = None) -> Any:
        """The first `count` elements; all if it is negative."""
        return self._then(_nodes.Take(self._node, integer(count, "count", TypeError)))

    def skip(self, count: Any, name: str | None = None) -> Any:
        """All but the first `count` elements; none if it is negative."""
        return self._then(_nodes.Skip(self._node, integer(count, "count", TypeError)))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Any:
        """Every `num_shards`th element, from the one at `index` on."""
        shards, place = (
            integer(num_shards, "num_shards", TypeError),
            integer(index, "index", TypeError),
        )
        _nodes.check_positive(shards, "shard: num_shards")
        if not 0 <= place < shards:
            raise invalid(
                f"shard: index must be between 0 and {shards - 1}. Received: index {place}."
            )
        return self._then(_nodes.Shard(self._node, shards, place))

    def repeat(self, count: Any = None, name: str | None = None) -> Any:
        """All elements `count` times; by default without end.

        >>> [int(x) for x in tf.data.Dataset.range(2).repeat(3)]
        [0, 1, 0, 1, 0, 1]
        """
        times = -1 if count is None else integer(count, "count", TypeError)
        return self._then(_nodes.Repeat(self._node, times))

    def shuffle(
        self,
        buffer_size: Any,
        seed: Any = None,
        reshuffle_each_iteration: bool = True,
        name: str | None = None,
    ) -> Any:
        """Elements drawn from a buffer of `buffer_size`, in another order for each pass.

        A buffer that holds all elements makes every order equally likely. With
        `reshuffle_each_iteration=False`, all passes have the same order.

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
        return self._then(_nodes.Shuffle(self._node, None if size < 0 else size, seeds))

    def cache(self, filename: Any = "", name: str | None = None) -> Any:
        """What the first whole pass yields, kept for all later ones.

        It is kept in memory, or in a directory `filename`: then for other processes too, whatever
        dataset they have, until the directory is deleted.
        """
        if filename:
            return self._stored(os.fspath(filename), "Cache")
        return self._then(_nodes.Cache(self._node))

    def snapshot(
        self,
        path: Any,
        compression: str = "AUTO",
        reader_func: Callable | None = None,
        shard_func: Callable | None = None,
        name: str | None = None,
    ) -> Any:
        """What the first whole pass yields, kept in a directory in `path` for all later ones.

        Each dataset, told by its `fingerprint`, has a directory of its own there.
        """
        place = os.path.join(os.fspath(path), f"{fingerprint(self._node):016x}")
        return self._stored(place, "Snapshot", reader_func, shard_func)

    def _stored(
        self,
        path: str,
        name: str,
        reader_func: Callable | None = None,
        shard_func: Callable | None = None,
    ) -> Any:
        read = lambda directory: self._loaded(directory, reader_func)  # noqa: E731
        return self._then(_saving.Stored(self._node, path, name, _shard_of(shard_func), read))

    def save(
        self,
        path: Any,
        compression: str | None = None,
        shard_func: Callable | None = None,
        checkpoint_args: Any = None,
    ) -> None:
        """Writes all elements to a directory, which appears when all of them are there.

        `shard_func` says in which shard of the directory an element is kept. Nothing is compressed.

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/numbers"
        >>> tf.data.Dataset.range(3).save(path)
        >>> [int(x) for x in tf.data.Dataset.load(path)]
        [0, 1, 2]
        """
        if checkpoint_args is not None:
            raise NotImplementedError("save: `checkpoint_args` are not supported. Leave them out.")
        directory = os.fspath(path)
        with tensorflow_errors(directory):
            _saving.save(iter(self), directory, self._node, _shard_of(shard_func))

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Any:
        """The same elements, up to `buffer_size` of them made ahead of time by a thread."""
        size = (
            _nodes.AUTOTUNE
            if buffer_size is None
            else integer(buffer_size, "buffer_size", TypeError)
        )
        if size < _nodes.AUTOTUNE:
            raise invalid(f"prefetch: buffer_size must be >= 0 or AUTOTUNE. Received: {size}.")
        return self._then(_nodes.Prefetch(self._node, size))

    def concatenate(self, dataset: BaseDataset, name: str | None = None) -> Any:
        """The elements of this dataset and then those of another."""
        nodes = self._node, node_of(dataset, "concatenate")
        if not any(node.tries for node in nodes):
            _common(*nodes)
        return self._then(_nodes.Concatenate(*nodes, lambda: _common(*nodes)))


def _shard_of(shard_func: Callable | None) -> Callable | None:
    return shard_func and (lambda element: integer(call(shard_func, element), "shard_func"))


def _parallel(num_parallel_calls: Any) -> int | None:
    if num_parallel_calls is None:
        return None
    calls = integer(num_parallel_calls, "num_parallel_calls", TypeError)
    if calls != _nodes.AUTOTUNE:
        _nodes.check_positive(calls, "num_parallel_calls")
    return calls


def _common(first: _nodes.Node, second: _nodes.Node) -> Any:
    found = common_spec(first.spec, second.spec)
    if found is None:
        raise TypeError(f"Incompatible dataset elements:\n  {first.spec} vs.   {second.spec}")
    return found
