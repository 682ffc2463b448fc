"""Values that are not finite, found where they arise."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core import dtypes
from retrograde.core.errors import invalid
from retrograde.core.recorders import Recorder, thread
from retrograde.core.tensor import Tensor
from retrograde.ops import checking
from retrograde.ops.conversion import as_tensor

# Those that hand values on: they need not be looked at twice. (TensorFlow has such a list too.)
_HANDING_ON = frozenset(
    (
        "broadcast_to",
        "concat",
        "identity",
        "maximum",
        "minimum",
        "put_slice",
        "reshape",
        "reverse",
        "split",
        "stop_gradient",
        "take_slice",
        "transpose",
        "unstack",
    )
)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """The tensor, if all its values are finite; else an `InvalidArgumentError` with `message`.

    The gradient that comes back through it is checked in the same way.

    >>> tf.debugging.check_numerics([1.0, 2.0], "loss").numpy()
    array([1., 2.], dtype=float32)
    """
    if not isinstance(message, str):
        raise TypeError(f"check_numerics: expected a string for `message`. Received: {message!r}.")
    return checking.check_numerics(as_tensor(tensor), message=message)


def assert_all_finite(x: Any, message: str, name: str | None = None) -> Tensor:
    """The tensor, if all its values are finite; else an `InvalidArgumentError` with `message`."""
    return check_numerics(x, message)


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Makes every operation of this thread that yields NaN or infinity an `InvalidArgumentError`.

    That goes for gradients as well. The traceback is that of the error, so its limits do nothing.

    >>> tf.debugging.enable_check_numerics()
    >>> tf.math.log([-1.0])
    Traceback (most recent call last):
        ...
    retrograde.core.errors.InvalidArgumentError: Detected Infinity or NaN in output 0 of ...
    >>> tf.debugging.disable_check_numerics()
    """
    if _CHECKER not in thread.recorders:
        thread.recorders.insert(0, _CHECKER)


def disable_check_numerics() -> None:
    """Undoes `enable_check_numerics` for this thread."""
    if _CHECKER in thread.recorders:
        thread.recorders.remove(_CHECKER)


class _Checker(Recorder):
    """Looks at the outputs of every call. It stands outermost, so it is told first."""

    __slots__ = ()

    def record(self, primitive: Any, inputs: tuple, attrs: dict, y: Any) -> None:
        """Raises if an output of real numbers is not finite."""
        if primitive.name in _HANDING_ON:
            return
        outputs = y if isinstance(y, tuple) else (y,)
        for place, output in enumerate(outputs):
            array = output._array
            if array.dtype in dtypes.FLOATING and not np.isfinite(array).all():
                raise invalid(_report(primitive.name, place, len(outputs), output, inputs))


_CHECKER = _Checker()


def _report(name: str, place: int, count: int, output: Tensor, inputs: tuple) -> str:
    array = np.asarray(output._array)
    counts = (
        ("-Inf", np.sum(np.isneginf(array))),
        ("+Inf", np.sum(np.isposinf(array))),
        ("NaN", np.sum(np.isnan(array))),
    )
    lines = [
        f'Detected Infinity or NaN in output {place} of eagerly-executing op "{name}" '
        f"(# of outputs: {count})",
        f"  dtype: {output.dtype.name}",
        f"  shape: {output.shape}",
        *(f"  # of {kind} elements: {found}" for kind, found in counts if found),
        f"  Input tensors ({len(inputs)}):",
        *(f"    {i}: {x!s}" for i, x in enumerate(inputs)),
    ]
    return "\n".join(lines)
