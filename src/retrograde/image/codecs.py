"""Decoding of PNG, GIF and BMP files, of image files in any format, and encoding of PNG."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image import _bmp, _gif, _jpeg, _png
from retrograde.image._errors import DecodeError
from retrograde.image.color_spaces import convert_image_dtype
from retrograde.math._inputs import check_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.values import dtypes
from retrograde.values.arguments import as_text
from retrograde.values.errors import InternalError, ResourceExhaustedError, invalid

_STRING = dtypes.string.numpy_dtype
_UINT8 = dtypes.uint8.numpy_dtype
_DECODING_ERRORS = (  # raised by the decoders for malformed data
    ValueError, IndexError, KeyError, TypeError, OverflowError, struct.error, zlib.error,
)  # fmt: skip


def file_bytes(contents: Any, op_name: str) -> bytes:
    """Returns the contents of one file."""
    x = as_tensor(contents, _STRING)
    if x._spec.ndim:
        raise invalid(f"{op_name}: `contents` has shape {x._spec.shape}. Expected a scalar.")
    return x.numpy()


def file_format(data: bytes, op_name: str) -> str:
    """Detects the file format of `data` from its first bytes."""
    if not data:
        raise invalid(f"{op_name}: `contents` is empty.")
    signatures = {
        "PNG": _png.SIGNATURE[:3], "GIF": _gif.SIGNATURE, "BMP": _bmp.SIGNATURE,
        "JPEG": _jpeg.SIGNATURE,
    }  # fmt: skip
    for kind, signature in signatures.items():
        if data.startswith(signature):
            return kind
    raise invalid(f"{op_name}: the file format is unknown. Expected JPEG, PNG, GIF or BMP.")


def call_decoder(
    decode: Callable, kind: str, op_name: str, data: bytes, *arguments: Any
) -> np.ndarray:
    """Calls `decode(data, *arguments)` and raises TensorFlow's error if the data is malformed."""
    try:
        return decode(data, *arguments)
    except _DECODING_ERRORS as error:
        known = isinstance(error, DecodeError)
        reason = error if known else "the data is truncated or inconsistent"
        raise invalid(f"{op_name}: cannot read {len(data)} bytes of {kind}: {reason}.") from error
    except MemoryError:
        message = (
            f"{op_name}: not enough memory to decode the image in {len(data)} bytes of {kind}."
        )
        raise ResourceExhaustedError(None, None, message) from None


def decode_file(
    data: bytes, kind: str, channels: int, dtype: np.dtype, op_name: str, frames: int | None = None
) -> Tensor:
    """Decodes an image file; of a GIF, all frames or the first `frames`."""
    if channels not in (0, 1, 3, 4):
        raise invalid(f"{op_name}: `channels` must be 0, 1, 3 or 4. Received: {as_text(channels)}.")
    match kind:
        case "PNG":
            read_as = np.dtype(np.uint8 if dtype == np.uint8 else np.uint16)
            image = call_decoder(_png.decode, kind, op_name, data, channels, read_as)
            if dtype == np.float32:
                return Tensor((image / np.float32(65535)).astype(np.float32))
            return Tensor(image)
        case "BMP":
            if channels == 1:
                raise invalid(f"{op_name}: `channels` must be 0, 3 or 4 for BMP. Received: 1.")
            image = call_decoder(_bmp.decode, kind, op_name, data, channels)
        case "GIF":
            if channels not in (0, 3):
                raise invalid(
                    f"{op_name}: `channels` must be 0 or 3 for GIF. Received: {as_text(channels)}."
                )
            image = call_decoder(_gif.decode, kind, op_name, data, frames)
        case _:
            if channels == 4:
                raise invalid(f"{op_name}: `channels` must be 0, 1 or 3 for JPEG. Received: 4.")
            image = call_decoder(_jpeg.decode, kind, op_name, data, channels, _jpeg.Options())
    return convert_image_dtype(Tensor(np.ascontiguousarray(image)), dtype)


