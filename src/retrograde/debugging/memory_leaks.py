"""Detects memory leaks: numbers of live tensors that grow from step to step."""

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
from retrograde.diagnose.rendering import format_bytes, format_spec
from retrograde.fusion.deferred_calls import Deferred
from retrograde.values.arguments import shown
from retrograde.values.errors import ResourceExhaustedError

_WARM_UP_STEPS = 3  # optimizers may create their variables in these steps
_SHOWN = 5


class assert_no_memory_leak:
    """Raises `ResourceExhaustedError` if the number of live tensors grows from step to step.

    Use it as a decorator of the function that runs a step. Or use it in a `with` statement around
    the training loop, and call the method `step()` of the object at the end of each step. Live
    tensors are counted after a few warm-up steps, then after half of `steps` and after `steps`. If
    the number grows both times, the error names the shapes, the bytes and a container that holds
    one of the tensors. Then counting starts again.

    >>> losses = []
    >>> @tf.debugging.assert_no_memory_leak(steps=10)
    ... def step():
    ...     losses.append(tf.ones([1000]) * 2.0)
    >>> for _ in range(20):
    ...     step()
    Traceback (most recent call last):
        ...
    retrograde.values.errors.ResourceExhaustedError: Memory leak: 10 more live tensors...
    ...
    """

    def __init__(self, steps: int = 50) -> None:
        if not isinstance(steps, int) or steps < 2:
            raise ValueError(
                f"assert_no_memory_leak: expected `steps` >= 2. Received: {shown(steps)}."
            )
        self._steps = steps
        self._left = _WARM_UP_STEPS
        self._counts: list[Counter] = []

    def __call__(self, function: Callable) -> Callable:
        """Wraps `function` to call `step()` after each call."""

        @functools.wraps(function)
        def with_step(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self.step()
            return result

        return with_step

    def __enter__(self) -> assert_no_memory_leak:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._counts = []

    def step(self) -> None:
        """Marks the end of a step."""
        self._left -= 1
        if self._left:
            return
        self._counts.append(_count_tensors())
        self._left = self._steps // 2 if len(self._counts) == 1 else self._steps - self._steps // 2
        if len(self._counts) == 3:
            first, middle, last = (sum(counts.values()) for counts in self._counts)
            start, _, end = self._counts
            self._counts = [end]
            self._left = self._steps // 2
            if first < middle < last:
                raise ResourceExhaustedError(None, None, _report(end - start, self._steps))


def _live_tensors() -> list[Tensor]:
    """Returns the tensors that hold an array on the host, or will when they are computed."""
    return [x for x in gc.get_objects() if type(x) is Tensor or _is_deferred(x)]


def _is_deferred(x: Any) -> bool:
    return type(x) is LazyTensor and type(x._spec) is Deferred


def _count_tensors() -> Counter:
    """Returns the number of live tensors by dtype and shape, and bytes."""
    gc.collect()
    return Counter((format_spec(x._spec), _nbytes(x._spec)) for x in _live_tensors())


def _nbytes(spec: Any) -> int:
    return spec.size * spec.dtype.itemsize


def _report(grown: Counter, steps: int) -> str:
    total = sum(grown.values())
    nbytes = sum(size * count for (_, size), count in grown.items())
    lines = [
        f"Memory leak: {total} more live tensors ({format_bytes(nbytes)}) after {steps} steps:"
    ]
    order = sorted(grown.items(), key=lambda item: -item[0][1] * item[1])
    for (spec, size), count in order[:_SHOWN]:
        lines.append(f"  {count} x {spec}, {format_bytes(size * count)}")
        holder = _describe_container(spec)
        lines += [f"    one of them is in {holder}"] if holder else []
    lines.append(
        "Store numbers instead of tensors (float(loss), x.numpy()), and do not keep tapes after "
        "their step."
    )
    return "\n".join(lines)


def _describe_container(spec: str) -> str | None:
    """Returns the container of the newest tensor of a spec, with its name if it has one."""
    tensors = [x for x in _live_tensors() if format_spec(x._spec) == spec]
    newest = [max(tensors, key=lambda x: x._id)]
    for referrer in gc.get_referrers(newest[0]):
        if referrer is newest or referrer is tensors:
            continue
        if isinstance(referrer, tuple) and (saved := _saved_by_tape(referrer)):
            return saved
        if isinstance(referrer, (list, set, deque, dict, tuple)):
            kind = type(referrer).__name__
            name = _name(referrer)
            return f"a {kind} of {len(referrer)}{f', {name}' if name else ''}"
    return None


def _saved_by_tape(saved: tuple) -> str | None:
    """Returns a description of values that a tape saved for a call; `None` for other tuples."""
    for entry in gc.get_referrers(saved):
        if type(entry) is tuple and entry and type(entry[0]) is Plan:
            return f"the values that a GradientTape saved for {entry[0].name}"
    return None


def _name(container: Any) -> str | None:
    """Returns the name of a container that is a global or an attribute."""
    for module in list(sys.modules.values()):
        names = vars(module) if isinstance(module, ModuleType) else {}
        if names is container:
            return f"the globals of module {module.__name__}"
        for name, value in list(names.items()):
            if value is container:
                return f"{module.__name__}.{name}"
    for referrer in gc.get_referrers(container):
        # Either the object refers to the values of its attributes, or its `__dict__` does.
        owners = gc.get_referrers(referrer) if isinstance(referrer, dict) else [referrer]
        for owner in owners:
            for name, value in getattr(owner, "__dict__", {}).items():
                if value is container:
                    return f"attribute {name} of a {type(owner).__name__}"
    return None
