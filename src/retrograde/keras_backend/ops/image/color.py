"""Color space conversions."""

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.image import color_spaces
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import inexact
from retrograde.keras_backend.ops.image._inputs import Images
from retrograde.ops import arithmetic as ar
from retrograde.ops import reduction
from retrograde.ops.casting import identity
from retrograde.ops.shaping import reshape, transpose, unstack

_LUMA_WEIGHTS = (0.2989, 0.5870, 0.1140)


def rgb_to_grayscale(images, data_format=None):
    """Converts RGB images to grayscale in the same dtype."""
    images = Images(images, data_format)
    x, axis = images.x, images.channels_axis
    count = images.shape[axis]
    if count not in (1, 3):
        raise ValueError(
            "Invalid channel size: expected 3 (RGB) or 1 (Grayscale). "
            f"Received input with shape: images.shape={images.shape}"
        )
    if count == 1:
        return identity(x)
    rgb = inexact(x)
    weights = convert_to_tensor(_LUMA_WEIGHTS, rgb.dtype.name)
    weights = reshape(weights, shape=tuple(3 if i == axis else 1 for i in range(x.ndim)))
    gray = apply(reduction.sum, (rgb * weights,), {"axis": (axis,), "keepdims": True})
    return cast(gray, x.dtype.name)


def rgb_to_hsv(images, data_format=None):
    """Converts RGB images to hue, saturation and value, each in [0, 1]."""
    return _convert(color_spaces.rgb_to_hsv, images, data_format)


def hsv_to_rgb(images, data_format=None):
    """Converts HSV images to RGB."""
    return _convert(_hsv_to_rgb, images, data_format)


def _hsv_to_rgb(x):
    """Converts HSV to RGB; hues outside [0, 1] wrap around."""
    hue, saturation, value = unstack(color_spaces.at_least_float32(x), axis=x.ndim - 1)
    one = Tensor(hue._spec.dtype.type(1))
    y = color_spaces.from_hsv(apply(ar.mod, (hue, one)), saturation, value)
    return cast(y, x.dtype.name)


def _convert(convert, images, data_format):
    """Applies `convert`, which expects channels last, to images in either data format."""
    images = Images(images, data_format)
    x = images.x
    if not x.dtype.is_floating:
        raise ValueError(
            f"Invalid images dtype: expected float dtype. Received: images.dtype={x.dtype.name}"
        )
    if not images.channels_first:
        return convert(x)
    axis, ndim = images.channels_axis, x.ndim
    y = convert(transpose(x, perm=(*range(axis), *range(axis + 1, ndim), axis)))
    return transpose(y, perm=(*range(axis), ndim - 1, *range(axis, ndim - 1)))
