"""Image resizing."""

import math

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.image._resampling_weights import resize_weights
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import promote
from retrograde.keras_backend.ops.image._inputs import Images
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import reduction
from retrograde.ops.contraction import matmul
from retrograde.ops.resampling import resample
from retrograde.ops.shaping import concat, reshape, take_slice, transpose

RESIZE_INTERPOLATIONS = ("bilinear", "nearest", "lanczos3", "lanczos5", "bicubic")
SCALE_AND_TRANSLATE_METHODS = {
    "linear",
    "bilinear",
    "trilinear",
    "cubic",
    "bicubic",
    "tricubic",
    "lanczos3",
    "lanczos5",
}


def resize(
    images,
    size,
    interpolation="bilinear",
    antialias=False,
    crop_to_aspect_ratio=False,
    pad_to_aspect_ratio=False,
    fill_mode="constant",
    fill_value=0.0,
    data_format=None,
):
    """Resizes images to `size`, (height, width), in the same dtype. Integers are rounded."""
    if interpolation not in RESIZE_INTERPOLATIONS:
        raise ValueError(
            "Invalid value for argument `interpolation`. Expected of one "
            f"{RESIZE_INTERPOLATIONS}. Received: interpolation={interpolation}"
        )
    if fill_mode != "constant":
        raise ValueError(
            "Invalid value for argument `fill_mode`. Only `'constant'` is supported. "
            f"Received: fill_mode={fill_mode}"
        )
    if pad_to_aspect_ratio and crop_to_aspect_ratio:
        raise ValueError(
            "Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`."
        )
    if len(size) != 2:
        raise ValueError(
            "Argument `size` must be a tuple of two elements (height, width). "
            f"Received: size={size}"
        )
    images = Images(images, data_format)
    x, axes, size = images.x, images.axes, [int(n) for n in size]
    old_size = [images.shape[axis] for axis in axes]
    if crop_to_aspect_ratio:
        x = _crop(x, axes, old_size, size)
    elif pad_to_aspect_ratio:
        x = _pad(x, axes, old_size, size, fill_value)
    y = x if interpolation == "nearest" or x.dtype.is_floating else cast(x, "float32")
    for axis, new_size in zip(axes, size, strict=True):
        if y.shape[axis] != new_size:
            weights = resize_weights(y.shape[axis], new_size, interpolation, bool(antialias))
            y = resample(y, axis=axis, weights=weights)
    return y if y._spec.dtype == x._spec.dtype else _round(y, x)


def _aspect_ratio_size(old_size, size):
    """Returns the height for the old width, and the width for the old height, at the new ratio."""
    (height, width), (new_height, new_width) = old_size, size
    return int(width * new_height / new_width), int(height * new_width / new_height)


def _crop(x, axes, old_size, size):
    """Crops the largest centered region with the aspect ratio of `size`."""
    where = [(0, n, 1) for n in x._spec.shape]
    for axis, n, target in zip(axes, old_size, _aspect_ratio_size(old_size, size), strict=True):
        cropped_size = max(min(n, target), 1)
        start = (n - cropped_size) // 2
        where[axis] = (start, start + cropped_size, 1)
    return take_slice(x, where=tuple(where))


def _pad(x, axes, old_size, size, fill_value):
    """Pads images on both sides to the aspect ratio of `size`."""
    for axis, n, target in zip(axes, old_size, _aspect_ratio_size(old_size, size), strict=True):
        margin = (max(n, target) - n) // 2
        if margin:
            shape = list(x._spec.shape)
            shape[axis] = margin
            filled = Tensor(np.full(shape, fill_value).astype(x._spec.dtype))
            x = concat(filled, x, filled, axis=axis)
    return x


def _round(y, x):
    """Rounds `y` to the dtype of `x` and clips it to the range of the values of `x`."""
    all_axes = {"axis": tuple(range(x.ndim)), "keepdims": False}
    low, high = (
        cast(apply(extreme, (x,), all_axes), y.dtype.name)
        for extreme in (reduction.min, reduction.max)
    )
    y = apply(el.rint, (y,))
    y = apply(ar.minimum, (apply(ar.maximum, (y, low)), high))
    return cast(y, x.dtype.name)


