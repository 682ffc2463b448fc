"""Tensors that pile up from step to step, noticed."""

from __future__ import annotations

import functools
import gc
import sys
from collections import Counter, deque
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any

from retrograde.core.lazy import LazyTensor
from retrograde.core.plans import Plan
from retrograde.core.tensor import Tensor
from retrograde.diagnose.rendering import bytes_in_words, described
from retrograde.fusion.deferred_calls import Deferred
from retrograde.values.arguments import shown
from retrograde.values.errors import ResourceExhaustedError

_WARMING_UP = 3  # steps in which optimizers and the like make what they keep
_SHOWN = 5


class no_growth:
    """Raises if there are more and more live tensors from step to step.

    Around a loop, call `step()` of what the `with` statement gives at the end of each step; or put
    it as a decorator on the function that does a step. After a few steps to warm up, tensors are
    counted, and again after half of `steps` and after all of them. If there are more each time, a
    `ResourceExhaustedError` says of which shapes, how many bytes, and who holds one of them. Then
    counting begins anew.

    >>> losses = []
    >>> @tf.debugging.no_growth(steps=10)
    ... def step():
    ...     losses.append(tf.ones([1000]) * 2.0)
    >>> for _ in range(20):
    ...     step()
    Traceback (most recent call last):
        ...
    retrograde.values.errors.ResourceExhaustedError: Live tensors grew by 10 in 10 steps...:
    ...
    """

    def __init__(self, steps: int = 50) -> None:
        if not isinstance(steps, int) or steps < 2:
            raise ValueError(f"no_growth: expected 2 steps or more. Received: {shown(steps)}.")
        self._steps = steps
        self._left = _WARMING_UP
        self._counts: list[Counter] = []

    def __call__(self, function: Callable) -> Callable:
        """`function`, each call of which is a step."""

        @functools.wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self.step()
            return result

        return counted

    def __enter__(self) -> no_growth:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._counts = []

    def step(self) -> None:
        """Says that a step is over."""
        self._left -= 1
        if self._left:
            return
        self._counts.append(_census())
        self._left = self._steps // 2 if len(self._counts) == 1 else self._steps - self._steps // 2
        if len(self._counts) == 3:
            first, middle, last = (sum(counts.values()) for counts in self._counts)
            start, _, end = self._counts
            self._counts = [end]
            self._left = self._steps // 2
            if first < middle < last:
                raise ResourceExhaustedError(None, None, _report(end - start, self._steps))


def _live_tensors() -> list[Tensor]:
    """The tensors that hold an array on the host, or will when they are computed."""
    return [x for x in gc.get_objects() if type(x) is Tensor or _is_deferred(x)]


def _is_deferred(x: Any) -> bool:
    return type(x) is LazyTensor and type(x._spec) is Deferred


def _census() -> Counter:
    """How many live tensors there are, by dtype, shape and bytes."""
    gc.collect()
    return Counter((described(x._spec), _nbytes(x._spec)) for x in _live_tensors())


def _nbytes(spec: Any) -> int:
    return spec.size * spec.dtype.itemsize


def _report(grown: Counter, steps: int) -> str:
    total = sum(grown.values())
    nbytes = sum(size * count for (_, size), count in grown.items())
    lines = [f"Live tensors grew by {total} in {steps} steps, by {bytes_in_words(nbytes)}:"]
    order = sorted(grown.items(), key=lambda item: -item[0][1] * item[1])
    for (kind, size), count in order[:_SHOWN]:
        lines.append(f"  {count} more of {kind}, {bytes_in_words(size * count)}")
        holder = _holder(kind)
        lines += [f"    one of them is in {holder}"] if holder else []
    lines.append(
        "Keep numbers instead of tensors (float(loss), x.numpy()), and no tapes beyond their step."
    )
    return "\n".join(lines)


def _holder(kind: str) -> str | None:
    """Who holds the newest tensor of a kind: a container, by its name if it has one."""
    alike = [x for x in _live_tensors() if described(x._spec) == kind]
    newest = [max(alike, key=lambda x: x._id)]
    for referrer in gc.get_referrers(newest[0]):
        if referrer is newest or referrer is alike:
            continue
        if isinstance(referrer, tuple) and (kept := _kept_by_tape(referrer)):
            return kept
        if isinstance(referrer, (list, set, deque, dict, tuple)):
            kind = type(referrer).__name__
            name = _name(referrer)
            return f"a {kind} of {len(referrer)}{f', {name}' if name else ''}"
    return None


def _kept_by_tape(saved: tuple) -> str | None:
    """What to say of values that a tape keeps of one of its calls."""
    for entry in gc.get_referrers(saved):
        if type(entry) is tuple and entry and type(entry[0]) is Plan:
            return f"what a GradientTape keeps of {entry[0].name}"
    return None


def _name(container: Any) -> str | None:
    """The name of a container in a module, or the attribute of an object that it is."""
    for module in list(sys.modules.values()):
        names = vars(module) if isinstance(module, ModuleType) else {}
        if names is container:
            return f"the names of the module {module.__name__}"
        for name, value in list(names.items()):
            if value is container:
                return f"{name} of the module {module.__name__}"
    for referrer in gc.get_referrers(container):
        # An object refers to what its attributes hold; or its dictionary does, if it has one.
        owners = gc.get_referrers(referrer) if isinstance(referrer, dict) else [referrer]
        for owner in owners:
            for name, value in getattr(owner, "__dict__", {}).items():
                if value is container:
                    return f"{name} of a {type(owner).__name__}"
    return None
