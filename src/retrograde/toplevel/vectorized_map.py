"""tf.vectorized_map: a function of one example, vectorized over a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograde.core.batching import Batched, CannotBatch, Level, examples_of, mapping
from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor, wrap
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import broadcast_to, stack
from retrograde.values import nest
from retrograde.values.errors import invalid


def vectorized_map(
    fn: Callable, elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """Applies `fn` to all elements of `elems` along the first axis at once and stacks the results.

    `elems` may be a structure of tensors whose first axes have the same size (or 1). `fn` receives
    the same structure without that axis. Random numbers differ between elements. If `fn` needs a
    value in Python (`float(x)`, `if x > 0`), it runs in a loop with a warning, or raises an error
    if `fallback_to_while_loop` is false.

    >>> matrices = tf.constant([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    >>> tf.vectorized_map(lambda m: tf.linalg.trace(m @ m), matrices).numpy()
    array([ 29., 173.], dtype=float32)
    """
    leaves, pack = nest.flatten_with_pack(elems)
    if any(hasattr(leaf, "_row_counts") for leaf in leaves):  # a BatchableExtensionType
        leaves = list(nest.leaves(elems, expand_composites=True))
        pack = lambda values: nest.pack(elems, iter(values), expand_composites=True)  # noqa: E731
    tensors = [as_tensor(leaf) for leaf in leaves]
    size = _size(tensors)
    try:
        with mapping(size) as level:
            return _run_batched(fn, pack, tensors, level)
    except CannotBatch as error:
        if not fallback_to_while_loop:
            raise
        if warn:
            import logging  # takes longer to import than this module

            logging.getLogger("retrograde").warning(
                "vectorized_map falls back to a loop, which is slower: %s", error.message
            )
    return _run_in_loop(fn, pack, tensors, size)


def _size(tensors: list[Tensor]) -> int:
    if any(not x.ndim for x in tensors) or not tensors:
        raise ValueError(
            "vectorized_map: every element of `elems` must have rank >= 1. Received: shapes "
            f"{[x._spec.shape for x in tensors]}."
        )
    sizes = {x._spec.shape[0] for x in tensors}
    if len(sizes - {1}) > 1:
        raise invalid(
            "vectorized_map: the first axes of `elems` differ in size. Received: shapes "
            f"{[x._spec.shape for x in tensors]}. Expected equal sizes, or 1."
        )
    return (sizes - {1} or {1}).pop()


def _repeat_rows(x: Tensor, size: int) -> Tensor:
    shape = (size, *x._spec.shape[1:])
    return x if x._spec.shape == shape else broadcast_to(x, shape=shape)


def _run_batched(fn: Callable, pack: Callable, tensors: list[Tensor], level: Level) -> Any:
    repeated = [_repeat_rows(x, level.size) for x in tensors]
    examples = [wrap(Batched(x if thread.recorders else x._array, level)) for x in repeated]
    results, pack_results = nest.flatten_with_pack(fn(pack(examples)))
    stacked = [
        None if y is None else examples_of(as_tensor(y), level, broadcast_to) for y in results
    ]
    return pack_results([y if y is None or isinstance(y, Tensor) else wrap(y) for y in stacked])


def _run_in_loop(fn: Callable, pack: Callable, tensors: list[Tensor], size: int) -> Any:
    if not size:
        raise invalid(
            "vectorized_map: cannot infer the result's shape from a loop over no elements."
        )
    repeated = [_repeat_rows(x, size) for x in tensors]
    flat = []
    for i in range(size):
        leaves, pack_results = nest.flatten_with_pack(fn(pack([x[i] for x in repeated])))
        flat.append([None if y is None else as_tensor(y) for y in leaves])
    columns = zip(*flat, strict=True)
    return pack_results([None if c[0] is None else stack(*c, axis=0) for c in columns])
