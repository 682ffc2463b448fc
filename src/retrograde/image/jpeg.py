"""Decoding and encoding of JPEG files, and JPEG compression as image augmentation."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image import _jpeg, _jpeg_writer
from retrograde.image.codecs import call_decoder, decode_file, file_bytes, file_format, single_frame
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
    """Decodes a JPEG file to uint8: `[height, width, channels]`.

    `channels` is 1 for grayscale, 3 for RGB, or 0 to keep the channels of the file. With
    `fancy_upscaling`, subsampled chroma channels are interpolated. `dct_method` is "INTEGER_FAST"
    (the default) or "INTEGER_ACCURATE". A `ratio` of 2, 4 or 8 downscales the image by that factor,
    in less time. Truncated files raise an error even with `try_recover_truncated`. PNG files and
    GIF files of one frame are accepted as well.
    """
    op_name = "decode_jpeg"
    _check_options(ratio, dct_method, op_name)
    data = file_bytes(contents, op_name)
    kind = file_format(data, op_name)
    if kind == "BMP":
        raise invalid(f"{op_name}: the file is a BMP. Use decode_bmp or decode_image.")
    if kind != "JPEG" or channels not in (0, 1, 3):
        image = decode_file(data, kind, channels, _UINT8, op_name)
        return single_frame(image, op_name) if kind == "GIF" else image
    accurate = dct_method == "INTEGER_ACCURATE"
    options = _jpeg.Options(bool(fancy_upscaling), accurate, 8 // ratio)
    return Tensor(call_decoder(_jpeg.decode, kind, op_name, data, channels, options))


def _check_options(ratio: int, dct_method: str, op_name: str) -> None:
    if dct_method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise invalid(
            f"{op_name}: dct_method must be '', 'INTEGER_FAST' or 'INTEGER_ACCURATE'. Received: "
            f"{shown(dct_method)}."
        )
    if ratio not in (1, 2, 4, 8):
        raise invalid(f"{op_name}: ratio must be 1, 2, 4 or 8. Received: {as_text(ratio)}.")


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
    """Decodes a JPEG file and crops it to `crop_window = [top, left, height, width]`.

    The other arguments are the same as in `tf.io.decode_jpeg`.
    """
    op_name = "decode_and_crop_jpeg"
    image = decode_jpeg(
        contents, channels, ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction,
        dct_method,
    )  # fmt: skip
    window = integers(crop_window, op_name)
    rows, columns, _ = image._spec.shape
    top, left, height, width = window if len(window) == 4 else (0, 0, 0, 0)
    inside = 0 <= top < top + height <= rows and 0 <= left < left + width <= columns
    if not inside:
        raise invalid(
            f"{op_name}: crop_window is {shown(list(window))}. Expected top, left, height and "
            f"width in an image of height {rows} and width {columns}."
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
    """Encodes a grayscale or RGB image in uint8 as a JPEG file.

    `quality` is from 0 to 100. With `chroma_downsampling`, chroma is stored at half the height and
    width. `progressive` and `optimize_size`, which affect only the size of the file, are accepted
    and ignored.
    """
    op_name = "encode_jpeg"
    allowed_channels = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}
    if format not in allowed_channels:
        raise invalid(
            f"{op_name}: format must be '', 'grayscale' or 'rgb'. Received: {shown(format)}."
        )
    if density_unit not in ("in", "cm"):
        raise invalid(
            f"{op_name}: density_unit must be 'in' or 'cm'. Received: {shown(density_unit)}."
        )
    unit = 1 if density_unit == "in" else 2
    densities = integer(x_density, op_name), integer(y_density, op_name)
    if not all(0 <= density < 1 << 16 for density in densities):
        raise invalid(
            f"{op_name}: x_density and y_density must be in [0, 65536). Received: {densities}."
        )
    density = struct.pack(">BHH", unit, *densities)
    text = as_tensor(xmp_metadata, _STRING).numpy()
    channels = allowed_channels[format]
    return _encode(image, quality, channels, op_name, chroma_downsampling, density, text)


_DENSITY = struct.pack(">BHH", 1, 300, 300)


def _encode(
    image: Any,
    quality: int,
    channels: tuple[int, ...],
    op_name: str,
    chroma_downsampling: bool = True,
    density: bytes = _DENSITY,
    text: bytes = b"",
) -> Tensor:
    x = as_tensor(image, _UINT8)
    shape = x._spec.shape
    if len(shape) != 3 or shape[2] not in channels:
        raise invalid(
            f"{op_name}: `image` has shape {shape}. Expected (height, width, "
            f"{' or '.join(map(str, channels))})."
        )
    if not 0 <= quality <= 100:
        raise invalid(f"{op_name}: quality must be from 0 to 100. Received: {quality}.")
    if 0 in shape:
        raise InternalError(
            None, None, f"{op_name}: `image` has shape {shape}, which has no pixels."
        )
    metadata = _jpeg_writer.xmp_segment(text) if text else b""
    data = _jpeg_writer.encode(np.asarray(x), quality, chroma_downsampling, density, metadata)
    return Tensor(np.array(data, object))


@host_function
def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Returns whether strings start with the signature of JPEG files.

    >>> tf.io.is_jpeg([b"\\xff\\xd8\\xff\\xe0", b"GIF89a"]).numpy()
    array([ True, False])
    """
    data = np.asarray(as_tensor(contents, _STRING))
    results = [contents.startswith(_jpeg.SIGNATURE) for contents in data.ravel()]
    return Tensor(np.array(results, bool).reshape(data.shape)[()])


