"""GradientTape: writes down what happens, and rewinds it."""

from __future__ import annotations

import contextlib
import enum
import linecache
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograde.core import dtypes, indexed_slices, nest
from retrograde.core.composites import CompositeTensor
from retrograde.core.conversion import as_array, held_by
from retrograde.core.dispatch import PRIMITIVES, Primitive
from retrograde.core.errors import invalid
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.recorders import Recorder, thread
from retrograde.core.rewinding import Cotangents, leading_to, rewind
from retrograde.core.rules import (
    ALIGNED,
    CONNECTED,
    NOTHING,
    UNCONNECTED,
    Spec,
)
from retrograde.core.shapes import broadcast
from retrograde.core.tensor import Holder, Tensor, wrap

_ONLY = (CONNECTED,)
_NEITHER = (False, False)


class UnconnectedGradients(enum.Enum):
    """What `gradient` returns for a source that the target does not depend on."""

    NONE = "none"
    ZERO = "zero"


class GradientTape(Recorder):
    """Records operations inside a `with` block, for differentiation afterwards.

    Trainable variables are watched when they are read, unless `watch_accessed_variables` is
    false; other tensors have to be watched by hand. A tape gives gradients once, and lets go of
    what it holds while it does; a `persistent` tape may be asked again.

    >>> x = tf.Variable(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = x * x
    >>> tape.gradient(y, x).numpy()
    np.float32(6.0)
    """

    __slots__ = (
        "__weakref__",
        "_connected",
        "_entries",
        "_persistent",
        "_recording",
        "_roots",
        "_spent_at",
        "_variables",
        "_watch_accessed_variables",
    )

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watch_accessed_variables = watch_accessed_variables
        self._recording = False
        self._clear()

    def _clear(self) -> None:
        self._entries: list[tuple] | None = []
        self._connected: set[int] = set()  # ids of all tensors that a root leads to
        self._roots: set[int] = set()  # ids of what is watched
        self._variables: dict[int, Any] = {}
        self._spent_at: tuple[str, int] | None = None

    def __enter__(self) -> GradientTape:
        if self._recording:
            raise ValueError(
                "Tape is still recording. This can happen if you try to re-enter an "
                "already-active tape."
            )
        if self._entries is None:
            self._clear()
        thread.recorders.append(self)
        self._recording = True
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop()

    def _stop(self) -> None:
        self._recording = False
        recorders = thread.recorders
        if self in recorders:  # not if gradient() took it off, or runs in another thread
            recorders.remove(self)

    def watch(self, tensor: Any) -> None:
        """Follows `tensor`, a Tensor or Variable or a structure of them, from here on.

        >>> x = tf.constant(3.0)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x**3
        >>> tape.gradient(y, x).numpy()
        np.float32(27.0)
        """
        for x in _flat(tensor, "watch")[0]:
            if x.dtype.numpy_dtype not in dtypes.INEXACT:
                _warn_of_dtype(x.dtype)
                continue
            self._connected.add(x._id)
            self._roots.add(x._id)
            if not isinstance(x, Tensor):
                self._variables[x._id] = x

    def watched_variables(self) -> tuple:
        """The variables that are watched, in the order in which they came to be."""
        return tuple(self._variables.values())

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """A block that this tape does not record; other tapes do.

        >>> x = tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     with tape.stop_recording():
        ...         y = x * x
        >>> print(tape.gradient(y, x))
        None
        """
        recorders = thread.recorders
        if not self._recording or self not in recorders:
            raise RuntimeError("Tape is not recording in this thread: there is nothing to stop.")
        position = recorders.index(self)
        del recorders[position]
        self._recording = False
        try:
            yield
        finally:
            recorders.insert(position, self)
            self._recording = True

    def reset(self) -> None:
        """Forgets all that was recorded and watched, and goes on recording."""
        if not self._recording:
            raise ValueError("Tape is not recording: reset() belongs inside its `with` block.")
        self._clear()

    # Recording

    def read(self, variable: Any) -> None:
        """Watches a trainable variable that is read while the tape runs."""
        key = variable._id
        if key in self._connected or not (self._watch_accessed_variables and variable._trainable):
            return
        if variable._array.dtype in dtypes.INEXACT:
            self._connected.add(key)
            self._roots.add(key)
            self._variables[key] = variable

    def record(self, primitive: Primitive, inputs: tuple, attrs: dict, y: Any) -> None:
        """Writes down a call if one of its inputs is connected to what is watched."""
        connected = self._connected
        if len(inputs) == 1:
            (x,) = inputs
            ids = (x._id,)
            if x._id not in connected:
                return
            key = _ONLY
            values = (NOTHING, y, x)
        elif len(inputs) == 2:
            x1, x2 = inputs
            ids = id1, id2 = (x1._id, x2._id)
            key = (id1 in connected, id2 in connected)
            if key == _NEITHER:
                return
            if primitive.partials is not None:
                shape = y._array.shape
                key = (
                    key[0] and (ALIGNED if x1._array.shape == shape else CONNECTED),
                    key[1] and (ALIGNED if x2._array.shape == shape else CONNECTED),
                )
            values = (NOTHING, y, x1, x2)
        else:
            ids = tuple([x._id for x in inputs])
            if connected.isdisjoint(ids):
                return
            key = tuple([_state(primitive, x, y, x._id in connected) for x in inputs])
            values = (NOTHING, y, *inputs)
        plan = primitive.plans.get(key)
        if plan is None:
            plan = primitive.plan(key)
        if plan is False or self._entries is None:  # spent by another thread
            return
        if type(y) is tuple:
            out = tuple([(t._id, Spec.of(t)) for t in y])
            connected.update([i for i, spec in out if spec.dtype in dtypes.INEXACT])
        else:
            out = y._id
            connected.add(out)
        self._entries.append((plan, ids, out, plan.save(values), attrs))

    # Rewinding

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """The derivative of the sum of `target` with respect to each of `sources`.

        `target` and `sources` may be structures; the result has the structure of `sources`.
        `output_gradients` weighs the targets. A source that no target depends on gives `None`,
        or zeros with `unconnected_gradients="zero"`.

        >>> x, y = tf.Variable(2.0), tf.Variable(5.0)
        >>> with tf.GradientTape() as tape:
        ...     z = x * x * y
        >>> [g.numpy() for g in tape.gradient(z, [x, y])]
        [np.float32(20.0), np.float32(4.0)]
        """
        if self._entries is None:
            raise RuntimeError(_spent_message(*self._spent_at))
        unconnected = _unconnected(unconnected_gradients)
        targets, _ = _flat(target, "target")
        held, pack = _flat(sources, "source")
        weights = _weights(output_gradients, target, len(targets))
        boxed = bool(thread.recorders) and (self._persistent or thread.recorders != [self])
        cotangents = Cotangents(boxed)
        for x, weight in zip(targets, weights, strict=True):
            if x._array.dtype in dtypes.INEXACT:
                cotangents.deposit(x._id, _seed(x, weight, boxed))
        entries = list(self._entries) if self._persistent else self._spend(sys._getframe(1))
        wanted = {x._id for x in held}
        leads = None if self._roots <= wanted else leading_to(wanted, entries)
        rewind(entries, cotangents, wanted, leads)
        results = []
        for x in held:
            g = cotangents.get(x._id)
            results.append(wrap(g) if type(g) is np.ndarray else _result(g, x, unconnected))
        return pack(results)

    def _spend(self, frame: Any) -> list[tuple]:
        """Ends the life of the tape, remembers where, and hands over what it recorded."""
        if self._recording:
            self._stop()
        entries, self._entries = self._entries, None
        self._connected = set()
        self._spent_at = (frame.f_code.co_filename, frame.f_lineno)
        return entries


