"""JPEG files, and what becomes of images in them."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image import _jpeg, _jpeg_writer
from retrograde.image.codecs import decoded, file_bytes, image_in, kind_of, one_frame
from retrograde.image.color_spaces import convert_image_dtype
from retrograde.ops.arguments import integer, integers
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.random import stateless_uniform, uniform
from retrograde.values import dtypes
from retrograde.values.arguments import as_text, shown
from retrograde.values.errors import InternalError, invalid

_STRING = dtypes.string.numpy_dtype
_UINT8 = dtypes.uint8.numpy_dtype
_INT32 = dtypes.int32.numpy_dtype


@host_function(dynamic_shapes=True)
def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """The image in a JPEG file, as uint8: `[height, width, channels]`.

    `channels` is 1 for grey, 3 for RGB, or 0 for those of the file. `fancy_upscaling` says that
    colours which are stored more coarsely are interpolated. `dct_method` is "INTEGER_FAST", which
    "" stands for, or "INTEGER_ACCURATE". A `ratio` of 2, 4 or 8 gives the image smaller by that, in
    less time. Files that are cut off are refused even with `try_recover_truncated`. A PNG and a
    GIF of one frame are taken too.
    """
    what = "decode_jpeg"
    _check_options(ratio, dct_method, what)
    data = file_bytes(contents, what)
    kind = kind_of(data, what)
    if kind == "BMP":
        raise invalid(f"{what}: the file is a BMP. Use decode_bmp or decode_image.")
    if kind != "JPEG" or channels not in (0, 1, 3):
        image = image_in(data, kind, channels, _UINT8, what)
        return one_frame(image, what) if kind == "GIF" else image
    accurate = dct_method == "INTEGER_ACCURATE"
    options = _jpeg.Options(bool(fancy_upscaling), accurate, 8 // ratio)
    return Tensor(decoded(_jpeg.decode, kind, what, data, channels, options))


def _check_options(ratio: int, dct_method: str, what: str) -> None:
    if dct_method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise invalid(
            f"{what}: dct_method must be '', 'INTEGER_FAST' or 'INTEGER_ACCURATE'. Received: "
            f"{shown(dct_method)}."
        )
    if ratio not in (1, 2, 4, 8):
        raise invalid(f"{what}: ratio must be 1, 2, 4 or 8. Received: {as_text(ratio)}.")


@host_function(dynamic_shapes=True)
def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """A part of the image in a JPEG file: `crop_window` is `[top, left, height, width]`.

    The other arguments are those of `tf.io.decode_jpeg`.
    """
    what = "decode_and_crop_jpeg"
    image = decode_jpeg(
        contents, channels, ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction,
        dct_method,
    )  # fmt: skip
    window = integers(crop_window, what)
    rows, columns, _ = image._spec.shape
    top, left, height, width = window if len(window) == 4 else (0, 0, 0, 0)
    inside = 0 <= top < top + height <= rows and 0 <= left < left + width <= columns
    if not inside:
        raise invalid(
            f"{what}: crop_window is {shown(list(window))}. Expected top, left, height and width "
            f"in an image of height {rows} and width {columns}."
        )
    return image[top : top + height, left : left + width]


@host_function
def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """A JPEG file with an image in uint8, grey or RGB, as a string.

    `quality` goes from 0 to 100. With `chroma_downsampling`, colours are stored at half the height
    and width. `progressive` and `optimize_size`, which change the size of the file but no pixel,
    are accepted and ignored.
    """
    what = "encode_jpeg"
    wanted = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}
    if format not in wanted:
        raise invalid(
            f"{what}: format must be '', 'grayscale' or 'rgb'. Received: {shown(format)}."
        )
    if density_unit not in ("in", "cm"):
        raise invalid(
            f"{what}: density_unit must be 'in' or 'cm'. Received: {shown(density_unit)}."
        )
    unit = 1 if density_unit == "in" else 2
    densities = integer(x_density, what), integer(y_density, what)
    if not all(0 <= density < 1 << 16 for density in densities):
        raise invalid(
            f"{what}: x_density and y_density must be in [0, 65536). Received: {densities}."
        )
    density = struct.pack(">BHH", unit, *densities)
    text = as_tensor(xmp_metadata, _STRING).numpy()
    return _encoded(image, quality, wanted[format], what, chroma_downsampling, density, text)


_DENSITY = struct.pack(">BHH", 1, 300, 300)


def _encoded(
    image: Any,
    quality: int,
    channels: tuple[int, ...],
    what: str,
    coarse: bool = True,
    density: bytes = _DENSITY,
    text: bytes = b"",
) -> Tensor:
    x = as_tensor(image, _UINT8)
    shape = x._spec.shape
    if len(shape) != 3 or shape[2] not in channels:
        raise invalid(
            f"{what}: `image` has shape {shape}. Expected (height, width, "
            f"{' or '.join(map(str, channels))})."
        )
    if not 0 <= quality <= 100:
        raise invalid(f"{what}: quality must be from 0 to 100. Received: {quality}.")
    if 0 in shape:
        raise InternalError(None, None, f"{what}: `image` has shape {shape}, without pixels.")
    more = _jpeg_writer.metadata(text) if text else b""
    data = _jpeg_writer.encode(np.asarray(x), quality, coarse, density, more)
    return Tensor(np.array(data, object))


@host_function
def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether files begin as a JPEG does.

    >>> tf.io.is_jpeg([b"\\xff\\xd8\\xff\\xe0", b"GIF89a"]).numpy()
    array([ True, False])
    """
    data = np.asarray(as_tensor(contents, _STRING))
    found = [part.startswith(_jpeg.SIGNATURE) for part in data.ravel()]
    return Tensor(np.array(found, bool).reshape(data.shape)[()])


