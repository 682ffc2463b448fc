"""Implements `keras.ops.core`: conversion, control flow, slices and scatter operations."""

import builtins
import functools

import numpy as np
from keras.src import tree
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

import retrograde
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.conversion import cast, convert_to_numpy, convert_to_tensor, is_tensor
from retrograde.keras_backend.ops._inputs import to_int, to_ints
from retrograde.keras_backend.symbolic import compute_output_spec
from retrograde.keras_backend.variable import Variable
from retrograde.ops.shaping import broadcast_to
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
    """Returns the shape as a tuple."""
    return tuple(x.shape)


def random_seed_dtype():
    """Returns the dtype of random seeds."""
    return "uint32"


def stop_gradient(variable):
    """Returns the value as a constant for tapes."""
    return retrograde.stop_gradient(convert_to_tensor(variable))


def unstack(x, num=None, axis=0):
    """Returns the slices of `x` along `axis` in a list."""
    return list(retrograde.unstack(convert_to_tensor(x), num=num, axis=axis))


# Control flow


def cond(pred, true_fn, false_fn):
    """Returns `true_fn()` if `pred` is true, else `false_fn()`."""
    if in_symbolic_scope():
        return true_fn()  # during shape inference `pred` may have no value
    return retrograde.cond(convert_to_tensor(pred, "bool"), true_fn, false_fn)


def switch(index, branches, *operands):
    """Returns `branches[index](*operands)`; `index` is clamped to the valid range."""
    last = len(branches) - 1
    index = retrograde.clip_by_value(convert_to_tensor(index, "int32"), 0, last)
    calls = [functools.partial(branch, *operands) for branch in branches]
    return retrograde.switch_case(index, calls)


def while_loop(cond, body, loop_vars, maximum_iterations=None):
    """Repeats `loop_vars = body(*loop_vars)` while `cond(*loop_vars)` is true."""
    is_sequence = isinstance(loop_vars, (list, tuple))
    start = tree.map_structure(convert_to_tensor, tuple(loop_vars) if is_sequence else (loop_vars,))

    def step(*values):
        result = body(*values)
        return tuple(result) if isinstance(result, (list, tuple)) else (result,)

    if in_symbolic_scope():  # the condition has no value, and one step determines the shapes
        end = step(*start)
        return end if is_sequence else end[0]
    end = retrograde.while_loop(cond, step, start, maximum_iterations=maximum_iterations)
    return end if is_sequence else end[0]


def fori_loop(lower, upper, body_fun, init_val):
    """Repeats `val = body_fun(i, val)` for `i` in `range(lower, upper)`."""
    if in_symbolic_scope():
        return body_fun(lower, init_val)
    val = init_val
    for i in range(int(lower), int(upper)):
        val = body_fun(i, val)
    return val


def vectorized_map(function, elements):
    """Maps `function` over `elements` in a single vectorized call."""
    return retrograde.vectorized_map(function, elements)


def map(f, xs):
    """Applies `f` to each slice of `xs` along its first axis and stacks the results."""
    _, ys = scan(lambda _, x: ((), f(x)), (), xs)
    return ys


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    """Runs `carry, y = f(carry, x)` over the slices of `xs`. Returns the carry and stacked `y`."""
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(
            f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}"
        )
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    carry = tree.map_structure(convert_to_tensor, init)
    if in_symbolic_scope():
        return _scan_once(f, carry, xs, length)
    rows = _rows(xs, length)
    ys = []
    for row in reversed(rows) if reverse else rows:
        carry, y = f(carry, row)
        ys.append(tree.map_structure(retrograde.zeros_like, init) if y is None else y)
    if reverse:
        ys.reverse()
    return carry, tree.map_structure(lambda *y: retrograde.stack(y), *ys)


def _scan_once(f, carry, xs, length):
    """Returns results of the shapes of a scan, from one step."""
    row = tree.map_structure(lambda x: convert_to_tensor(x)[0], xs)
    if length is None:
        length = convert_to_tensor(tree.flatten(xs)[0])._spec.shape[0]
    carry, y = f(carry, row)

    def repeated(y):
        y = convert_to_tensor(y)
        return broadcast_to(y, shape=(to_int(length), *y._spec.shape))

    return carry, tree.map_structure(repeated, carry if y is None else y)


def _rows(xs, length):
    """Returns the slices of a structure along the first axis; `length` `None`s without `xs`."""
    if xs is None:
        return [None] * int(length)
    flat = [convert_to_tensor(x) for x in tree.flatten(xs)]
    columns = [unstack(x)[: None if length is None else int(length)] for x in flat]
    return [tree.pack_sequence_as(xs, list(row)) for row in zip(*columns, strict=True)]


def associative_scan(f, elems, reverse=False, axis=0):
    """Computes a scan with the associative `f` along `axis` in a logarithmic number of steps."""
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

    if in_symbolic_scope():
        return tree.pack_sequence_as(elems, combine(flat, flat))
    flat = [retrograde.reverse(x, [axis]) for x in flat] if reverse else flat
    result = _associative_scan(combine, flat, axis)
    result = [retrograde.reverse(x, [axis]) for x in result] if reverse else result
    return tree.pack_sequence_as(elems, result)


