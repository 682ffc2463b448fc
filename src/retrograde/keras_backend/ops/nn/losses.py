"""Cross-entropy losses, one-hot and multi-hot encodings, and PSNR."""

import math
import warnings

from keras.src.backend.config import epsilon

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor, numpy_dtype
from retrograde.keras_backend.ops._inputs import canonicalize_axis, inexact, promote
from retrograde.nn.losses import sigmoid_cross_entropy_with_logits
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import indexing, normalization, reduction
from retrograde.ops.shaping import reshape, transpose


def _recover_logits(output, from_logits, function, activation):
    """Returns the logits of `output` if they are known, and whether the result is logits.

    Keras's activations store their logits in `_keras_logits`. Losses of logits neither overflow
    nor need clipping.
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


def _clip(p):
    """Clips probabilities to [epsilon, 1 - epsilon]."""
    low, high = (convert_to_tensor(v, p.dtype.name) for v in (epsilon(), 1 - epsilon()))
    return apply(ar.minimum, (apply(ar.maximum, (p, low)), high))


def _check_same_shape(target, output):
    if target._spec.shape != output._spec.shape:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. Received: "
            f"target.shape={target.shape}, output.shape={output.shape}"
        )


def _sum(x, axis, keepdims=False):
    return apply(reduction.sum, (x,), {"axis": (axis,), "keepdims": keepdims})


def _move_axis_last(x, axis):
    """Moves `axis` to the end."""
    if axis == x.ndim - 1:
        return x
    return transpose(x, perm=(*(i for i in range(x.ndim) if i != axis), axis))


def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    """Computes the cross-entropy of distributions along `axis`."""
    target, predictions = convert_to_tensor(target), convert_to_tensor(output)
    _check_same_shape(target, predictions)
    if not target.ndim:
        raise ValueError(
            "Arguments `target` and `output` must be at least rank 1. Received: "
            f"target.shape={target.shape}, output.shape={predictions.shape}"
        )
    output, from_logits = _recover_logits(
        predictions, from_logits, "categorical_crossentropy", "softmax"
    )
    axis = canonicalize_axis(axis, output.ndim, "categorical_crossentropy")
    target = cast(target, output.dtype.name)
    if from_logits:
        pair = _move_axis_last(target, axis), _move_axis_last(output, axis)
        return apply(normalization.softmax_cross_entropy, pair)
    p = _clip(output / _sum(output, axis, keepdims=True))
    return -_sum(target * apply(el.log, (p,)), axis)


def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    """Computes the cross-entropy of integer classes `target` and distributions `output`."""
    predictions = convert_to_tensor(output)
    target = cast(target, "int64")
    if not predictions.ndim:
        raise ValueError(
            f"Argument `output` must be at least rank 1. Received: output.shape={predictions.shape}"
        )
    if target.ndim == predictions.ndim and target.shape[-1] == 1:
        target = reshape(target, shape=target._spec.shape[:-1])
    if target._spec.shape != predictions._spec.shape[:-1]:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape up until the last "
            f"dimension: target.shape={target.shape}, output.shape={predictions.shape}"
        )
    output, from_logits = _recover_logits(
        predictions, from_logits, "sparse_categorical_crossentropy", "softmax"
    )
    axis = canonicalize_axis(axis, output.ndim, "sparse_categorical_crossentropy")
    if not from_logits:
        output = apply(el.log, (_clip(output / _sum(output, axis, keepdims=True)),))
    return apply(
        normalization.sparse_softmax_cross_entropy, (target, _move_axis_last(output, axis))
    )


def binary_crossentropy(target, output, from_logits=False):
    """Computes the cross-entropy of `target`, in [0, 1], and the probabilities `output`."""
    target, predictions = convert_to_tensor(target), convert_to_tensor(output)
    _check_same_shape(target, predictions)
    output, from_logits = _recover_logits(
        predictions, from_logits, "binary_crossentropy", "sigmoid"
    )
    target = cast(target, output.dtype.name)
    if from_logits:
        return sigmoid_cross_entropy_with_logits(target, output)
    p = _clip(output)
    return -(target * apply(el.log, (p,)) + (1 - target) * apply(el.log, (1 - p,)))


def one_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    """Returns one-hot encodings along a new axis; negative classes become all zeros."""
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with the retrograde backend")
    x = convert_to_tensor(x)
    x = x if x.dtype.is_integer else cast(x, "int64")
    attrs = {"depth": int(num_classes), "dtype": numpy_dtype(dtype or "float32")}
    y = apply(indexing.one_hot, (x,), attrs)
    axis = canonicalize_axis(axis, y.ndim, "one_hot")
    if axis == y.ndim - 1:
        return y
    return transpose(y, perm=(*range(axis), y.ndim - 1, *range(axis, y.ndim - 1)))


def multi_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    """Returns the multi-hot encoding of each row of `x`."""
    x = convert_to_tensor(x)
    y = one_hot(cast(x, "int32"), num_classes, axis, "int32", sparse)
    attrs = {"axis": (1 if x.ndim > 1 else 0,), "keepdims": False}
    return cast(apply(reduction.max, (y,), attrs), dtype or "float32")


def psnr(x1, x2, max_val):
    """Computes the peak signal-to-noise ratio of two images with maximum value `max_val`."""
    x1, x2 = promote(x1, x2)
    if x1._spec.shape != x2._spec.shape:
        raise ValueError(f"Input shapes {x1.shape} and {x2.shape} must match for PSNR calculation.")
    x1, x2 = inexact(x1), inexact(x2)
    squares = apply(ar.squared_difference, (x1, x2))
    all_axes = {"axis": tuple(range(x1.ndim)), "keepdims": False}
    peak = apply(el.log, (convert_to_tensor(max_val, x1.dtype.name),))
    error = apply(el.log, (apply(reduction.mean, (squares,), all_axes),))
    return (peak * 20 - error * 10) / math.log(10)