def _warn_of_dtype(dtype: dtypes.DType) -> None:
    import logging  # takes longer to import than this module

    logging.getLogger("retrograde").warning(
        "The dtype of the watched tensor must be floating (e.g. tf.float32), got %r", dtype
    )


def _state(primitive: Primitive, x: Tensor, y: Any, connected: bool) -> int:
    """How an input stands to the tape, as in the key of a plan."""
    if connected and primitive.partials is not None and x._array.shape == y._array.shape:
        return ALIGNED
    return CONNECTED if connected else UNCONNECTED


def _flat(structure: Any, role: str) -> tuple[list, Any]:
    """The tensors and variables in `structure`, and what packs others in their place."""
    leaves, pack = nest.flatten_with_pack(structure)
    composites = {}
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, Holder):
            if isinstance(leaf, CompositeTensor):
                composites[i] = leaf
            leaves[i] = _tensor_or_variable(leaf, role)
    return leaves, _packing(pack, composites) if composites else pack


def _packing(pack: Any, composites: dict[int, CompositeTensor]) -> Any:
    """`pack`, after the gradients at the places of `composites` were made into such."""

    def pack_whole(values: list) -> Any:
        whole = list(values)
        for i, leaf in composites.items():
            whole[i] = None if values[i] is None else leaf._with_gradient(values[i])
        return pack(whole)

    return pack_whole


