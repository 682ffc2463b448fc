"""tf.vectorized_map: a function of one example, run on all of them at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograde.core.batching import Batched, CannotBatch, Level, mapping, of_all
from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor, wrap
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import broadcast_to, stack
from retrograde.values import nest
from retrograde.values.errors import invalid


def vectorized_map(
    fn: Callable, elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """`fn` of each element of `elems` along its first axis, stacked: as a loop, but all at once.

    `elems` may be a structure of tensors with first axes of one size (or 1); `fn` gets one of the
    same structure, without that axis. Random numbers differ from element to element. Where `fn`
    needs a value in Python (`float(x)`, `if x > 0`), there is none for all elements: it runs in a
    loop then, with a warning, or raises if `fallback_to_while_loop` is false.

    >>> matrices = tf.constant([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    >>> tf.vectorized_map(lambda m: tf.linalg.trace(m @ m), matrices).numpy()
    array([ 29., 173.], dtype=float32)
    """
    leaves, pack = nest.flatten_with_pack(elems)
    tensors = [as_tensor(leaf) for leaf in leaves]
    size = _size(tensors)
    try:
        with mapping(size) as level:
            return _on_all(fn, pack, tensors, level)
    except CannotBatch as problem:
        if not fallback_to_while_loop:
            raise
        if warn:
            import logging  # takes longer to import than this module

            logging.getLogger("retrograde").warning(
                "vectorized_map runs in a loop, which is slower: %s", problem.message
            )
    return _one_by_one(fn, pack, tensors, size)


def _size(tensors: list[Tensor]) -> int:
    if any(not x.ndim for x in tensors) or not tensors:
        raise ValueError(
            "vectorized_map: every element of `elems` needs a first axis to map over. Received: "
            f"shapes {[x._spec.shape for x in tensors]}."
        )
    sizes = {x._spec.shape[0] for x in tensors}
    if len(sizes - {1}) > 1:
        raise invalid(
            "vectorized_map: the first axes of `elems` differ in size. Received: shapes "
            f"{[x._spec.shape for x in tensors]}. Expected one size, or 1."
        )
    return (sizes - {1} or {1}).pop()


def _repeated(x: Tensor, size: int) -> Tensor:
    shape = (size, *x._spec.shape[1:])
    return x if x._spec.shape == shape else broadcast_to(x, shape=shape)


def _on_all(fn: Callable, pack: Callable, tensors: list[Tensor], level: Level) -> Any:
    whole = [_repeated(x, level.size) for x in tensors]
    examples = [wrap(Batched(x if thread.recorders else x._array, level)) for x in whole]
    results, pack_results = nest.flatten_with_pack(fn(pack(examples)))
    stacked = [None if y is None else of_all(as_tensor(y), level, broadcast_to) for y in results]
    return pack_results([y if y is None or isinstance(y, Tensor) else wrap(y) for y in stacked])


def _one_by_one(fn: Callable, pack: Callable, tensors: list[Tensor], size: int) -> Any:
    if not size:
        raise invalid("vectorized_map: a loop over no elements has no result to show the shape of.")
    whole = [_repeated(x, size) for x in tensors]
    flat = []
    for i in range(size):
        leaves, pack_results = nest.flatten_with_pack(fn(pack([x[i] for x in whole])))
        flat.append([None if y is None else as_tensor(y) for y in leaves])
    columns = zip(*flat, strict=True)
    return pack_results([None if c[0] is None else stack(*c, axis=0) for c in columns])
