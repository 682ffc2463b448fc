"""Creates functions that convert their arguments and apply one primitive."""

from retrograde.core.apply import apply
from retrograde.keras_backend.ops._inputs import inexact, pair
from retrograde.numpy_functions.elementwise import BOOL_PRIMITIVES


def unary(primitive, convert=inexact):
    """Returns a function that converts its argument and applies `primitive` to it."""
    return lambda x: apply(primitive, (convert(x),))


def binary(primitive, convert=pair):
    """Returns a function that converts its two arguments and applies `primitive` to them."""
    of_booleans = BOOL_PRIMITIVES.get(primitive)
    if of_booleans is None:
        return lambda x1, x2: apply(primitive, convert(x1, x2))

    def function(x1, x2):
        xs = convert(x1, x2)
        return apply(of_booleans if xs[0]._spec.dtype.kind == "b" else primitive, xs)

    return function
