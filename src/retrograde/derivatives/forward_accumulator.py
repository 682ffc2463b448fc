"""ForwardAccumulator: forward-mode derivatives during the computation."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.recorders import Recorder, thread, use_recorders
from retrograde.core.tape_arguments import (
    UnconnectedGradients,
    as_unconnected_gradients,
    warn_non_float,
)
from retrograde.core.tensor import Tensor
from retrograde.derivatives.forward_mode import push_forward
from retrograde.values import dtypes, nest
from retrograde.values.arguments import as_text, shown
from retrograde.values.conversion import as_array, check_dtype, source_of, tensor_or_variable


class ForwardAccumulator(Recorder):
    """Computes Jacobian-vector products in forward mode, for the operations of a `with` block.

    `primals` are tensors or variables, or a structure of them, and `tangents` are their tangents.
    `jvp(y)`, inside the block or afterwards, returns the tangent of `y`. One pass costs about as
    much as the computation itself, regardless of the number of outputs.

    Accumulators and tapes nest. An accumulator around a tape computes Hessian-vector products:

    >>> x = tf.constant([1.0, 2.0])
    >>> with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as forward:
    ...     with tf.GradientTape() as tape:
    ...         tape.watch(x)
    ...         y = tf.reduce_prod(x) * x[0]
    ...     gradient = tape.gradient(y, x)
    >>> forward.jvp(gradient).numpy()
    array([4., 2.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_recording", "_references", "_tangents")

    def __init__(self, primals: Any, tangents: Any) -> None:
        self._recording = False
        self._tangents: dict[int, Tensor] = {}
        self._references: dict[int, weakref.ref] = {}
        flat_primals, flat_tangents = nest.flatten(primals), nest.flatten(tangents)
        same_nesting = nest.is_nested(primals) == nest.is_nested(tangents)
        if not same_nesting or len(flat_primals) != len(flat_tangents):
            raise ValueError(
                "The primals and tangents don't have the same nested structure.\n"
                f"  primals: {as_text(primals)}\n"
                f"  tangents: {as_text(tangents)}\n"
                "Expected one tangent for each primal. Use tf.constant for lists and arrays."
            )
        if len({id(primal) for primal in flat_primals}) < len(flat_primals):
            raise ValueError(
                "A tensor is a primal several times. Pass it once, with the sum of its tangents."
            )
        for primal, tangent in zip(flat_primals, flat_tangents, strict=True):
            self._watch(primal, tangent)

    def _watch(self, primal: Any, tangent: Any) -> None:
        x = source_of(primal)
        if x is None:
            raise TypeError(
                f"A primal must be a tensor or a variable. Received: {shown(primal)} of type "
                f"{type(primal).__name__!r}."
            )
        spec = x._spec
        if spec.dtype not in dtypes.INEXACT:
            warn_non_float("primal", x.dtype)
            return
        held_tangent = tensor_or_variable(tangent)
        is_tensor = held_tangent is not None
        t = held_tangent._read() if is_tensor else Tensor(as_array(tangent, spec.dtype))
        check_dtype(t._spec, spec.dtype)
        if t._spec.shape != spec.shape:
            raise ValueError(
                f"A tangent has shape {t._spec.shape}, its primal {spec.shape}. Expected the "
                "same shape."
            )
        before = self._tangents.get(x._id)
        self._tangents[x._id] = t if before is None else before + t

    def __enter__(self) -> ForwardAccumulator:
        if self._recording:
            raise ValueError("Accumulator is already recording.")
        thread.recorders.append(self)
        self._recording = True
        return self

    def __exit__(self, *_: Any) -> None:
        self._recording = False
        if self in thread.recorders:
            thread.recorders.remove(self)

    def jvp(
        self,
        primals: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """Returns the tangents of `primals`, a tensor or a structure of tensors.

        A tensor that does not depend on the primals of the accumulator gives `None`, or zeros with
        `unconnected_gradients="zero"`.
        """
        unconnected = as_unconnected_gradients(unconnected_gradients)
        leaves, pack = nest.flatten_with_pack(primals)
        return pack([self._tangent_of(leaf, unconnected) for leaf in leaves])

    def _tangent_of(self, primal: Any, unconnected: UnconnectedGradients) -> Tensor | None:
        x = source_of(primal)
        if x is None:
            raise TypeError(
                f"jvp() expects tensors or variables. Received: {shown(primal)} of type "
                f"{type(primal).__name__!r}."
            )
        t = self._tangents.get(x._id)
        if t is None and unconnected is UnconnectedGradients.ZERO:
            return Tensor(np.zeros(x._spec.shape, x._spec.dtype))
        return t

    def record(self, primitive: Primitive, inputs: tuple, attrs: dict, y: Any) -> None:
        """Computes the tangent of `y`. Only outer recorders observe this computation."""
        tangents = [self._tangents.get(x._id) for x in inputs]
        if all(t is None for t in tangents):
            return
        recorders = thread.recorders
        with use_recorders(recorders[: recorders.index(self)]):
            tangent = push_forward(primitive, inputs, attrs, y, tangents)
        if tangent is None:
            return
        pairs = zip(y, tangent, strict=True) if isinstance(y, tuple) else ((y, tangent),)
        for output, t in pairs:
            if t is not None:
                self._keep(output, t)

    def _keep(self, y: Tensor, tangent: Tensor) -> None:
        """Keeps the tangent of `y` as long as `y` is alive."""
        key, tangents, references = y._id, self._tangents, self._references

        def forget(_: weakref.ref) -> None:
            tangents.pop(key, None)
            references.pop(key, None)

        tangents[key] = tangent
        references[key] = weakref.ref(y, forget)
