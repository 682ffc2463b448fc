"""Activations."""

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._functions import unary
from retrograde.keras_backend.ops._inputs import axis_of, inexact
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import normalization
from retrograde.ops.shaping import reshape, split

relu = unary(el.relu, convert_to_tensor)  # max(x, 0); the gradient at 0 is 0
relu6 = unary(el.relu6, convert_to_tensor)  # min(max(x, 0), 6); the gradient at both corners is 0
sigmoid = unary(el.sigmoid)  # 1 / (1 + exp(-x))
tanh = unary(el.tanh)
softplus = unary(el.softplus)  # log(1 + exp(x))
softsign = unary(el.softsign)  # x / (1 + |x|)
silu = unary(el.silu)  # x * sigmoid(x)
selu = unary(el.selu)  # elu, scaled so that it keeps mean 0 and variance 1


def gelu(x, approximate=True):
    """`x` times the probability that a normal variate is below it, by a tanh if `approximate`."""
    return apply(el.gelu, (inexact(x),), {"approximate": bool(approximate)})


def leaky_relu(x, negative_slope=0.2):
    """`x` where it is positive, else `negative_slope * x`."""
    return apply(el.leaky_relu, (inexact(x),), {"alpha": float(negative_slope)})


def elu(x, alpha=1.0):
    """`alpha * (exp(x) - 1)` below 0, `x` above."""
    x = inexact(x)
    y = apply(el.elu, (x,))
    return y if alpha == 1 else apply(ar.select, (x > 0, y, y * alpha))


def celu(x, alpha=1.0):
    """`alpha * (exp(x / alpha) - 1)` below 0, `x` above."""
    x = inexact(x)
    return apply(ar.select, (x > 0, x, apply(el.elu, (x / alpha,)) * alpha))


def log_sigmoid(x):
    """`log(sigmoid(x))`."""
    return -apply(el.softplus, (-inexact(x),))


def squareplus(x, b=4):
    """`(x + sqrt(x ** 2 + b)) / 2`."""
    x = inexact(x)
    b = convert_to_tensor(b, x.dtype.name)
    return (x + apply(el.sqrt, (x * x + b,))) / 2


def tanh_shrink(x):
    """`x - tanh(x)`."""
    x = inexact(x)
    return x - apply(el.tanh, (x,))


def hard_sigmoid(x):
    """A sigmoid of three straight lines, `x / 6 + 1 / 2` between -3 and 3."""
    return apply(el.relu6, (inexact(x) + 3,)) / 6


def hard_silu(x):
    """`x * hard_sigmoid(x)`."""
    x = inexact(x)
    return x * hard_sigmoid(x)


def hard_tanh(x):
    """`x` between -1 and 1; the gradient at both corners is 1."""
    x = convert_to_tensor(x)
    return apply(ar.minimum, (apply(ar.maximum, (x, _number(-1, x))), _number(1, x)))


def _number(value, like):
    return convert_to_tensor(value, like.dtype.name)


def sparse_sigmoid(x):
    """A sigmoid of three straight lines, `(x + 1) / 2` between -1 and 1."""
    x = inexact(x)
    middle = apply(ar.mask, ((x + 1) * 0.5, (x > -1) & (x < 1)))
    return middle + cast(x >= 1, x.dtype.name)


def sparse_plus(x):
    """0 up to -1, `x` from 1 on, and a parabola in between."""
    x = inexact(x)
    raised = x + 1
    parabola = apply(ar.mask, (raised * raised * 0.25, x > -1))
    return apply(ar.select, (x < 1, parabola, x))


def soft_shrink(x, threshold=0.5):
    """`x`, nearer to 0 by `threshold`, or 0."""
    x = inexact(x)
    above = apply(ar.mask, (x - threshold, x > threshold))
    return above + apply(ar.mask, (x + threshold, x < -threshold))


def hard_shrink(x, threshold=0.5):
    """`x` where it is further from 0 than `threshold`, else 0."""
    x = inexact(x)
    return apply(ar.mask, (x, apply(ar.absolute, (x,)) > threshold))


def threshold(x, threshold, default_value):
    """`x` where it is above `threshold`, else `default_value`."""
    x = convert_to_tensor(x)
    return apply(ar.select, (x > threshold, x, _number(default_value, x)))


def glu(x, axis=-1):
    """The first half of `x` along `axis`, gated by the second."""
    x = inexact(x)
    size = x.shape[axis]
    if size % 2:
        raise ValueError(
            f"axis size must be divisible by 2. Received: x.shape={x.shape} with axis={axis}"
        )
    first, second = split(x, sizes=(size // 2, size // 2), axis=axis_of(axis, x.ndim, "glu"))
    return first * apply(el.sigmoid, (second,))


def softmax(x, axis=-1):
    """Probabilities along `axis`, proportional to `exp(x)`; along all axes if it is `None`."""
    return _along(normalization.softmax, x, axis)


def log_softmax(x, axis=-1):
    """The logarithm of `softmax`."""
    return _along(normalization.log_softmax, x, axis)


def sparsemax(x, axis=-1):
    """The probabilities along `axis` that are nearest to `x`: many are exactly 0."""
    return _along(normalization.sparsemax, x, axis)


def _along(primitive, x, axis):
    x = inexact(x)
    if axis is None:
        flat = reshape(x, shape=(x._spec.size,))
        return reshape(apply(primitive, (flat,), {"axis": 0}), shape=x._spec.shape)
    return apply(primitive, (x,), {"axis": axis_of(axis, x.ndim, primitive.name)})