@host_function
def extract_jpeg_shape(
    contents: Any, output_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """`[height, width, channels]` of a JPEG file, which is not unpacked for that."""
    what, wanted = "extract_jpeg_shape", dtypes.as_dtype(output_type)
    if wanted.name not in ("int32", "int64"):
        raise invalid(f"{what}: output_type must be int32 or int64. Received: {wanted.name}.")
    data = file_bytes(contents, what)
    if not data.startswith(_jpeg.SIGNATURE):
        raise invalid(f"{what}: {len(data)} bytes that are no JPEG.")
    return Tensor(np.array(decoded(_jpeg.shape, "JPEG", what, data), wanted.numpy_dtype))


# What JPEG makes of images


@host_function
def adjust_jpeg_quality(
    image: Any, jpeg_quality: Any, dct_method: str = "", name: str | None = None
) -> Tensor:
    """An image as it comes out of a JPEG file of this quality. No gradient flows."""
    what = "adjust_jpeg_quality"
    x = as_tensor(image)
    quality = int(as_tensor(jpeg_quality, _INT32))
    file = _encoded(convert_image_dtype(x, _UINT8, saturate=True), quality, (1, 3), what)
    y = decode_jpeg(file, x._spec.shape[-1], dct_method=dct_method)
    return convert_image_dtype(y, x.dtype, saturate=True)


def random_jpeg_quality(
    image: Any, min_jpeg_quality: Any, max_jpeg_quality: Any, seed: int | None = None
) -> Tensor:
    """An image as it comes out of a JPEG file of random quality, below `max_jpeg_quality`."""
    draw = functools.partial(uniform, seed=seed)
    return adjust_jpeg_quality(image, _quality(min_jpeg_quality, max_jpeg_quality, draw))


def stateless_random_jpeg_quality(
    image: Any, min_jpeg_quality: Any, max_jpeg_quality: Any, seed: Any
) -> Tensor:
    """As `tf.image.random_jpeg_quality`; the same `seed` gives the same quality."""
    draw = functools.partial(stateless_uniform, seed=seed)
    return adjust_jpeg_quality(image, _quality(min_jpeg_quality, max_jpeg_quality, draw))


def _quality(least: Any, most: Any, draw: Callable) -> Tensor:
    if not (0 <= least <= 100 and 0 <= most <= 100):
        raise ValueError(
            f"jpeg quality must be from 0 to 100. Received: {as_text(least)} and {as_text(most)}."
        )
    if least >= most:
        raise ValueError(
            f"min_jpeg_quality must be less than max_jpeg_quality. Received: {as_text(least)} and "
            f"{as_text(most)}."
        )
    return draw([], minval=least, maxval=most, dtype=dtypes.int32)