def _tensor_or_variable(leaf: Any, role: str) -> Any:
    held = held_by(leaf)
    if held is not None:
        return held
    if isinstance(leaf, CompositeTensor):
        return _followed(leaf, role)
    if role == "watch":
        raise ValueError(
            f"Passed in object {leaf!r} of type {type(leaf).__name__!r}, not tf.Tensor or "
            "tf.Variable. Convert it with tf.constant first, and use that tensor from then on."
        )
    raise TypeError(
        f"A {role} of gradient() must be a tensor or a variable. Received: {leaf!r} of type "
        f"{type(leaf).__name__!r}."
    )


def _followed(composite: CompositeTensor, role: str) -> Tensor:
    if role != "watch" and not composite._takes_gradients:
        raise ValueError(
            f"Type {type(composite).__name__} is not supported as a gradient source or gradient "
            "target. Use the tensor in its attribute `values`."
        )
    return composite._followed


def _unconnected(value: Any) -> UnconnectedGradients:
    if isinstance(value, UnconnectedGradients):
        return value
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {value!r}. Expected 'none' or 'zero'."
        ) from None


def _weights(output_gradients: Any, target: Any, count: int) -> list:
    """One output gradient, or `None` for ones, for each target."""
    if output_gradients is None:
        return [None] * count
    if not isinstance(target, (list, tuple, dict)):
        return [output_gradients]
    weights = nest.flatten(output_gradients)
    if len(weights) != count:
        raise ValueError(
            f"gradient() received {len(weights)} output_gradients for {count} targets. "
            "Expected one for each target; None stands for ones."
        )
    return weights


def _seed(target: Any, weight: Any, boxed: bool) -> Any:
    """The cotangent a walk starts with."""
    shape, dtype = target._array.shape, target._array.dtype
    if weight is None:
        ones = np.ones(shape, dtype) if shape else dtype.type(1)
        return Tensor(ones) if boxed else ones
    if isinstance(weight, IndexedSlices):
        weight = indexed_slices.dense(weight)
    elif isinstance(weight, CompositeTensor):
        weight = _followed(weight, "output gradient")
    held = held_by(weight)
    g = held._read() if held is not None else Tensor(as_array(weight, hint=dtype))
    if g._array.dtype != dtype:
        raise invalid(
            f"gradient: an output gradient has dtype {g.dtype.name}, its target "
            f"{target.dtype.name}. Expected the same dtype: use tf.cast."
        )
    if g._array.shape != shape:
        if broadcast(g._array.shape, shape) != shape:
            raise invalid(
                f"gradient: incompatible shapes: an output gradient has shape {g._array.shape}, "
                f"its target {shape}. Expected the same shape."
            )
        g = PRIMITIVES["broadcast_to"](g, shape=shape)
    return g if boxed else g._array


def _result(g: Any, source: Any, unconnected: UnconnectedGradients) -> Any:
    """What the user sees of a cotangent."""
    if g is None:
        if unconnected is UnconnectedGradients.NONE:
            return None
        return Tensor(np.zeros(source._array.shape, source._array.dtype))
    if isinstance(g, Tensor):
        return g
    return indexed_slices.for_user(g) if isinstance(g, IndexedSlices) else wrap(g)


def _spent_message(filename: str, line: int) -> str:
    code = linecache.getline(filename, line).strip()
    return (
        "A non-persistent GradientTape can only be used to compute one set of gradients (or "
        f"jacobians), and this one was used at {filename}:{line}"
        f"{': ' + code if code else ''}.\n"
        "Ask for all gradients in one call, gradient(target, [source_1, source_2, ...]), or make "
        "the tape with tf.GradientTape(persistent=True)."
    )
