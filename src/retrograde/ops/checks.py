"""Identities that check their input."""

from retrograde.core.apply import Primitive
from retrograde.values import dtypes
from retrograde.values.errors import invalid


def nonfinite_kinds(xp, x):
    """Returns the names of the kinds of non-finite values in `x`."""
    kinds = [(xp.isinf, "Inf"), (xp.isnan, "NaN")]
    return [name for is_kind, name in kinds if xp.any(is_kind(x))]


def _check_numerics_kernel(xp, x, *, message):
    # Compiled code cannot raise: under XLA this is the identity.
    if xp.__name__ == "numpy" and not xp.isfinite(x).all():
        kinds = " and ".join(nonfinite_kinds(xp, x))
        raise invalid(f"{message} : Tensor had {kinds} values")
    return x


def _gradient_message(message):
    return f"Not a number (NaN) or infinity (Inf) values detected in gradient. {message}"


check_numerics = Primitive(
    "check_numerics",
    _check_numerics_kernel,
    vjps=(lambda g, _y, _x, *, message: check_numerics(g, message=_gradient_message(message)),),
    batch=lambda _, x, *, message: check_numerics(x, message=message),
    linear=True,
    accepts=dtypes.FLOATING,
)


def _check_range_kernel(xp, x, *, low, high, requirement):
    if xp.__name__ == "numpy" and x.size:
        if x.min() < low:
            raise invalid(f"{requirement} >= {low}. Received: {x.min()}.")
        if high is not None and x.max() >= high:
            raise invalid(f"{requirement} < {high}. Received: {x.max()}.")
    return x


check_range = Primitive(  # raises unless low <= x < high; `requirement` starts the message
    "check_range",
    _check_range_kernel,
    vjps=None,
    batch=lambda _, x, **attrs: check_range(x, **attrs),
    accepts=dtypes.INTEGER,
)
