"""Activation functions."""

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._functions import unary
from retrograde.keras_backend.ops._inputs import canonicalize_axis, inexact
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import normalization
from retrograde.ops.shaping import reshape, split

relu = unary(el.relu, convert_to_tensor)  # max(x, 0); the gradient at 0 is 0
relu6 = unary(el.relu6, convert_to_tensor)  # min(max(x, 0), 6); the gradient at 0 and 6 is 0
sigmoid = unary(el.sigmoid)  # 1 / (1 + exp(-x))
tanh = unary(el.tanh)
softplus = unary(el.softplus)  # log(1 + exp(x))
softsign = unary(el.softsign)  # x / (1 + |x|)
silu = unary(el.silu)  # x * sigmoid(x)
selu = unary(el.selu)  # scaled elu that preserves mean 0 and variance 1


def gelu(x, approximate=True):
    """Computes `x * Phi(x)`, Phi being the normal CDF; uses the tanh formula if `approximate`."""
    return apply(el.gelu, (inexact(x),), {"approximate": bool(approximate)})


def leaky_relu(x, negative_slope=0.2):
    """Returns `x` where it is positive, else `negative_slope * x`."""
    return apply(el.leaky_relu, (inexact(x),), {"alpha": float(negative_slope)})


def elu(x, alpha=1.0):
    """Returns `x` where it is positive, else `alpha * (exp(x) - 1)`."""
    x = inexact(x)
    y = apply(el.elu, (x,))
    return y if alpha == 1 else apply(ar.select, (x > 0, y, y * alpha))


def celu(x, alpha=1.0):
    """Returns `x` where it is positive, else `alpha * (exp(x / alpha) - 1)`."""
    x = inexact(x)
    return apply(ar.select, (x > 0, x, apply(el.elu, (x / alpha,)) * alpha))


def log_sigmoid(x):
    """Computes `log(sigmoid(x))`."""
    return -apply(el.softplus, (-inexact(x),))


def squareplus(x, b=4):
    """Computes `(x + sqrt(x ** 2 + b)) / 2`."""
    x = inexact(x)
    b = convert_to_tensor(b, x.dtype.name)
    return (x + apply(el.sqrt, (x * x + b,))) / 2


def tanh_shrink(x):
    """Computes `x - tanh(x)`."""
    x = inexact(x)
    return x - apply(el.tanh, (x,))


def hard_sigmoid(x):
    """Computes `x / 6 + 1 / 2`, clipped to [0, 1]."""
    return apply(el.relu6, (inexact(x) + 3,)) / 6


def hard_silu(x):
    """Computes `x * hard_sigmoid(x)`."""
    x = inexact(x)
    return x * hard_sigmoid(x)


def hard_tanh(x):
    """Clips `x` to [-1, 1]; the gradient at -1 and 1 is 1."""
    x = convert_to_tensor(x)
    return apply(ar.minimum, (apply(ar.maximum, (x, _number(-1, x))), _number(1, x)))


def _number(value, like):
    return convert_to_tensor(value, like.dtype.name)


def sparse_sigmoid(x):
    """Computes `(x + 1) / 2`, clipped to [0, 1]."""
    x = inexact(x)
    middle = apply(ar.mask, ((x + 1) * 0.5, (x > -1) & (x < 1)))
    return middle + cast(x >= 1, x.dtype.name)


def sparse_plus(x):
    """Returns 0 for `x <= -1`, `x` for `x >= 1`, and `(x + 1) ** 2 / 4` in between."""
    x = inexact(x)
    shifted = x + 1
    parabola = apply(ar.mask, (shifted * shifted * 0.25, x > -1))
    return apply(ar.select, (x < 1, parabola, x))


def soft_shrink(x, threshold=0.5):
    """Moves `x` toward 0 by `threshold`; returns 0 where `abs(x) <= threshold`."""
    x = inexact(x)
    above = apply(ar.mask, (x - threshold, x > threshold))
    return above + apply(ar.mask, (x + threshold, x < -threshold))


def hard_shrink(x, threshold=0.5):
    """Returns `x` where `abs(x) > threshold`, else 0."""
    x = inexact(x)
    return apply(ar.mask, (x, apply(ar.absolute, (x,)) > threshold))


def threshold(x, threshold, default_value):
    """Returns `x` where it exceeds `threshold`, else `default_value`."""
    x = convert_to_tensor(x)
    return apply(ar.select, (x > threshold, x, _number(default_value, x)))


def glu(x, axis=-1):
    """Multiplies the first half of `x` along `axis` by the sigmoid of the second half."""
    x = inexact(x)
    size = x.shape[axis]
    if size % 2:
        raise ValueError(
            f"axis size must be divisible by 2. Received: x.shape={x.shape} with axis={axis}"
        )
    first, second = split(
        x, sizes=(size // 2, size // 2), axis=canonicalize_axis(axis, x.ndim, "glu")
    )
    return first * apply(el.sigmoid, (second,))


def softmax(x, axis=-1):
    """Computes the softmax along `axis`, or over all axes if `axis` is `None`."""
    return _along(normalization.softmax, x, axis)


def log_softmax(x, axis=-1):
    """Computes the logarithm of `softmax`."""
    return _along(normalization.log_softmax, x, axis)


def sparsemax(x, axis=-1):
    """Projects `x` onto the probability simplex along `axis`; many results are exactly 0."""
    return _along(normalization.sparsemax, x, axis)


def _along(primitive, x, axis):
    x = inexact(x)
    if axis is None:
        flat = reshape(x, shape=(x._spec.size,))
        return reshape(apply(primitive, (flat,), {"axis": 0}), shape=x._spec.shape)
    return apply(primitive, (x,), {"axis": canonicalize_axis(axis, x.ndim, primitive.name)})