def _associative_scan(combine, xs, axis):
    """Scans pairs of neighbors for the odd positions, then computes the even ones from them."""
    n = xs[0].shape[axis]
    if n < 2:
        return xs
    pairs = combine(_slice_each(xs, axis, 0, n - 1, 2), _slice_each(xs, axis, 1, n, 2))
    odd = _associative_scan(combine, pairs, axis)
    first = _slice_each(xs, axis, 0, 1)
    if n == 2:
        return _concat_each(first, odd, axis)
    even = combine(_slice_each(odd, axis, 0, (n - 1) // 2), _slice_each(xs, axis, 2, n, 2))
    return _interleave(_concat_each(first, even, axis), odd, n, axis)


def _slice_each(xs, axis, start, stop, step=1):
    result = []
    for x in xs:
        key = [builtins.slice(None)] * x.ndim
        key[axis] = builtins.slice(start, stop, step)
        result.append(x[tuple(key)])
    return result


def _concat_each(xs, ys, axis):
    return [retrograde.concat([x, y], axis) for x, y in zip(xs, ys, strict=True)]


def _interleave(even, odd, n, axis):
    """Interleaves `even` and `odd`. `even` may have one more element."""
    half = n // 2
    result = []
    for x, y in zip(_slice_each(even, axis, 0, half), odd, strict=True):
        after = axis % x.ndim + 1
        doubled = list(x.shape)
        doubled[axis] = 2 * half
        result.append(retrograde.reshape(retrograde.stack([x, y], after), doubled))
    return _concat_each(result, _slice_each(even, axis, half, n), axis) if n % 2 else result


# Slices and scatter operations


def scatter(indices, values, shape):
    """Returns zeros of `shape` with `values` added at `indices`."""
    values = convert_to_tensor(values)
    return retrograde.scatter_nd(_signed_indices(indices), values, to_ints(shape))


def scatter_update(inputs, indices, updates, reduction=None):
    """Returns `inputs` with `updates` written at `indices`, or combined by `reduction`."""
    inputs = convert_to_tensor(inputs)
    indices, updates = _signed_indices(indices), convert_to_tensor(updates, inputs.dtype)
    if reduction == "mul":
        return _scatter_product(inputs, indices, updates)
    scatter_fn = _SCATTER_FUNCTIONS.get(reduction)
    if scatter_fn is None:
        raise ValueError(f"Unsupported reduction: {reduction}")
    return scatter_fn(inputs, indices, updates)


_SCATTER_FUNCTIONS = {
    None: retrograde.tensor_scatter_nd_update,
    "add": retrograde.tensor_scatter_nd_add,
    "max": retrograde.tensor_scatter_nd_max,
    "min": retrograde.tensor_scatter_nd_min,
}


def _signed_indices(indices):
    """Converts indices to a tensor of signed integers."""
    indices = convert_to_tensor(indices)
    signed = indices.dtype in (retrograde.int32, retrograde.int64)
    return indices if signed else cast(indices, "int64")


def _scatter_product(inputs, indices, updates):
    """Multiplies the updates of each index first, as segments, then the inputs by the products."""
    depth = indices.shape[-1]
    sizes = inputs.shape[:depth]
    steps = np.cumprod([1, *reversed(sizes[1:])])[::-1]
    rows = retrograde.reduce_sum(indices * Tensor(steps.astype(indices.dtype.as_numpy_dtype)), -1)
    factors = retrograde.math.unsorted_segment_prod(updates, rows, int(np.prod(sizes)))
    return inputs * retrograde.reshape(factors, inputs.shape)


def slice(inputs, start_indices, shape):
    """Returns the slice of `inputs` that starts at `start_indices` and has `shape`."""
    return retrograde.slice(convert_to_tensor(inputs), start_indices, shape)


def slice_update(inputs, start_indices, updates):
    """Returns `inputs` with `updates` written to the slice that starts at `start_indices`.

    Start indices are clamped so that the slice fits.
    """
    inputs = convert_to_tensor(inputs)
    updates = convert_to_tensor(updates, inputs.dtype)
    sizes = zip(inputs.shape, updates.shape, strict=True)
    max_start = [n - m for n, m in sizes]
    depth = 1 + max((axis for axis, slack in enumerate(max_start) if slack), default=-1)
    if not depth:
        return updates
    start = convert_to_tensor(start_indices, "int64")[:depth]
    start = retrograde.clip_by_value(start, 0, Tensor(np.array(max_start[:depth])))
    grid = np.indices(tuple(updates.shape[:depth]))
    offsets = np.moveaxis(grid, 0, -1)
    return retrograde.tensor_scatter_nd_update(inputs, start + Tensor(offsets), updates)


# Gradients


def custom_gradient(fun):
    """Returns `fun` with a custom gradient. `fun` returns its result and a gradient function."""
    with_gradient = retrograde.custom_gradient(fun)

    @functools.wraps(fun)
    def call(*args, **kwargs):
        # The gradient function returns gradients for all arguments, so pass variables as tensors.
        return with_gradient(*[x.value if isinstance(x, Variable) else x for x in args], **kwargs)

    return call


def remat(f):
    """Returns `f` with rematerialization: the backward pass recomputes its intermediate values."""
    return retrograde.recompute_grad(f)
