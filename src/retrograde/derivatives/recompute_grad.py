"""recompute_grad: runs a function again in the backward pass instead of keeping its values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from retrograde.core.custom_gradient import VariableWatcher, captured_variables, record_custom
from retrograde.core.recorders import thread, use_recorders
from retrograde.core.tape import GradientTape
from retrograde.core.tape_arguments import UnconnectedGradients
from retrograde.ops import random_state
from retrograde.values import nest


def recompute_grad(f: Callable) -> Callable:
    """Wraps `f` so that the backward pass runs it again instead of keeping its values on the tape.

    This saves the memory of all values inside `f` and costs one more run. Random numbers are the
    same in both runs; variables are read again. Higher derivatives work as usual.

    >>> f = tf.recompute_grad(lambda x: tf.sin(x) * x)
    >>> x = tf.Variable(0.0)
    >>> with tf.GradientTape() as outer:
    ...     with tf.GradientTape() as inner:
    ...         y = f(x)
    ...     dy = inner.gradient(y, x)
    >>> outer.gradient(dy, x).numpy()
    np.float32(2.0)
    """

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        draws = random_state.state()
        watcher = VariableWatcher()
        others = [r for r in thread.recorders if isinstance(r, VariableWatcher)]
        with use_recorders([*others, watcher]):
            result = f(*args, **kwargs)
        inputs = nest.flatten([args, kwargs])
        variables = captured_variables(watcher.variables, inputs)

        def rule(needed: tuple[bool, ...], g: Any) -> list:
            sources = [x for x, n in zip(inputs + variables, needed, strict=True) if n]
            tape = GradientTape(watch_accessed_variables=False)
            with tape, random_state.replaying(draws):
                tape.watch(sources)
                outputs = nest.flatten(f(*args, **kwargs))
            upstream = list(g) if type(g) is tuple else [g]
            gradients = iter(tape.gradient(outputs, sources, upstream, UnconnectedGradients.ZERO))
            return [next(gradients) if n else None for n in needed]

        return record_custom(getattr(f, "__name__", "f"), rule, inputs + variables, result)

    return wrapper