@host_function
def extract_jpeg_shape(
    contents: Any, output_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Reads `[height, width, channels]` of a JPEG file without decoding the image."""
    op_name, dtype = "extract_jpeg_shape", dtypes.as_dtype(output_type)
    if dtype.name not in ("int32", "int64"):
        raise invalid(f"{op_name}: output_type must be int32 or int64. Received: {dtype.name}.")
    data = file_bytes(contents, op_name)
    if not data.startswith(_jpeg.SIGNATURE):
        raise invalid(f"{op_name}: the data ({len(data)} bytes) are not a JPEG file.")
    return Tensor(np.array(call_decoder(_jpeg.shape, "JPEG", op_name, data), dtype.numpy_dtype))


# JPEG compression as augmentation


@host_function
def adjust_jpeg_quality(
    image: Any, jpeg_quality: Any, dct_method: str = "", name: str | None = None
) -> Tensor:
    """Encodes an image as JPEG of this quality and decodes it again. No gradient flows."""
    op_name = "adjust_jpeg_quality"
    x = as_tensor(image)
    quality = int(as_tensor(jpeg_quality, _INT32))
    file = _encode(convert_image_dtype(x, _UINT8, saturate=True), quality, (1, 3), op_name)
    y = decode_jpeg(file, x._spec.shape[-1], dct_method=dct_method)
    return convert_image_dtype(y, x.dtype, saturate=True)


def random_jpeg_quality(
    image: Any, min_jpeg_quality: Any, max_jpeg_quality: Any, seed: int | None = None
) -> Tensor:
    """Applies `adjust_jpeg_quality` with a random quality in [min_jpeg_quality, max_jpeg_quality).

    No gradient flows.
    """
    draw = functools.partial(uniform, seed=seed)
    return adjust_jpeg_quality(image, _random_quality(min_jpeg_quality, max_jpeg_quality, draw))


def stateless_random_jpeg_quality(
    image: Any, min_jpeg_quality: Any, max_jpeg_quality: Any, seed: Any
) -> Tensor:
    """Computes `tf.image.random_jpeg_quality` as a function of `seed`."""
    draw = functools.partial(stateless_uniform, seed=seed)
    return adjust_jpeg_quality(image, _random_quality(min_jpeg_quality, max_jpeg_quality, draw))


def _random_quality(low: Any, high: Any, draw: Callable) -> Tensor:
    if not (0 <= low <= 100 and 0 <= high <= 100):
        raise ValueError(
            f"jpeg quality must be from 0 to 100. Received: {as_text(low)} and {as_text(high)}."
        )
    if low >= high:
        raise ValueError(
            f"min_jpeg_quality must be less than max_jpeg_quality. Received: {as_text(low)} and "
            f"{as_text(high)}."
        )
    return draw([], minval=low, maxval=high, dtype=dtypes.int32)
