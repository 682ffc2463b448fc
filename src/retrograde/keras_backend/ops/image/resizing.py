"""Images in another size."""

import math

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.image._resampling_weights import resize_weights
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import promoted
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
    """Images of `size`, height and width, in the same dtype; integers are rounded."""
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
    old = [images.shape[axis] for axis in axes]
    if crop_to_aspect_ratio:
        x = _cropped(x, axes, old, size)
    elif pad_to_aspect_ratio:
        x = _padded(x, axes, old, size, fill_value)
    y = x if interpolation == "nearest" or x.dtype.is_floating else cast(x, "float32")
    for axis, new in zip(axes, size, strict=True):
        if y.shape[axis] != new:
            weights = resize_weights(y.shape[axis], new, interpolation, bool(antialias))
            y = resample(y, axis=axis, weights=weights)
    return y if y._spec.dtype == x._spec.dtype else _rounded(y, x)


def _in_proportion(old, size):
    """Height and width in the proportion of `size`, each to one side of the present one."""
    (height, width), (new_height, new_width) = old, size
    return int(width * new_height / new_width), int(height * new_width / new_height)


def _cropped(x, axes, old, size):
    """The middle of images, as large as can be, in the proportion of `size`."""
    where = [(0, n, 1) for n in x._spec.shape]
    for axis, n, wanted in zip(axes, old, _in_proportion(old, size), strict=True):
        kept = max(min(n, wanted), 1)
        start = (n - kept) // 2
        where[axis] = (start, start + kept, 1)
    return take_slice(x, where=tuple(where))


def _padded(x, axes, old, size, fill_value):
    """Images in the middle of larger ones, in the proportion of `size`."""
    for axis, n, wanted in zip(axes, old, _in_proportion(old, size), strict=True):
        margin = (max(n, wanted) - n) // 2
        if margin:
            shape = list(x._spec.shape)
            shape[axis] = margin
            filled = Tensor(np.full(shape, fill_value).astype(x._spec.dtype))
            x = concat(filled, x, filled, axis=axis)
    return x


def _rounded(y, x):
    """`y` rounded to the dtype of `x`, and into the range of its values."""
    everywhere = {"axis": tuple(range(x.ndim)), "keepdims": False}
    least, most = (
        cast(apply(extreme, (x,), everywhere), y.dtype.name)
        for extreme in (reduction.min, reduction.max)
    )
    y = apply(el.rint, (y,))
    y = apply(ar.minimum, (apply(ar.maximum, (y, least)), most))
    return cast(y, x.dtype.name)


def scale_and_translate(
    images, output_shape, scale, translation, spatial_dims, method, antialias=True
):
    """Images scaled and moved along `spatial_dims`, in an output of `output_shape`.

    Gradients flow to `scale` and `translation`, too.
    """
    if method not in SCALE_AND_TRANSLATE_METHODS:
        raise ValueError(
            "Invalid value for argument `method`. Expected of one "
            f"{SCALE_AND_TRANSLATE_METHODS}. Received: method={method}"
        )
    x = convert_to_tensor(images)
    scale, translation = promoted(scale, translation)
    y = x if x.dtype.is_floating else cast(x, "float32")
    for place, axis in enumerate(spatial_dims):
        axis %= x.ndim
        matrix = _weights(
            x.shape[axis], output_shape[axis], scale[place], translation[place], method, antialias
        )
        y = _along(y, axis, cast(matrix, y.dtype.name))
    return y if y._spec.dtype == x._spec.dtype else _rounded(y, x)


def _along(x, axis, matrix):
    """`x` times `matrix`, from old to new places, along one axis."""
    last = (*(i for i in range(x.ndim) if i != axis), axis)
    back = tuple(sorted(range(x.ndim), key=last.__getitem__))
    x = transpose(x, perm=last)
    shape = x._spec.shape
    flat = reshape(x, shape=(math.prod(shape[:-1]), shape[-1]))
    y = apply(matmul, (flat, matrix))
    return transpose(reshape(y, shape=(*shape[:-1], y.shape[-1])), perm=back)


_FEW = 1000 * float(np.finfo(np.float32).eps)


def _weights(old, new, scale, translation, method, antialias):
    """How much each old pixel counts for each new one: a matrix, differentiable in both numbers."""
    dtype = scale._spec.dtype
    per_pixel = 1 / scale
    stretch = apply(ar.maximum, (per_pixel, Tensor(dtype.type(1)))) if antialias else 1
    centres = (Tensor((np.arange(new) + 0.5).astype(dtype)) - translation) * per_pixel - 0.5
    distance = centres - Tensor(np.arange(old).astype(dtype)[:, None])
    distance = apply(ar.absolute, (distance,)) / stretch
    weights = _KERNELS[method](distance)
    total = apply(reduction.sum, (weights,), {"axis": (0,), "keepdims": True})
    enough = apply(ar.absolute, (total,)) > _FEW
    seen = enough & ((centres >= -0.5) & (centres <= old - 0.5))
    divisor = apply(ar.select, (enough, total, Tensor(dtype.type(1))))
    return apply(ar.mask, (weights / divisor, seen))


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


_KERNELS = {
    **dict.fromkeys(("linear", "bilinear", "trilinear"), _triangle),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), _cubic),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
}
