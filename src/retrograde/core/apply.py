"""`Primitive`, and `apply`, through which every operation runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy import ndarray

from retrograde.core import namespaces
from retrograde.core.batching import apply_batch, innermost, run_batch
from retrograde.core.hooks import hook
from retrograde.core.lazy import LazyTensor, waiting
from retrograde.core.plans import Plan, plan_for
from retrograde.core.recorders import next_id, notify, thread
from retrograde.core.rules import ALIGNED, Rule
from retrograde.core.tensor import Tensor, wrap
from retrograde.values import dtypes
from retrograde.values.errors import OpError, exhausted, invalid, is_out_of_memory
from retrograde.values.shapes import broadcast
from retrograde.values.thresholds import LARGE_ARRAY_SIZE

PRIMITIVES: dict[str, Primitive] = {}

NO_ATTRS: dict[str, Any] = {}


class Primitive:
    """An operation with a kernel, vjp rules and a batch rule.

    `kernel(xp, *inputs, **attrs)` computes on raw arrays with `xp`, either `numpy` or
    `jax.numpy`. It can be the name of a function that both have.

    `vjps` has one rule for each input, `rule(g, y, *inputs, **attrs)`, or `None` if no gradient
    flows to it. If several inputs share work, or their number varies,
    `joint(needed, g, y, *inputs, **attrs)` replaces these rules. It returns a cotangent for each
    input that `needed` marks, and `None` for the others. A rule parameter whose
    name starts with an underscore arrives as a `Spec`: the tape keeps its shape and dtype and frees
    the array.

    `batch(batched, *inputs, **attrs)` runs the primitive over a leading batch axis of the inputs
    that `batched` marks. `linear` says that y is linear in all its inputs together.

    `accepts` are the supported dtypes, and all inputs must have the same one. `None` leaves the
    check to the kernel. With `outputs`, the kernel returns a tuple. If the kernel fails,
    `error_message(*specs, **attrs)` returns the message, or `None` for the default message.

    `partials`, for elementwise primitives, are the rules for inputs that are not broadcast.
    `on_many` is the kernel for arrays of `LARGE_ARRAY_SIZE` or more elements. `writes`, if the
    kernel can write its result into an array, says when. `defer(inputs, attrs)`, if calls can be
    evaluated lazily, returns a lazy tensor, or `None` for a call that has to run now. `on_strings`
    is the kernel for strings. They are rare, so it is tried last.
    """

    pure = True  # unlike a host callback, it depends on its inputs only
    __slots__ = (
        "accepts",
        "batch",
        "defer",
        "error_message",
        "joint",
        "kernel",
        "linear",
        "name",
        "on_many",
        "on_numpy",
        "on_strings",
        "outputs",
        "partials",
        "plans",
        "vjps",
        "writes",
    )

    accepts: Any  # a frozenset of dtypes, or `None`

    def __init__(
        self,
        name: str,
        kernel: Callable | str,
        *,
        vjps: tuple[Rule | None, ...] | None = None,
        joint: Rule | None = None,
        partials: tuple[Rule | None, ...] | None = None,
        batch: Callable | None,
        linear: bool = False,
        accepts: frozenset | None = None,
        outputs: bool = False,
        error_message: Callable | None = None,
        on_numpy: Callable | None = None,
    ) -> None:
        if name in PRIMITIVES:
            raise ValueError(f"There is a primitive named {name!r} already.")
        PRIMITIVES[name] = self
        self.name = name
        self.kernel = _by_name(kernel) if isinstance(kernel, str) else kernel
        native = getattr(np, kernel) if isinstance(kernel, str) else partial(kernel, np)
        self.on_numpy = self.on_many = on_numpy or native
        self.vjps = vjps
        self.joint = joint
        self.partials = partials
        self.batch = batch
        self.linear = linear
        self.accepts = accepts
        self.outputs = outputs
        self.error_message = error_message
        self.writes: Any = None
        self.on_strings: Callable | None = None
        self.defer: Callable | None = None
        self.plans: dict[tuple[int, ...], Plan | Literal[False]] = {}

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        """Applies the primitive to tensors, or runs the kernel on raw arrays. For rules."""
        first = inputs[0]
        if type(first) is ndarray and (
            len(inputs) == 1 or (len(inputs) == 2 and type(inputs[1]) is ndarray)
        ):
            kernel = self.on_numpy if first.size < LARGE_ARRAY_SIZE else self.on_many
            return kernel(*inputs, **attrs)
        for x in inputs:
            if isinstance(x, Tensor):
                whole = inputs if len(inputs) == 1 else tuple([tensor_of(x) for x in inputs])
                return apply(self, whole, attrs)
        if namespaces.foreign and namespaces.involves_foreign(inputs):
            return _run_foreign(self, inputs, attrs)
        kernel = self.on_numpy if first.size < LARGE_ARRAY_SIZE else self.on_many
        return kernel(*inputs, **attrs)

    def run(self, arrays: Sequence[Any], attrs: dict) -> Any:
        """Runs the kernel on NumPy or JAX arrays, without recorders."""
        evaluate = namespaces.evaluator() if namespaces.foreign else None
        if evaluate is not None and (y := evaluate(self, arrays, attrs)) is not NotImplemented:
            return y
        if self.on_strings is not None and all([x.dtype.kind == "O" for x in arrays]):
            return self.on_strings(*arrays)
        xp = namespaces.namespace_of(arrays) if namespaces.foreign else np
        if xp is not np:
            return namespaces.run(self.kernel, arrays, attrs)
        kernel = self.on_numpy if arrays[0].size < LARGE_ARRAY_SIZE else self.on_many
        return kernel(*arrays, **attrs)

    def plan(self, key: tuple[int, ...]) -> Plan | Literal[False]:
        """Returns the plan for a call, or `False` if no gradient flows.

        `key` has the state of each input: `UNCONNECTED`, `CONNECTED`, or `ALIGNED` if the primitive
        is elementwise and the input has the shape of y.
        """
        if key not in self.plans:
            self.plans[key] = self._plan(key) or False
        return self.plans[key]

    def _plan(self, key: tuple[int, ...]) -> Plan | None:
        connected = tuple(map(bool, key))
        if self.joint is not None:
            return plan_for((), self.joint, connected, self)
        if self.vjps is None:
            return None
        partials: Any = self.partials
        states = enumerate(key)
        rules = tuple([(partials if s == ALIGNED else self.vjps)[i] for i, s in states])
        return plan_for(rules, None, connected, self)

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"


def _by_name(name: str) -> Callable:
    return lambda xp, *inputs, **attrs: getattr(xp, name)(*inputs, **attrs)


def tensor_of(x: Any) -> Tensor:
    """Converts `x` to a tensor if it is a raw array."""
    return x if isinstance(x, Tensor) else Tensor(x)


_new = object.__new__

# Exceptions that NumPy and Python raise in kernels for invalid arguments.
_TOO_MANY_AXES = "this function only supports up to 32 dimensions"  # NumPy's RuntimeError
_FROM_KERNELS = (ValueError, TypeError, IndexError, ArithmeticError)


def apply(primitive: Primitive, inputs: tuple[Tensor, ...], attrs: dict = NO_ATTRS) -> Any:
    """Runs `primitive` on tensors and notifies the recorders. Returns a tensor or a tuple."""
    if (namespaces.foreign or waiting) and _are_unusual(inputs):
        return _apply_unusual(primitive, inputs, attrs)
    y: Any
    recorders = thread.recorders
    quietly = recorders.quietly
    try:
        # One and two inputs are handled separately: packing and unpacking costs as much as a small
        # kernel.
        if attrs or len(inputs) > 2:
            value = _evaluate(primitive, [x._array for x in inputs], attrs, quietly)
        elif len(inputs) == 2:
            x1, x2 = inputs
            a1, a2 = x1._array, x2._array
            dtype, accepts = a1.dtype, primitive.accepts
            if accepts is not None and (dtype is not a2.dtype or dtype not in accepts):
                _check_dtypes(primitive, [a1, a2])
            if (small := a1.size < LARGE_ARRAY_SIZE) or (y := _deferred(primitive, inputs)) is None:
                value = quietly(primitive.on_numpy if small else primitive.on_many, a1, a2)
            else:
                return y
        else:
            array, accepts = inputs[0]._array, primitive.accepts
            if accepts is not None and array.dtype not in accepts:
                _check_dtypes(primitive, [array])
            if (small := array.size < LARGE_ARRAY_SIZE) or (
                y := _deferred(primitive, inputs)
            ) is None:
                value = quietly(primitive.on_numpy if small else primitive.on_many, array)
            else:
                return y
    except Exception as error:
        value = _recover(primitive, [x._array for x in inputs], attrs, error)
    if primitive.outputs:
        y = tuple([wrap(v) for v in value])
    else:
        y = _new(Tensor)  # inlined `wrap`
        y._array = value
        y._id = next_id()
    # Inlined `notify`, which takes 1.8 % more instructions on a chain of 100 sines.
    for recorder in recorders:
        recorder.record(primitive, inputs, attrs, y)
    return y


def _deferred(primitive: Primitive, inputs: tuple, attrs: dict = NO_ATTRS) -> Tensor | None:
    """Returns a lazy result after notifying the recorders, or `None` if the call runs now."""
    return None if primitive.defer is None else primitive.defer(inputs, attrs)


def _evaluate(primitive: Primitive, arrays: list, attrs: dict, quietly: Callable) -> Any:
    if primitive.accepts is not None:
        _check_dtypes(primitive, arrays)
    kernel = primitive.on_numpy if arrays[0].size < LARGE_ARRAY_SIZE else primitive.on_many
    return quietly(kernel, *arrays, **attrs)


def _are_unusual(inputs: tuple[Tensor, ...]) -> bool:
    """Returns whether an input is lazy, batched or foreign."""
    if type(inputs[0]) is LazyTensor or type(inputs[-1]) is LazyTensor:
        return True
    return namespaces.foreign and namespaces.involves_foreign([x._spec for x in inputs])


def _apply_unusual(primitive: Primitive, inputs: tuple, attrs: dict) -> Any:
    """Applies a primitive to inputs that are lazy, batched or foreign."""
    y: Any
    foreign = namespaces.foreign and namespaces.involves_foreign([x._spec for x in inputs])
    if foreign and (y := hook("apply_on_device")(primitive, inputs, attrs)) is not None:
        return y
    if not foreign and (y := _deferred(primitive, inputs, attrs)) is not None:
        return y  # the result of a lazy input can be lazy too
    arrays = [x._array for x in inputs]
    recorders = thread.recorders
    try:
        if primitive.accepts is not None:
            _check_dtypes(primitive, arrays)
        level = innermost(arrays)
        if level is not None:
            return apply_batch(level, primitive, inputs, attrs)
        value = recorders.quietly(_run_foreign, primitive, arrays, attrs)
    except Exception as error:
        value = _recover(primitive, arrays, attrs, error)
    y = tuple([wrap(v) for v in value]) if primitive.outputs else wrap(value)
    notify(recorders, primitive, inputs, attrs, y)
    return y


def _run_foreign(primitive: Primitive, arrays: Sequence, attrs: dict) -> Any:
    """Runs the kernel on raw arrays, which may be foreign, or the batch rule on batches."""
    level = innermost(arrays)
    if level is not None:
        return run_batch(level, primitive, arrays, attrs)
    return primitive.run(arrays, attrs)


def _check_dtypes(primitive: Primitive, arrays: list) -> None:
    dtype, accepts = arrays[0].dtype, primitive.accepts
    for array in arrays:
        if array.dtype != dtype or dtype not in accepts:
            raise invalid(_dtype_message(primitive, arrays), in_function=TypeError)


def _recover(primitive: Primitive, arrays: list, attrs: dict, error: Exception) -> Any:
    """Raises the user-facing error for a failed kernel, or computes the value in another way."""
    if isinstance(error, RuntimeError) and str(error).startswith("cannot enter context"):
        # A signal handler or finalizer runs inside a kernel of this thread, which is quiet already.
        return primitive.kernel(namespaces.namespace_of(arrays), *arrays, **attrs)
    if is_out_of_memory(error):
        raise exhausted(error, primitive.name) from None
    if primitive.on_strings and all(array.dtype.kind == "O" for array in arrays):
        return primitive.on_strings(*arrays)
    if isinstance(error, OpError) or not (
        isinstance(error, _FROM_KERNELS) or str(error).startswith(_TOO_MANY_AXES)
    ):
        raise error
    message = primitive.error_message and primitive.error_message(*arrays, **attrs)
    message = message or _default_message(primitive, arrays, error)
    raise invalid(message, in_function=ValueError) from None


def _default_message(primitive: Primitive, arrays: list, error: Exception) -> str:
    shapes = [tuple(array.shape) for array in arrays]
    if primitive.partials is not None and broadcast(*shapes) is None:
        return (
            f"{primitive.name}: incompatible shapes {' and '.join(map(str, shapes))}. "
            "Expected shapes that broadcast: aligned at their last axes, each pair of "
            "dimensions is equal or one of them is 1."
        )
    received = ", ".join(
        f"{shape} {dtypes.of(a.dtype).name}" for shape, a in zip(shapes, arrays, strict=True)
    )
    return f"{primitive.name}: {error}. Received: {received}."


def _dtype_message(primitive: Primitive, arrays: list) -> str:
    names = [dtypes.of(array.dtype).name for array in arrays]
    first = arrays[0].dtype
    if first in primitive.accepts:
        position = next(i for i, array in enumerate(arrays) if array.dtype != first)
        return (
            f"cannot compute {primitive.name} as input #{position}(zero-based) was expected to be "
            f"a {names[0]} tensor but is a {names[position]} tensor. Use tf.cast on one of them."
        )
    allowed = [d.name for d in dtypes.ALL if d.numpy_dtype in primitive.accepts]
    return (
        f"{primitive.name}: dtype {names[0]} is not supported. "
        f"Expected one of {', '.join(allowed)}."
    )
