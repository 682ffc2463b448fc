"""Branches and loops as functions. They run as Python control flow, which tapes record."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor
from retrograde.nest import assert_same_structure
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import unstack
from retrograde.toplevel.creation import convert_to_tensor
from retrograde.toplevel.tensor_array import TensorArray
from retrograde.values import nest as _nest
from retrograde.values.arguments import as_int, as_text, shown
from retrograde.values.composites import CompositeTensor, dispatched
from retrograde.values.dtypes import as_dtype
from retrograde.values.errors import OutOfRangeError, invalid
from retrograde.values.specs import TensorSpec

# Branches


def cond(
    pred: Any, true_fn: Callable | None = None, false_fn: Callable | None = None, name: Any = None
) -> Any:
    """Returns `true_fn()` if `pred` is true, else `false_fn()`.

    >>> x = tf.Variable(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = tf.cond(x > 0.0, lambda: x * x, lambda: -x)
    >>> tape.gradient(y, x).numpy()
    np.float32(6.0)
    """
    for argument, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if function is None:
            raise TypeError(f"cond(): '{argument}' argument required")
        _check_callable(function, argument)
    return true_fn() if as_tensor(pred) else false_fn()


def case(
    pred_fn_pairs: Sequence[tuple[Tensor, Callable]],
    default: Callable | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: Any = "case",
) -> Any:
    """Returns the result of the function of the first true predicate, or else `default()`.

    With `exclusive`, all predicates are evaluated, and more than one true predicate is an error.
    Without a `default`, at least one predicate must be true.

    >>> x = tf.constant(5)
    >>> tf.case([(x < 3, lambda: "few"), (x < 10, lambda: "some")], default=lambda: "many")
    'some'
    """
    pairs = _check_pairs(pred_fn_pairs)
    if default is not None:
        _check_callable(default, "default")
    true = []
    for pred, function in pairs:
        if pred:
            if not exclusive:
                return function()
            true.append(function)
    if len(true) > 1:
        raise invalid(
            f"case: {len(true)} of {len(pairs)} predicates are true. With exclusive=True, at most "
            "one may be true."
        )
    if true:
        return true[0]()
    if default is None:
        raise invalid(
            f"case: none of {len(pairs)} predicates is true. Expected one, or a `default`."
        )
    return default()


def _check_pairs(pairs: Any) -> list[tuple[Tensor, Callable]]:
    if isinstance(pairs, dict):
        raise ValueError(
            "case: 'pred_fn_pairs' must be a list of pairs: tensors cannot be keys of a dict."
        )
    if not isinstance(pairs, (list, tuple)):
        raise TypeError(f"'pred_fn_pairs' must be a list or a tuple. Received: {type(pairs)}")
    if not pairs:
        raise ValueError("case: 'pred_fn_pairs' is empty. Expected at least one pair.")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {shown(pair)}."
            )
        pred, function = pair
        if not isinstance(pred, Tensor):
            raise TypeError(f"pred must be a Tensor, got: {shown(pred)}")
        if pred.dtype.name != "bool":
            raise TypeError(f"pred must be of type bool, got: {pred.dtype.name}")
        _check_callable(function, "fn")
    return list(pairs)


def switch_case(
    branch_index: Tensor,
    branch_fns: Any,
    default: Callable | None = None,
    name: Any = "switch_case",
) -> Any:
    """Returns the result of the function at `branch_index`.

    An index out of range selects `default`, or else the last function. `branch_fns` is a list of
    functions, or a dict or pairs that number them from 0.

    >>> tf.switch_case(tf.constant(1), [lambda: "a", lambda: "b"])
    'b'
    """
    if not isinstance(branch_index, Tensor):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index)}")
    if not branch_index.dtype.is_integer:
        raise TypeError(f"'branch_index' must be an integer Tensor, got {branch_index.dtype.name}")
    if branch_index.ndim:
        raise invalid(f"switch_case: 'branch_index' has shape {branch_index.shape}. Expected ().")
    functions = _branches(branch_fns)
    if default is not None:
        _check_callable(default, "default")
    index = int(branch_index)
    if 0 <= index < len(functions):
        return functions[index]()
    return functions[-1]() if default is None else default()


def _branches(branch_fns: Any) -> list[Callable]:
    """Returns the functions to choose from, in order."""
    if isinstance(branch_fns, dict):
        branch_fns = list(branch_fns.items())
    if not isinstance(branch_fns, (list, tuple)):
        raise TypeError("'branch_fns' must be a list, tuple, or dict")
    if not branch_fns:
        raise ValueError("Must provide at least one item in 'branch_fns'")
    if all(map(callable, branch_fns)):
        return list(branch_fns)
    for pair in branch_fns:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                f"Each entry in 'branch_fns' must be a 2-tuple. Received {shown(pair)}."
            )
        if not isinstance(pair[0], int):
            raise TypeError(f"key must be a Python `int`, got {type(pair[0])}")
        _check_callable(pair[1], "fn")
    ordered = sorted(branch_fns, key=operator.itemgetter(0))
    keys = [key for key, _ in ordered]
    if keys != list(range(len(keys))):
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(keys)}) but found "
            f"{{{','.join(map(str, keys))}}}"
        )
    return [function for _, function in ordered]


# Loops


def _is_bare_tensor(value: Any) -> bool:
    """Returns whether a body returned its only variable itself, as it may in a function."""
    return isinstance(value, Tensor) and thread.recorders.tracer is not None


def while_loop(
    cond: Callable,
    body: Callable,
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: Any = None,
) -> Any:
    """Repeats `loop_vars = body(*loop_vars)` while `cond(*loop_vars)` is true.

    `body` returns a list or a tuple with the structure of `loop_vars`. Shapes may change between
    iterations, so `shape_invariants` is not needed. Tapes record every iteration, regardless
    of `back_prop`, as in TensorFlow's eager mode.

    >>> i, total = tf.while_loop(lambda i, _: i < 4, lambda i, t: (i + 1, t * 2.0), (0, 1.0))
    >>> i.numpy(), total.numpy()
    (np.int32(4), np.float32(16.0))
    """
    _check_callable(cond, "cond")
    _check_callable(body, "body")
    if type(parallel_iterations) is not int or parallel_iterations < 1:
        raise TypeError("'parallel_iterations' must be a positive integer.")
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise ValueError(
            "'loop_vars' must be provided: a list or a tuple with at least one value. Received: "
            f"{shown(loop_vars)}."
        )
    remaining = None if maximum_iterations is None else _max_iterations(maximum_iterations)
    expected = list(loop_vars)
    while (remaining is None or remaining > 0) and as_tensor(cond(*loop_vars)):
        loop_vars = body(*loop_vars)
        if len(expected) == 1 and _is_bare_tensor(loop_vars):
            loop_vars = [loop_vars]
        if not isinstance(loop_vars, (list, tuple)):
            raise TypeError(
                "'body' must return a list or a tuple with a value for each loop variable. "
                f"Received: {shown(loop_vars)}."
            )
        assert_same_structure(expected, list(loop_vars))
        remaining = None if remaining is None else remaining - 1
    leaves, pack = _nest.flatten_with_pack(loop_vars)
    kept = (TensorArray, CompositeTensor)
    return pack([x if isinstance(x, kept) else convert_to_tensor(x) for x in leaves])


def _max_iterations(value: Any) -> int:
    tensor = as_tensor(value)
    if tensor.ndim:
        raise ValueError(f"'maximum_iterations' must be a scalar. Received shape: {tensor.shape}")
    return as_int(tensor, "'maximum_iterations'")


@dispatched
def map_fn(
    fn: Callable,
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: Any = None,
    fn_output_signature: Any = None,
) -> Any:
    """Applies `fn` to each slice of `elems` along the first axis and stacks the results.

    `elems` may be a structure of tensors; `fn` then receives a structure of slices. If `fn` returns
    another structure or other dtypes than `elems`, `fn_output_signature` (formerly `dtype`)
    describes them: a structure of dtypes or of `TensorSpec`s.

    >>> tf.map_fn(lambda x: x * x, tf.constant([1, 2, 3])).numpy()
    array([1, 4, 9], dtype=int32)
    """
    _check_callable(fn, "fn")
    signature = dtype if fn_output_signature is None else fn_output_signature
    for spec in _nest.flatten(signature):
        if hasattr(spec, "_map_fn"):
            return spec._map_fn(fn, elems, signature)
    rows = _Rows(elems)
    expected = elems if signature is None else signature
    specs = rows.dtypes if signature is None else _nest.flatten(signature)
    results = [_result_array(spec, rows.count, infer_shape) for spec in specs]
    for i, row in enumerate(rows):
        y = fn(row)
        assert_same_structure(expected, y)
        for result, value in zip(results, _nest.flatten(y), strict=True):
            result.write(i, value)
    return _nest.pack(expected, iter([result.stack() for result in results]))


def scan(
    fn: Callable,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: Any = None,
) -> Any:
    """Computes `a = fn(a, x)` for each slice `x` of `elems` and stacks all values of `a`.

    `a` starts as `initializer`, or as the first slice, which then is also the first result. Both
    may be structures. With `reverse`, slices are processed from last to first, and each result has
    the position of its slice.

    >>> tf.scan(lambda a, x: a + x, tf.constant([1, 2, 3])).numpy()
    array([1, 3, 6], dtype=int32)
    """
    _check_callable(fn, "fn")
    rows = _Rows(elems, reverse)
    a, rest, expected = _initial_state("scan", rows, initializer)
    leaves = _nest.flatten(a)
    shapes = [x.shape if infer_shape else None for x in leaves]
    results = [
        TensorArray(x.dtype, rows.count, infer_shape=infer_shape, element_shape=shape)
        for x, shape in zip(leaves, shapes, strict=True)
    ]
    positions = iter(range(rows.count)[::-1] if reverse else range(rows.count))

    def write(values: list) -> None:
        position = next(positions)
        for result, value in zip(results, values, strict=True):
            result.write(position, value)

    if initializer is None:
        write(leaves)
    for row in rest:
        a = fn(a, row)
        assert_same_structure(expected, a)
        leaves = _nest.flatten(a)
        write(leaves)
    return _nest.pack(expected, iter([result.stack() for result in results]))


def foldl(
    fn: Callable,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: Any = None,
) -> Any:
    """Computes `a = fn(a, x)` for each slice `x` of `elems` and returns the last `a`.

    `a` starts as `initializer`, or as the first slice. Both may be structures.

    >>> tf.foldl(lambda a, x: 10 * a + x, tf.constant([1, 2, 3])).numpy()
    np.int32(123)
    """
    return _fold("foldl", fn, elems, initializer, reverse=False)


def foldr(
    fn: Callable,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: Any = None,
) -> Any:
    """Computes `foldl` with the slices from last to first.

    >>> tf.foldr(lambda a, x: 10 * a + x, tf.constant([1, 2, 3])).numpy()
    np.int32(321)
    """
    return _fold("foldr", fn, elems, initializer, reverse=True)


def _fold(op_name: str, fn: Callable, elems: Any, initializer: Any, reverse: bool) -> Any:
    _check_callable(fn, "fn")
    a, rest, expected = _initial_state(op_name, _Rows(elems, reverse), initializer)
    for row in rest:
        a = fn(a, row)
        assert_same_structure(expected, a)
    leaves, pack = _nest.flatten_with_pack(a)
    return pack(list(map(convert_to_tensor, leaves)))


def _initial_state(op_name: str, rows: _Rows, initializer: Any) -> tuple[Any, Iterator, Any]:
    """Returns the initial `a`, the remaining slices, and the expected structure."""
    rest = iter(rows)
    if initializer is not None:
        leaves, pack = _nest.flatten_with_pack(initializer)
        return pack(list(map(convert_to_tensor, leaves))), rest, initializer
    if not rows.count:
        raise OutOfRangeError(
            None,
            None,
            f"{op_name}: `elems` has no slices. Expected at least one, or an initializer.",
        )
    return next(rest), rest, rows.structure


class _Rows:
    """The slices of a structure of tensors along their first axis.

    Each tensor is unstacked by one primitive. Indexing one slice at a time would allocate a
    full-size cotangent for each.
    """

    def __init__(self, elems: Any, reverse: bool = False) -> None:
        self.structure = elems
        leaves, self._pack = _nest.flatten_with_pack(elems)
        if not leaves:
            raise ValueError(
                "elems must be a Tensor or (possibly nested) sequence of Tensors. Got "
                f"{as_text(elems)}, which does not contain any Tensors."
            )
        tensors = list(map(as_tensor, leaves))
        for x in tensors:
            if not x.ndim:
                raise ValueError(
                    "Elements in elems must be 1+ dimensional Tensors, not scalars. Received: "
                    f"{shown(elems)}; a list is a structure here, so convert it with tf.constant."
                )
        sizes = [len(x) for x in tensors]
        if len(set(sizes)) > 1:
            raise ValueError(f"Dimensions {' and '.join(map(str, sizes))} are not compatible")
        self.count = sizes[0]
        self.dtypes = [x.dtype for x in tensors]
        step = -1 if reverse else 1
        self._columns = [unstack(x, axis=0)[::step] if self.count else () for x in tensors]

    def __iter__(self) -> Iterator[Any]:
        return (self._pack(list(row)) for row in zip(*self._columns, strict=True))


def _result_array(spec: Any, size: int, infer_shape: bool) -> TensorArray:
    """Creates the TensorArray for results described by a dtype or a TensorSpec."""
    shape = spec.shape if isinstance(spec, TensorSpec) else None
    dtype = spec.dtype if isinstance(spec, TensorSpec) else as_dtype(spec)
    return TensorArray(dtype, size, infer_shape=infer_shape, element_shape=shape)


def _check_callable(function: Any, argument: str) -> None:
    if not callable(function):
        raise TypeError(f"'{argument}' must be callable. Received: {shown(function)}.")
