"""ForwardAccumulator: derivatives that go along with the computation."""

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
    """Follows a direction through the operations of a `with` block: Jacobian-vector products.

    `primals` are tensors or variables, or a structure of them, and `tangents` says how each of them
    moves. Afterwards, and inside the block too, `jvp(y)` is how `y` moves along. One pass costs
    about as much as the computation itself, however many outputs there are.

    Accumulators and tapes nest. Around a tape, an accumulator gives products with the Hessian:

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
        of_primals, of_tangents = nest.flatten(primals), nest.flatten(tangents)
        alike = nest.is_nested(primals) == nest.is_nested(tangents)
        if not alike or len(of_primals) != len(of_tangents):
            raise ValueError(
                "The primals and tangents don't have the same nested structure.\n"
                f"  primals: {as_text(primals)}\n"
                f"  tangents: {as_text(tangents)}\n"
                "Expected one tangent for each primal; of lists and arrays, tf.constant makes one."
            )
        for primal, tangent in zip(of_primals, of_tangents, strict=True):
            self._watch(primal, tangent)

    def _watch(self, primal: Any, tangent: Any) -> None:
        held = source_of(primal)
        if held is None:
            raise TypeError(
                f"A primal must be a tensor or a variable. Received: {shown(primal)} of type "
                f"{type(primal).__name__!r}."
            )
        spec = held._spec
        if spec.dtype not in dtypes.INEXACT:
            warn_non_float("primal", held.dtype)
            return
        given = tensor_or_variable(tangent)
        t = Tensor(as_array(tangent, spec.dtype)) if given is None else given._read()
        check_dtype(t._spec, spec.dtype)
        if t._spec.shape != spec.shape:
            raise ValueError(
                f"A tangent has shape {t._spec.shape}, its primal {spec.shape}. Expected the "
                "same shape."
            )
        before = self._tangents.get(held._id)
        self._tangents[held._id] = t if before is None else before + t

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
        """How `primals`, a tensor or a structure of them, move along.

        What does not depend on the primals of the accumulator gives `None`, or zeros with
        `unconnected_gradients="zero"`.
        """
        unconnected = as_unconnected_gradients(unconnected_gradients)
        leaves, pack = nest.flatten_with_pack(primals)
        return pack([self._tangent_of(leaf, unconnected) for leaf in leaves])

    def _tangent_of(self, primal: Any, unconnected: UnconnectedGradients) -> Tensor | None:
        held = source_of(primal)
        if held is None:
            raise TypeError(
                f"jvp() takes tensors and variables. Received: {shown(primal)} of type "
                f"{type(primal).__name__!r}."
            )
        t = self._tangents.get(held._id)
        if t is None and unconnected is UnconnectedGradients.ZERO:
            return Tensor(np.zeros(held._spec.shape, held._spec.dtype))
        return t

    def record(self, primitive: Primitive, inputs: tuple, attrs: dict, y: Any) -> None:
        """Computes how `y` moves if one of `inputs` does; only who is outside hears of that."""
        tangents = [self._tangents.get(x._id) for x in inputs]
        if all(t is None for t in tangents):
            return
        recorders = thread.recorders
        with use_recorders(recorders[: recorders.index(self)]):
            moved = push_forward(primitive, inputs, attrs, y, tangents)
        if moved is None:
            return
        pairs = zip(y, moved, strict=True) if isinstance(y, tuple) else ((y, moved),)
        for output, t in pairs:
            if t is not None:
                self._keep(output, t)

    def _keep(self, y: Tensor, tangent: Tensor) -> None:
        """Remembers how `y` moves for as long as `y` lives."""
        key, tangents, references = y._id, self._tangents, self._references

        def forget(_: weakref.ref) -> None:
            tangents.pop(key, None)
            references.pop(key, None)

        tangents[key] = tangent
        references[key] = weakref.ref(y, forget)
