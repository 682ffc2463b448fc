"""The functions behind `keras.ops.core`: conversion, control flow, parts of tensors."""

import builtins
import functools

import numpy as np
from keras.src import tree
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

import retrograde
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.conversion import cast, convert_to_numpy, convert_to_tensor, is_tensor
from retrograde.keras_backend.symbolic import compute_output_spec
from retrograde.keras_backend.variable import Variable
from retrograde.toplevel.devices import device as device_scope

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = True
IS_THREAD_SAFE = True

__all__ = [
    "IS_THREAD_SAFE",
    "SUPPORTS_COMPLEX_DTYPES",
    "SUPPORTS_RAGGED_TENSORS",
    "SUPPORTS_SPARSE_TENSORS",
    "Variable",
    "associative_scan",
    "cast",
    "compute_output_spec",
    "cond",
    "convert_to_numpy",
    "convert_to_tensor",
    "custom_gradient",
    "device_scope",
    "fori_loop",
    "is_tensor",
    "map",
    "random_seed_dtype",
    "remat",
    "scan",
    "scatter",
    "scatter_update",
    "shape",
    "slice",
    "slice_update",
    "stop_gradient",
    "switch",
    "unstack",
    "vectorized_map",
    "while_loop",
]


def shape(x):
    """The shape, a tuple."""
    return tuple(x.shape)


def random_seed_dtype():
    """The dtype in which seeds are kept."""
    return "uint32"


def stop_gradient(variable):
    """The value, as a constant for tapes."""
    return retrograde.stop_gradient(convert_to_tensor(variable))


def unstack(x, num=None, axis=0):
    """The slices of `x` along `axis`, in a list."""
    return list(retrograde.unstack(convert_to_tensor(x), num=num, axis=axis))


# Control flow


def cond(pred, true_fn, false_fn):
    """What `true_fn()` returns if `pred` is true, else what `false_fn()` returns."""
    if in_symbolic_scope():
        return true_fn()  # shapes are being found out; there may be no value to decide by
    return retrograde.cond(convert_to_tensor(pred, "bool"), true_fn, false_fn)


def switch(index, branches, *operands):
    """What the function at `index` returns for `operands`; beyond the ends, the nearest one."""
    last = len(branches) - 1
    index = retrograde.clip_by_value(convert_to_tensor(index, "int32"), 0, last)
    calls = [functools.partial(branch, *operands) for branch in branches]
    return retrograde.switch_case(index, calls)


def while_loop(cond, body, loop_vars, maximum_iterations=None):
    """Goes on with `loop_vars = body(*loop_vars)` while `cond(*loop_vars)` is true."""
    several = isinstance(loop_vars, (list, tuple))
    start = tree.map_structure(convert_to_tensor, tuple(loop_vars) if several else (loop_vars,))

    def step(*values):
        result = body(*values)
        return tuple(result) if isinstance(result, (list, tuple)) else (result,)

    end = retrograde.while_loop(cond, step, start, maximum_iterations=maximum_iterations)
    return end if several else end[0]


def fori_loop(lower, upper, body_fun, init_val):
    """`val = body_fun(i, val)` for `i` from `lower` up to, not including, `upper`."""
    val = init_val
    for i in range(int(lower), int(upper)):
        val = body_fun(i, val)
    return val


def vectorized_map(function, elements):
    """`function` of each of `elements`, run on all of them at once."""
    return retrograde.vectorized_map(function, elements)


def map(f, xs):
    """`f` of each slice of `xs` along its first axis, stacked."""
    _, ys = scan(lambda _, x: ((), f(x)), (), xs)
    return ys


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    """`carry, y = f(carry, x)` for each slice `x` of `xs`: the last carry, and all `y` stacked."""
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(
            f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}"
        )
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    carry = tree.map_structure(convert_to_tensor, init)
    rows = _rows(xs, length)
    ys = []
    for row in reversed(rows) if reverse else rows:
        carry, y = f(carry, row)
        ys.append(tree.map_structure(retrograde.zeros_like, init) if y is None else y)
    if reverse:
        ys.reverse()
    return carry, tree.map_structure(lambda *y: retrograde.stack(y), *ys)


def _rows(xs, length):
    """The slices of a structure along the first axis of its tensors; `None`s if there is none."""
    if xs is None:
        return [None] * int(length)
    flat = [convert_to_tensor(x) for x in tree.flatten(xs)]
    columns = [unstack(x)[: None if length is None else int(length)] for x in flat]
    return [tree.pack_sequence_as(xs, list(row)) for row in zip(*columns, strict=True)]


def associative_scan(f, elems, reverse=False, axis=0):
    """All running results of the associative `f` along `axis`, in a logarithmic number of steps."""
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    flat = [convert_to_tensor(x) for x in tree.flatten(elems)]
    if len({x.shape[axis] for x in flat}) > 1:
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension. "
            f"(saw: {[tuple(x.shape) for x in flat]})"
        )

    def combine(a, b):
        a, b = (tree.pack_sequence_as(elems, x) for x in (a, b))
        return [convert_to_tensor(y) for y in tree.flatten(f(a, b))]

    flat = [retrograde.reverse(x, [axis]) for x in flat] if reverse else flat
    result = _running(combine, flat, axis)
    result = [retrograde.reverse(x, [axis]) for x in result] if reverse else result
    return tree.pack_sequence_as(elems, result)


