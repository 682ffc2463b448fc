"""GradientTape: gradients and all other derivatives of what a tape recorded."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from retrograde.core.backward import Cotangents, backward_pass, can_wait, is_finite, leading_to
from retrograde.core.hooks import TAPE_METHODS, LazyMethod, hook
from retrograde.core.lazy import MOST, group_of, settle_only, waiting
from retrograde.core.recorders import thread
from retrograde.core.tape_arguments import (
    REAL_SCALARS,
    UnconnectedGradients,
    flat,
    result,
    seed,
    unconnected_from,
    weights_for,
)
from retrograde.core.tape_recorder import TapeRecording
from retrograde.core.tensor import Tensor, wrap
from retrograde.values import dtypes

_SMALL = 1 << 14  # elements of a target that a look at takes no time, next to the walk back


class GradientTape(TapeRecording):
    """Records operations inside a `with` block, for differentiation afterwards.

    Trainable variables are watched when they are read, unless `watch_accessed_variables` is
    false; other tensors have to be watched by hand. A tape gives gradients once, and lets go of
    what it holds while it does; a `persistent` tape may be asked again.

    `on_none` says what a gradient that is `None` leads to: "explain", a warning with the reason;
    "raise", an error with it; "zeros", zeros in its place.

    With `lines`, the tape notes for each call the line of your program that made it, and keeps all
    values that went in and came out, also after it gave its gradients, for questions like
    `autopsy()`. By default it does so inside `tf.debugging.record_lines()`.

    With a `memory_limit`, in bytes or as "2GB", the tape holds no more than that besides the values
    of variables: it lets go of what is cheapest to compute again, and does that in the walk back.
    Gradients are the same to the bit. `memory()` tells what it took. A limit that cannot be met is
    a `ResourceExhaustedError`.

    >>> x = tf.Variable(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = x * x
    >>> tape.gradient(y, x).numpy()
    np.float32(6.0)
    """

    __slots__ = ()

    # As in TensorFlow

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        *,
        per_example: bool | str = False,
    ) -> Any:
        """The derivative of the sum of `target` with respect to each of `sources`.

        `target` and `sources` may be structures; the result has the structure of `sources`.
        `output_gradients` weighs the targets. A source that no target depends on gives `None`,
        or zeros with `unconnected_gradients="zero"`.

        With `per_example=True`, `target` holds a loss for each example of a batch, and each result
        has the gradients of all of them along a first axis. With `per_example="norm"` it is the
        length of each example's gradient, over all sources.

        >>> x, y = tf.Variable(2.0), tf.Variable(5.0)
        >>> with tf.GradientTape() as tape:
        ...     z = x * x * y
        >>> [g.numpy() for g in tape.gradient(z, [x, y])]
        [np.float32(20.0), np.float32(4.0)]
        """
        if per_example:
            return hook("per_example_gradient")(
                self, target, sources, output_gradients, per_example
            )
        if self._entries is None:
            self._check_not_spent()
        unconnected = unconnected_from(unconnected_gradients)
        targets, _ = flat(target, "target")
        held, pack = flat(sources, "source")
        weights = weights_for(output_gradients, target, len(targets))
        recorders = thread.recorders
        if waiting and output_gradients is None and not recorders and recorders.walk is None:
            found = self._run_together(targets, held, sys._getframe(1))
            if found is not None:
                return pack(found)
        boxed = bool(recorders) and self._is_heard()
        cotangents = Cotangents(boxed)
        kept = self._persistent or self._places is not None
        exact = ()  # targets that nothing leads to, but that may be sources themselves
        for i, x in enumerate(targets):
            array = x._array
            if array.dtype in dtypes.INEXACT:
                g = seed(x, weights[i], boxed)
                cotangents.deposit(x._id, g)
                if type(array) in REAL_SCALARS and weights[i] is None:
                    kept = kept or not math.isfinite(array)  # for who asks why
                else:
                    kept = kept or not _are_finite(array, g)
            elif array.dtype.kind != "O":
                exact = (*exact, i)
        entries = self._entries.copy() if self._persistent else self._spend(sys._getframe(1))
        if self._ledger is None:
            if kept:
                self._keep(entries, targets, weights, held)
            else:
                cotangents.alert = self._listened = True
        wanted = set()
        for x in held:
            wanted.add(x._id)
        leads = None if self._roots <= wanted else leading_to(wanted, entries)
        walk = recorders.walk or backward_pass
        walk(entries, cotangents, wanted, leads)
        for i in exact:
            if targets[i]._id in wanted:
                cotangents.deposit(targets[i]._id, seed(targets[i], weights[i], boxed))
        if self._on_none is not None and self._on_none == "zeros":
            unconnected = UnconnectedGradients.ZERO
        results = []
        complete = True
        for x in held:
            g = cotangents.get(x._id)
            if g is None:
                complete = False
            if type(g) is np.ndarray:
                results.append(wrap(g))
            else:
                results.append(result(g, x, unconnected))
        if cotangents.spoilt is not None:
            self._keep_spoilt(cotangents, targets, weights, held)
        if not complete:
            missing = _missing(held, cotangents)
            self._miss(targets, missing, unconnected is UnconnectedGradients.NONE)
        return pack(results)

    def _run_together(self, targets: list, held: list, frame: Any) -> list | None:
        """The gradients of targets that wait to be computed, computed together with them.

        That is only done if all of it can be, and if all numbers are finite: `None` if not, and
        nothing has happened.
        """
        entries = self._entries
        group = group_of(targets)
        if self._persistent or group is None or not can_wait(entries, MOST - len(group.calls)):
            return None
        cotangents = Cotangents(boxed=True)
        cotangents.alert = cotangents.may_wait = True
        for x in targets:
            cotangents.deposit(x._id, seed(x, None, boxed=True))
        wanted = {x._id for x in held}
        leads = None if self._roots <= wanted else leading_to(wanted, entries)
        backward_pass(entries.copy(), cotangents, wanted, leads)
        found = [cotangents.get(x._id) for x in held]
        if not all([isinstance(g, Tensor) for g in found]) or cotangents.spoilt is not None:
            return None
        alarmed = settle_only([*targets, *found]) or group.alarmed
        if alarmed or not all([_are_finite(x._array, None) for x in targets]):
            return None
        self._spend(frame)
        self._listened = True
        return found

    def _continued(self, frame: Any) -> GradientTape:
        """A persistent tape that holds what this one does, so that it can go on from there."""
        self._check_not_spent()
        tape = GradientTape(persistent=True, watch_accessed_variables=False)
        tape._connected, tape._roots = dict(self._connected), set(self._roots)
        tape._entries = self._entries.copy() if self._persistent else self._spend(frame)
        if self._ledger is not None:
            tape._entries = list(tape._entries)  # what comes now is under no limit
        return tape


def _are_finite(array: Any, g: Any) -> bool:
    """Whether a target and its cotangent are finite, if they are so small that a look is cheap."""
    return array.size > _SMALL or (is_finite(array) and is_finite(g))


def _missing(held: list, cotangents: Cotangents) -> list:
    return [x for x in held if x._id not in cotangents]


for _name, _module in TAPE_METHODS.items():
    setattr(GradientTape, _name, LazyMethod(GradientTape, _name, _module))