@host_function(dynamic_shapes=True)
def decode_png(
    contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None
) -> Tensor:
    """Decodes a PNG file to uint8 or uint16: `[height, width, channels]`.

    `channels` is 1 for grayscale, 3 for RGB, 4 for RGBA, or 0 to keep the channels of the file.
    JPEG files and GIF files of one frame are accepted as well.

    >>> data = tf.io.encode_png(tf.constant([[[1], [2]]], tf.uint8))
    >>> tf.io.decode_png(data, channels=3).numpy()
    array([[[1, 1, 1], [2, 2, 2]]], dtype=uint8)
    """
    op_name, output_dtype = "decode_png", dtypes.as_dtype(dtype)
    if output_dtype.name not in ("uint8", "uint16"):
        raise invalid(f"{op_name}: dtype must be uint8 or uint16. Received: {output_dtype.name}.")
    data = file_bytes(contents, op_name)
    kind = file_format(data, op_name)
    if kind == "BMP":
        raise invalid(f"{op_name}: the file is a BMP. Use decode_bmp or decode_image.")
    image = decode_file(data, kind, channels, output_dtype.numpy_dtype, op_name)
    return single_frame(image, op_name) if kind == "GIF" else image


def single_frame(images: Tensor, op_name: str) -> Tensor:
    """Returns the frame of a GIF with a single frame; raises if there are more."""
    if len(images._array) != 1:
        raise invalid(
            f"{op_name}: the GIF has {len(images._array)} frames. Use decode_gif or decode_image."
        )
    return images[0]


@host_function(dynamic_shapes=True)
def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """Decodes a BMP file to uint8: `[height, width, channels]`.

    `channels` is 3 for RGB, 4 for RGBA, or 0 to keep the channels of the file.
    """
    op_name = "decode_bmp"
    data = file_bytes(contents, op_name)
    kind = file_format(data, op_name)
    if kind != "BMP":
        raise invalid(
            f"{op_name}: the file is a {kind}. Use decode_{kind.lower()} or decode_image."
        )
    return decode_file(data, kind, channels, _UINT8, op_name)


@host_function(dynamic_shapes=True)
def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """Decodes the frames of a GIF file to RGB in uint8: `[frames, height, width, 3]`.

    Each frame is drawn over the previous one. The canvas has the height of the tallest frame and
    the width of the widest one, and is initially black. PNG and JPEG files are accepted as well,
    as a single frame.
    """
    op_name = "decode_gif"
    data = file_bytes(contents, op_name)
    kind = file_format(data, op_name)
    if kind == "BMP":
        raise invalid(f"{op_name}: the file is a BMP. Use decode_bmp or decode_image.")
    image = decode_file(data, kind, 3, _UINT8, op_name)
    return image if kind == "GIF" else image[None]


@host_function(dynamic_shapes=True)
def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """Decodes a PNG, JPEG, GIF or BMP file to any dtype.

    A GIF is decoded to `[frames, height, width, 3]`, or with `expand_animations=False` to its first
    frame. Intensities are scaled as in `tf.image.convert_image_dtype`.
    """
    op_name, output_dtype = "decode_image", dtypes.as_dtype(dtype)
    data = file_bytes(contents, op_name)
    kind = file_format(data, op_name)
    decodes_to = output_dtype.name in ("uint8", "uint16", "float32")
    read_as = output_dtype if decodes_to else dtypes.uint16
    frames = None if expand_animations else 1
    image = decode_file(data, kind, channels or 0, read_as.numpy_dtype, op_name, frames)
    if kind == "GIF" and not expand_animations:
        image = image[0]
    return image if decodes_to else convert_image_dtype(image, output_dtype)


@host_function
def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """Encodes a uint8 or uint16 image of 1 to 4 channels as a PNG file.

    `compression` is a zlib level from 0 (none) to 9 (smallest file), or -1 for the default of zlib.
    Leading axes are batch axes: the result has one string per image.
    """
    op_name = "encode_png"
    x = as_tensor(image)
    check_dtype(x, ("uint8", "uint16"), "image", op_name)
    shape = x._spec.shape
    if len(shape) < 3 or shape[-1] not in (1, 2, 3, 4):
        raise invalid(
            f"{op_name}: `image` has shape {shape}. Expected (..., height, width, channels), 1 to "
            "4 channels."
        )
    if not -1 <= compression <= 9:
        raise invalid(
            f"{op_name}: compression must be from -1 to 9. Received: {as_text(compression)}."
        )
    if 0 in shape[-3:-1]:
        raise InternalError(
            None, None, f"{op_name}: `image` has shape {shape}, which has no pixels."
        )
    files = np.empty(shape[:-3], object)
    pixels = np.asarray(x)
    for index in np.ndindex(files.shape):
        files[index] = _png.encode(pixels[index], compression)
    return Tensor(files)