def _running(combine, xs, axis):
    """The results for pairs of neighbours give those at odd places, and these the others."""
    n = xs[0].shape[axis]
    if n < 2:
        return xs
    pairs = combine(_part(xs, axis, 0, n - 1, 2), _part(xs, axis, 1, n, 2))
    odd = _running(combine, pairs, axis)
    first = _part(xs, axis, 0, 1)
    if n == 2:
        return _joined(first, odd, axis)
    even = combine(_part(odd, axis, 0, (n - 1) // 2), _part(xs, axis, 2, n, 2))
    return _interleaved(_joined(first, even, axis), odd, n, axis)


def _part(xs, axis, start, stop, step=1):
    result = []
    for x in xs:
        key = [builtins.slice(None)] * x.ndim
        key[axis] = builtins.slice(start, stop, step)
        result.append(x[tuple(key)])
    return result


def _joined(xs, ys, axis):
    return [retrograde.concat([x, y], axis) for x, y in zip(xs, ys, strict=True)]


def _interleaved(even, odd, n, axis):
    """Elements of `even` and `odd` in turn; `even` may have one more."""
    half = n // 2
    result = []
    for x, y in zip(_part(even, axis, 0, half), odd, strict=True):
        after = axis % x.ndim + 1
        doubled = list(x.shape)
        doubled[axis] = 2 * half
        result.append(retrograde.reshape(retrograde.stack([x, y], after), doubled))
    return _joined(result, _part(even, axis, half, n), axis) if n % 2 else result


# Parts of tensors


def scatter(indices, values, shape):
    """Zeros of `shape` with `values` added at `indices`."""
    values = convert_to_tensor(values)
    return retrograde.scatter_nd(_places(indices), values, [int(n) for n in shape])


def scatter_update(inputs, indices, updates, reduction=None):
    """`inputs` with `updates` at `indices`, in place of what is there or combined with it."""
    inputs = convert_to_tensor(inputs)
    indices, updates = _places(indices), convert_to_tensor(updates, inputs.dtype)
    if reduction == "mul":
        return _scatter_product(inputs, indices, updates)
    updating = _UPDATING.get(reduction)
    if updating is None:
        raise ValueError(f"Unsupported reduction: {reduction}")
    return updating(inputs, indices, updates)


_UPDATING = {
    None: retrograde.tensor_scatter_nd_update,
    "add": retrograde.tensor_scatter_nd_add,
    "max": retrograde.tensor_scatter_nd_max,
    "min": retrograde.tensor_scatter_nd_min,
}


def _places(indices):
    """Coordinates as a tensor of signed integers."""
    indices = convert_to_tensor(indices)
    signed = indices.dtype in (retrograde.int32, retrograde.int64)
    return indices if signed else cast(indices, "int64")


def _scatter_product(inputs, indices, updates):
    """What falls on one place is multiplied first: as segments, one for each place."""
    depth = indices.shape[-1]
    sizes = inputs.shape[:depth]
    steps = np.cumprod([1, *reversed(sizes[1:])])[::-1]
    rows = retrograde.reduce_sum(indices * Tensor(steps.astype(indices.dtype.as_numpy_dtype)), -1)
    factors = retrograde.math.unsorted_segment_prod(updates, rows, int(np.prod(sizes)))
    return inputs * retrograde.reshape(factors, inputs.shape)


def slice(inputs, start_indices, shape):
    """The part of `inputs` that starts at `start_indices` and has `shape`."""
    return retrograde.slice(convert_to_tensor(inputs), start_indices, shape)


def slice_update(inputs, start_indices, updates):
    """`inputs` with `updates` written over the part that starts at `start_indices`.

    A part that would reach beyond the end is moved back until it fits.
    """
    inputs = convert_to_tensor(inputs)
    updates = convert_to_tensor(updates, inputs.dtype)
    sizes = zip(inputs.shape, updates.shape, strict=True)
    room = [n - m for n, m in sizes]
    depth = 1 + max((axis for axis, left in enumerate(room) if left), default=-1)
    if not depth:
        return updates
    start = convert_to_tensor(start_indices, "int64")[:depth]
    start = retrograde.clip_by_value(start, 0, Tensor(np.array(room[:depth])))
    grid = np.indices(tuple(updates.shape[:depth]))
    offsets = np.moveaxis(grid, 0, -1)
    return retrograde.tensor_scatter_nd_update(inputs, start + Tensor(offsets), updates)


# Gradients


def custom_gradient(fun):
    """`fun`, which returns its result and a function for the gradient, with that gradient."""
    with_gradient = retrograde.custom_gradient(fun)

    @functools.wraps(fun)
    def call(*args, **kwargs):
        # Variables among the arguments are arguments like others: their gradient is asked for.
        return with_gradient(*[x.value if isinstance(x, Variable) else x for x in args], **kwargs)

    return call


def remat(f):
    """`f`, run again when its gradient is asked for, instead of being kept until then."""
    return retrograde.recompute_grad(f)
