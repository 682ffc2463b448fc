"""Host callbacks: Python functions of arrays that a replay has to call again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor, wrap
from retrograde.values.errors import allocate

NUMPY_CALL = "numpy call"  # the `how` of an escape to a call that a replay repeats


class CallbackDescription(NamedTuple):
    """Serializable data from which a `HostCallback` is built.

    The callback is `CALLBACK_BUILDERS[builder](function, values)`, see `ops/host_functions.py`.
    """

    builder: str
    function: str
    values: Any


class HostCallback:
    """A Python function that a trace calls in place of a primitive.

    `f(*arrays)` returns an array, or a tuple of arrays with `outputs`. A replay calls it exactly
    once, in order, even if nothing reads its result, unless it is `pure`. `draws` says that its
    only side effect is to advance a random stream. No gradient flows through it. A callback with a
    `description` can be rebuilt in another process.
    """

    __slots__ = ("description", "draws", "f", "name", "outputs", "pure")

    def __init__(
        self,
        name: str,
        f: Callable,
        *,
        pure: bool,
        outputs: bool = False,
        draws: bool = False,
        description: CallbackDescription | None = None,
    ) -> None:
        self.name = name
        self.f = f
        self.pure = pure
        self.outputs = outputs
        self.draws = draws
        self.description = description

    def run(self, arrays: Sequence[Any], _attrs: dict) -> Any:
        """Calls the function on arrays."""
        return self.f(*arrays)

    def __repr__(self) -> str:
        return f"<host {self.name}>"


def call_host(host: HostCallback, inputs: tuple[Tensor, ...] = ()) -> Any:
    """Calls `host` on tensors, and records the call if a function is being traced."""
    tracer = thread.recorders.tracer
    if tracer is not None:
        return allocate(host.name, tracer.record_host, host, inputs)
    return wrap_result(host, allocate(host.name, host.f, *[x._array for x in inputs]))


def wrap_result(host: HostCallback, value: Any) -> Any:
    """Returns the result of `host` as a tensor or a tuple of tensors."""
    return tuple([Tensor(v) for v in value]) if host.outputs else wrap(value)
