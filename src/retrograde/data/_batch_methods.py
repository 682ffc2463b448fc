"""The methods of `Dataset` that combine many elements into one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograde.core.tensor import Tensor, wrap
from retrograde.data import _mixing, _nodes, _transforms, _variable_size
from retrograde.data._base import BaseDataset, as_seed, call_to_dataset
from retrograde.data._elements import (
    batched_spec,
    common_spec,
    infer_spec,
    map_specs,
    normalize,
    normalize_result,
    row_spec,
    spec_of_element,
    specs_of_tensors,
)
from retrograde.data._padding import check_padded_shapes, pad_and_stack, padded_spec
from retrograde.data._seeds import Seeds
from retrograde.ops.arguments import integer, integers
from retrograde.values import dtypes, nest
from retrograde.values.arguments import as_int, as_text
from retrograde.values.errors import invalid
from retrograde.values.shapes import TensorShape

if TYPE_CHECKING:
    from retrograde.data.dataset import Dataset


class BatchMethods(BaseDataset):
    """Methods that combine many elements into one."""

    # Batches

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Stacks `batch_size` consecutive elements.

        The last batch may be smaller; `drop_remainder` drops it.

        >>> data = tf.data.Dataset.range(5)
        >>> [batch.tolist() for batch in data.batch(2).as_numpy_iterator()]
        [[0, 1], [2, 3], [4]]
        """
        return self._batch(batch_size, drop_remainder)

    def _batch(self, batch_size: Any, drop: Any, stack: Callable | None = None) -> Any:
        size = integer(batch_size, "batch_size", TypeError)
        _nodes.check_positive(size, "batch: batch_size")
        return self._derive(_nodes.Batch(self._node, size, bool(drop), stack))

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Pads elements to `padded_shapes`, or to the longest in the batch, and stacks them.

        >>> data = tf.data.Dataset.range(1, 4).map(lambda n: tf.fill([n], n)).padded_batch(3)
        >>> next(iter(data)).numpy().tolist()
        [[1, 0, 0], [2, 2, 0], [3, 3, 3]]
        """
        stack = functools.partial(pad_and_stack, shapes=padded_shapes, values=padding_values)
        batches = self._batch(batch_size, drop_remainder, stack)
        size = batches._node.size if drop_remainder else None
        batches._node.compute_spec = lambda: padded_spec(self._node.spec, padded_shapes, size)
        if not self._node.spec_needs_call:
            check_padded_shapes(self._node.spec, padded_shapes)
        return batches

    def ragged_batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        row_splits_dtype: Any = dtypes.int64,
        name: str | None = None,
    ) -> Dataset:
        """Stacks elements; components of variable shape become ragged tensors.

        >>> data = tf.data.Dataset.range(3).map(tf.range).ragged_batch(3)
        >>> next(iter(data))
        <tf.RaggedTensor [[], [0], [0, 1]]>
        """
        splits = dtypes.as_dtype(row_splits_dtype).numpy_dtype
        stack = functools.partial(
            _variable_size.stack_ragged, spec=lambda: self._node.spec, splits=splits
        )
        batches = self._batch(batch_size, drop_remainder, stack)
        size = batches._node.size if drop_remainder else None
        batches._node.compute_spec = lambda: _variable_size.ragged_spec(
            self._node.spec, size, splits
        )
        return batches

    def sparse_batch(self, batch_size: Any, row_shape: Any, name: str | None = None) -> Dataset:
        """Combines tensors of different sizes, up to `row_shape`, into sparse tensors."""
        shape = TensorShape(row_shape)
        batches = self._batch(
            batch_size, False, lambda part: _variable_size.stack_sparse(part, shape)
        )
        batches._node.compute_spec = lambda: _variable_size.sparse_spec(self._node.spec, shape)
        return batches

    def unbatch(self, name: str | None = None) -> Dataset:
        """Splits each element into its rows."""
        spec = lambda: map_specs(row_spec, self._node.spec)  # noqa: E731
        if not self._node.spec_needs_call:
            spec()
            specs = specs_of_tensors(self._node.spec)
            _transforms.check_has_rows(specs, self._node.spec)
            _transforms.check_row_counts({s.shape[:1].as_list()[0] for s in specs if s.shape.rank})
        return self._transform(
            lambda elements, _run: _transforms.unbatch_elements(elements),
            "Unbatch",
            spec=spec,
            cardinality=self._row_count,
        )

    def _row_count(self, n: int) -> int:
        """Returns how many rows `n` elements have, if that is known without calling functions."""
        specs = [] if self._node.spec_needs_call else specs_of_tensors(self._node.spec)
        sizes = [spec.shape[:1] for spec in specs]
        rows = next((size[0] for size in sizes if size.rank and size[0] is not None), None)
        if rows is None or n == _nodes.UNKNOWN_CARDINALITY:
            return _nodes.UNKNOWN_CARDINALITY
        return n * rows if n > 0 else n

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: Any = None) -> Dataset:
        """Changes the batch size. Several sizes are used in turn.

        >>> data = tf.data.Dataset.range(5).batch(2).rebatch([1, 2])
        >>> [batch.tolist() for batch in data.as_numpy_iterator()]
        [[0], [1, 2], [3], [4]]
        """
        sizes, rows = integers(batch_size, "batch_size", TypeError), self.unbatch()
        if not sizes:
            raise invalid("rebatch: batch_size must not be empty. Received: [].")
        if min(sizes) < 0 or not any(sizes):
            raise invalid(
                "rebatch: batch_size must not be negative, and at least one size must be greater "
                f"than zero. Received: {as_text(list(sizes))}."
            )
        specs = [] if self._node.spec_needs_call else specs_of_tensors(self._node.spec)
        divides = bool(specs) and all(
            s.shape[0] and sizes[0] and s.shape[0] % sizes[0] == 0 for s in specs
        )
        static_size = sizes[0] if len(set(sizes)) == 1 and (drop_remainder or divides) else None

        def batches(elements: Iterator, _run: Any) -> Iterator:
            groups = _transforms.cyclic_groups(elements, sizes, drop_remainder)
            return map(_nodes.plain_stack(rows._node), groups)

        return rows._transform(
            batches,
            "Rebatch",
            spec=lambda: map_specs(lambda leaf: batched_spec(leaf, static_size), rows._node.spec),
        )

    def window(
        self,
        size: Any,
        shift: Any = None,
        stride: Any = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Groups elements into datasets of `size` elements. `shift` is the step between windows."""
        size, stride = integer(size, "size", TypeError), integer(stride, "stride", TypeError)
        shift = size if shift is None else integer(shift, "shift", TypeError)
        for argument, value in (("size", size), ("shift", shift), ("stride", stride)):
            _nodes.check_positive(value, f"window: {argument}")
        span = (size - 1) * stride + 1
        spec = lambda: map_specs(self._spec_of_datasets, self._node.spec)  # noqa: E731
        as_datasets = lambda part: _window(part, self._from_node)  # noqa: E731
        return self._transform(
            lambda elements, _run: map(
                as_datasets, _transforms.windows(elements, span, shift, stride, drop_remainder)
            ),
            "Window",
            spec=spec,
            cardinality=lambda n: _transforms.window_count(n, span, shift, drop_remainder),
        )

    def group_by_window(
        self,
        key_func: Callable,
        reduce_func: Callable,
        window_size: Any = None,
        window_size_func: Callable | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Groups elements by key and returns the elements of `reduce_func(key, window)`."""
        if (window_size is None) == (window_size_func is None):
            raise ValueError(
                "Either the `window_size` argument or the `window_size_func` argument must be "
                "specified, and not both."
            )
        size = (lambda _key: window_size) if window_size_func is None else window_size_func

        def window_size_of(key: int) -> int:
            value = as_int(size(wrap(np.int64(key))), "group_by_window: the window size")
            _nodes.check_positive(value, "group_by_window: the window size")
            return value

        def reduce(key: int, elements: list) -> _nodes.Node:
            window = self._from_node(
                _nodes.FunctionSource(
                    lambda _run: elements, self._node.spec, len(elements), "Window"
                )
            )
            return call_to_dataset(reduce_func, (wrap(np.int64(key)), window))._node

        return self._transform(
            lambda elements, run: _mixing.group_by_key(
                elements, key_func, reduce, window_size_of, run
            ),
            "GroupByWindow",
            spec=lambda: reduce(0, []).spec,
            cardinality=_nodes.zero_or_infinite,
            spec_needs_call=True,
        )

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable,
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Batches elements of similar length, with padding.

        >>> data = tf.data.Dataset.range(1, 6).map(tf.range)
        >>> data = data.bucket_by_sequence_length(tf.size, [3], [2, 2])
        >>> [batch.tolist() for batch in data.as_numpy_iterator()]
        [[[0, 0], [0, 1]], [[0, 1, 2, 0], [0, 1, 2, 3]], [[0, 1, 2, 3, 4]]]
        """
        buckets = _variable_size.Buckets(element_length_func, bucket_boundaries, bucket_batch_sizes)

        def batches(key: Tensor, window: BaseDataset) -> Any:
            size, shapes = buckets.size(key), padded_shapes
            if no_padding:
                return window.batch(size, drop_remainder)
            if pad_to_bucket_boundary:
                shapes = buckets.padded_shapes(key, padded_shapes, self._node.spec)
            return window.padded_batch(size, shapes, padding_values, drop_remainder)

        groups = self.group_by_window(buckets.key, batches, window_size_func=buckets.size)
        groups._node.compute_spec = lambda: (
            map_specs(lambda leaf: batched_spec(leaf, None), self._node.spec)
            if no_padding
            else padded_spec(self._node.spec, padded_shapes, None)
        )
        return groups

    def rejection_resample(
        self,
        class_func: Callable,
        target_dist: Any,
        initial_dist: Any = None,
        seed: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """Drops elements at random until classes have the distribution `target_dist`.

        The result has pairs of class and element. `initial_dist` is the distribution of the
        input; it is estimated if it is not given.
        """
        target = _variable_size.distribution(target_dist, "target_dist")
        initial = None
        if initial_dist is not None:
            initial = _variable_size.distribution(initial_dist, "initial_dist", len(target))
        seeds, class_of = Seeds(as_seed(seed), True), _transforms.as_element_function(class_func)
        step = lambda elements, run: _variable_size.resample(  # noqa: E731
            elements, class_of, target, initial, seeds.generator(run)
        )
        spec = lambda: (  # noqa: E731
            infer_spec(class_of, self._node.spec, self._node.first),
            self._node.spec,
        )
        return self._transform(step, "Filter", spec=spec, spec_needs_call=True, seeds=seeds)

    def reduce(self, initial_state: Any, reduce_func: Callable, name: str | None = None) -> Any:
        """Reduces the dataset with `state = reduce_func(state, element)`; returns the state."""
        state = normalize(initial_state)
        for element in self:
            next_state = normalize_result(reduce_func(state, element))
            _transforms.check_state("reduce_func", state, next_state)
            state = next_state
        return state

    def get_single_element(self, name: str | None = None) -> Any:
        """Returns the only element."""
        elements = list(self.take(2))
        if len(elements) != 1:
            problem = "had more than one element" if elements else "was empty"
            raise invalid(f"Dataset {problem}. Expected exactly one element.")
        return elements[0]


def _window(elements: list, dataset: Callable) -> Any:
    """Returns a dataset for each component of these elements."""
    _, pack = nest.flatten_with_pack(elements[0])
    columns = zip(*map(nest.flatten, elements), strict=True)
    return pack([dataset(_column_source(list(column))) for column in columns])


def _column_source(column: list) -> _nodes.Node:
    spec = functools.reduce(
        common_spec, map(spec_of_element, column[1:]), spec_of_element(column[0])
    )
    return _nodes.FunctionSource(lambda _run: column, spec, len(column), "Window")