def scale_and_translate(
    images, output_shape, scale, translation, spatial_dims, method, antialias=True
):
    """Scales and translates images along `spatial_dims` into an output of `output_shape`.

    Gradients also flow to `scale` and `translation`.
    """
    if method not in SCALE_AND_TRANSLATE_METHODS:
        raise ValueError(
            "Invalid value for argument `method`. Expected of one "
            f"{SCALE_AND_TRANSLATE_METHODS}. Received: method={method}"
        )
    x = convert_to_tensor(images)
    scale, translation = promote(scale, translation)
    y = x if x.dtype.is_floating else cast(x, "float32")
    for i, axis in enumerate(spatial_dims):
        axis %= x.ndim
        matrix = _weights(
            x.shape[axis], output_shape[axis], scale[i], translation[i], method, antialias
        )
        y = _matmul_along_axis(y, axis, cast(matrix, y.dtype.name))
    return y if y._spec.dtype == x._spec.dtype else _round(y, x)


def _matmul_along_axis(x, axis, matrix):
    """Multiplies `x` by `matrix`, of shape `(old_size, new_size)`, along one axis."""
    last = (*(i for i in range(x.ndim) if i != axis), axis)
    inverse_perm = tuple(sorted(range(x.ndim), key=last.__getitem__))
    x = transpose(x, perm=last)
    shape = x._spec.shape
    flat = reshape(x, shape=(math.prod(shape[:-1]), shape[-1]))
    y = apply(matmul, (flat, matrix))
    return transpose(reshape(y, shape=(*shape[:-1], y.shape[-1])), perm=inverse_perm)


_MIN_TOTAL_WEIGHT = 1000 * float(np.finfo(np.float32).eps)


def _weights(old_size, new_size, scale, translation, method, antialias):
    """Returns the interpolation matrix, differentiable in `scale` and `translation`."""
    dtype = scale._spec.dtype
    per_pixel = 1 / scale
    stretch = apply(ar.maximum, (per_pixel, Tensor(dtype.type(1)))) if antialias else 1
    centers = (Tensor((np.arange(new_size) + 0.5).astype(dtype)) - translation) * per_pixel - 0.5
    distance = centers - Tensor(np.arange(old_size).astype(dtype)[:, None])
    distance = apply(ar.absolute, (distance,)) / stretch
    weights = _RESIZE_KERNELS[method](distance)
    total = apply(reduction.sum, (weights,), {"axis": (0,), "keepdims": True})
    has_weight = apply(ar.absolute, (total,)) > _MIN_TOTAL_WEIGHT
    inside = has_weight & ((centers >= -0.5) & (centers <= old_size - 0.5))
    divisor = apply(ar.select, (has_weight, total, Tensor(dtype.type(1))))
    return apply(ar.mask, (weights / divisor, inside))


def _triangle(x):
    return apply(el.relu, (1 - x,))


def _cubic(x):
    inner = (x * 1.5 - 2.5) * x * x + 1
    outer = ((2.5 - x * 0.5) * x - 4) * x + 2
    return apply(ar.mask, (apply(ar.select, (x < 1, inner, outer)), x < 2))


def _lanczos(radius):
    def kernel(x):
        near = x <= 1e-3
        angle = apply(ar.select, (near, Tensor(x._spec.dtype.type(1)), x)) * math.pi
        wave = apply(el.sin, (angle,)) * apply(el.sin, (angle / radius,)) * radius
        wave = apply(ar.select, (near, Tensor(x._spec.dtype.type(1)), wave / (angle * angle)))
        return apply(ar.mask, (wave, x <= radius))

    return kernel


_RESIZE_KERNELS = {
    **dict.fromkeys(("linear", "bilinear", "trilinear"), _triangle),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), _cubic),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
}
