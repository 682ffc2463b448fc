"""Cross entropies, classes written out, and the likeness of images."""

import math
import warnings

from keras.src.backend.config import epsilon

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor, numpy_dtype
from retrograde.keras_backend.ops._inputs import axis_of, inexact, promoted
from retrograde.nn.losses import sigmoid_cross_entropy_with_logits
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import indexing, normalization, reduction
from retrograde.ops.shaping import reshape, transpose


def _logits_of(output, from_logits, function, activation):
    """`output`, or what it is the softmax or sigmoid of; and whether these are logits.

    Keras's activations leave a note of it. Losses of logits neither overflow nor need clipping.
    """
    logits = getattr(output, "_keras_logits", None)
    if logits is None:
        return inexact(output), from_logits
    if from_logits:
        warnings.warn(
            f"`{function}` received `from_logits=True`, but the `output` argument was produced by "
            f"a {activation} activation and thus does not represent logits. Was this intended?",
            stacklevel=3,
        )
    return inexact(logits), True


def _clipped(p):
    """Probabilities that are neither 0 nor 1."""
    least, most = (convert_to_tensor(v, p.dtype.name) for v in (epsilon(), 1 - epsilon()))
    return apply(ar.minimum, (apply(ar.maximum, (p, least)), most))


def _same_shape(target, output):
    if target._spec.shape != output._spec.shape:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. Received: "
            f"target.shape={target.shape}, output.shape={output.shape}"
        )


def _total(x, axis, keepdims=False):
    return apply(reduction.sum, (x,), {"axis": (axis,), "keepdims": keepdims})


def _last(x, axis):
    """`x` with `axis` moved to the end."""
    if axis == x.ndim - 1:
        return x
    return transpose(x, perm=(*(i for i in range(x.ndim) if i != axis), axis))


def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    """The cross entropy of `target` and `output`, distributions along `axis`."""
    target, shown = convert_to_tensor(target), convert_to_tensor(output)
    _same_shape(target, shown)
    if not target.ndim:
        raise ValueError(
            "Arguments `target` and `output` must be at least rank 1. Received: "
            f"target.shape={target.shape}, output.shape={shown.shape}"
        )
    output, from_logits = _logits_of(shown, from_logits, "categorical_crossentropy", "softmax")
    axis = axis_of(axis, output.ndim, "categorical_crossentropy")
    target = cast(target, output.dtype.name)
    if from_logits:
        pair = _last(target, axis), _last(output, axis)
        return apply(normalization.softmax_cross_entropy, pair)
    p = _clipped(output / _total(output, axis, keepdims=True))
    return -_total(target * apply(el.log, (p,)), axis)


def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    """The cross entropy of `target`, one class each, and `output`, distributions."""
    shown = convert_to_tensor(output)
    target = cast(target, "int64")
    if not shown.ndim:
        raise ValueError(
            f"Argument `output` must be at least rank 1. Received: output.shape={shown.shape}"
        )
    if target.ndim == shown.ndim and target.shape[-1] == 1:
        target = reshape(target, shape=target._spec.shape[:-1])
    if target._spec.shape != shown._spec.shape[:-1]:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape up until the last "
            f"dimension: target.shape={target.shape}, output.shape={shown.shape}"
        )
    output, from_logits = _logits_of(
        shown, from_logits, "sparse_categorical_crossentropy", "softmax"
    )
    axis = axis_of(axis, output.ndim, "sparse_categorical_crossentropy")
    if not from_logits:
        output = apply(el.log, (_clipped(output / _total(output, axis, keepdims=True)),))
    return apply(normalization.sparse_softmax_cross_entropy, (target, _last(output, axis)))


def binary_crossentropy(target, output, from_logits=False):
    """The cross entropy of `target`, between 0 and 1, and the probabilities `output`."""
    target, shown = convert_to_tensor(target), convert_to_tensor(output)
    _same_shape(target, shown)
    output, from_logits = _logits_of(shown, from_logits, "binary_crossentropy", "sigmoid")
    target = cast(target, output.dtype.name)
    if from_logits:
        return sigmoid_cross_entropy_with_logits(target, output)
    p = _clipped(output)
    return -(target * apply(el.log, (p,)) + (1 - target) * apply(el.log, (1 - p,)))


def one_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    """Ones at the classes `x` along a new axis, else zeros; no class below 0 has a one."""
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with the retrograde backend")
    x = convert_to_tensor(x)
    x = x if x.dtype.is_integer else cast(x, "int64")
    attrs = {"depth": int(num_classes), "dtype": numpy_dtype(dtype or "float32")}
    y = apply(indexing.one_hot, (x,), attrs)
    axis = axis_of(axis, y.ndim, "one_hot")
    if axis == y.ndim - 1:
        return y
    return transpose(y, perm=(*range(axis), y.ndim - 1, *range(axis, y.ndim - 1)))


def multi_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    """Ones at all classes in a row of `x`, else zeros."""
    x = convert_to_tensor(x)
    y = one_hot(cast(x, "int32"), num_classes, axis, "int32", sparse)
    over = {"axis": (1 if x.ndim > 1 else 0,), "keepdims": False}
    return cast(apply(reduction.max, (y,), over), dtype or "float32")


def psnr(x1, x2, max_val):
    """The peak signal-to-noise ratio of two images whose values reach up to `max_val`."""
    x1, x2 = promoted(x1, x2)
    if x1._spec.shape != x2._spec.shape:
        raise ValueError(f"Input shapes {x1.shape} and {x2.shape} must match for PSNR calculation.")
    x1, x2 = inexact(x1), inexact(x2)
    squares = apply(ar.squared_difference, (x1, x2))
    everywhere = {"axis": tuple(range(x1.ndim)), "keepdims": False}
    peak = apply(el.log, (convert_to_tensor(max_val, x1.dtype.name),))
    error = apply(el.log, (apply(reduction.mean, (squares,), everywhere),))
    return (peak * 20 - error * 10) / math.log(10)
