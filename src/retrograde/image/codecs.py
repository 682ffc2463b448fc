"""Image files: PNG, GIF, BMP, and whichever of them and of JPEG it is."""

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
_DAMAGED = (  # what the readers stumble over
    ValueError, IndexError, KeyError, TypeError, OverflowError, struct.error, zlib.error,
)  # fmt: skip


def file_bytes(contents: Any, what: str) -> bytes:
    """The contents of one file."""
    x = as_tensor(contents, _STRING)
    if x._spec.ndim:
        raise invalid(f"{what}: `contents` has shape {x._spec.shape}. Expected a scalar.")
    return x.numpy()


def kind_of(data: bytes, what: str) -> str:
    """What `data` are, by how they begin."""
    if not data:
        raise invalid(f"{what}: `contents` is empty.")
    beginnings = {
        "PNG": _png.SIGNATURE[:3], "GIF": _gif.SIGNATURE, "BMP": _bmp.SIGNATURE,
        "JPEG": _jpeg.SIGNATURE,
    }  # fmt: skip
    for kind, beginning in beginnings.items():
        if data.startswith(beginning):
            return kind
    raise invalid(f"{what}: the file is of unknown format. Expected JPEG, PNG, GIF or BMP.")


def decoded(decode: Callable, kind: str, what: str, data: bytes, *arguments: Any) -> np.ndarray:
    """`decode(data, *arguments)`; what is wrong with the data becomes TensorFlow's error."""
    try:
        return decode(data, *arguments)
    except _DAMAGED as error:
        known = isinstance(error, DecodeError)
        reason = error if known else "they end too soon, or do not fit together"
        raise invalid(f"{what}: cannot read {len(data)} bytes of {kind}: {reason}.") from error
    except MemoryError:
        message = f"{what}: there is no memory for the image in {len(data)} bytes of {kind}."
        raise ResourceExhaustedError(None, None, message) from None


def image_in(
    data: bytes, kind: str, channels: int, dtype: np.dtype, what: str, frames: int | None = None
) -> Tensor:
    """The image in a file; of a GIF, all of its frames, or the first `frames`."""
    if channels not in (0, 1, 3, 4):
        raise invalid(f"{what}: `channels` must be 0, 1, 3 or 4. Received: {as_text(channels)}.")
    match kind:
        case "PNG":
            read_as = np.dtype(np.uint8 if dtype == np.uint8 else np.uint16)
            image = decoded(_png.decode, kind, what, data, channels, read_as)
            if dtype == np.float32:
                return Tensor((image / np.float32(65535)).astype(np.float32))
            return Tensor(image)
        case "BMP":
            if channels == 1:
                raise invalid(f"{what}: `channels` must be 0, 3 or 4 for BMP. Received: 1.")
            image = decoded(_bmp.decode, kind, what, data, channels)
        case "GIF":
            if channels not in (0, 3):
                raise invalid(
                    f"{what}: `channels` must be 0 or 3 for GIF. Received: {as_text(channels)}."
                )
            image = decoded(_gif.decode, kind, what, data, frames)
        case _:
            if channels == 4:
                raise invalid(f"{what}: `channels` must be 0, 1 or 3 for JPEG. Received: 4.")
            image = decoded(_jpeg.decode, kind, what, data, channels, _jpeg.Options())
    return convert_image_dtype(Tensor(np.ascontiguousarray(image)), dtype)


@host_function(dynamic_shapes=True)
def decode_png(
    contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None
) -> Tensor:
    """The image in a PNG file, as uint8 or uint16: `[height, width, channels]`.

    `channels` is 1 for grey, 3 for RGB, 4 for RGBA, or 0 for those of the file. A JPEG and
    a GIF of one frame are taken too.

    >>> data = tf.io.encode_png(tf.constant([[[1], [2]]], tf.uint8))
    >>> tf.io.decode_png(data, channels=3).numpy()
    array([[[1, 1, 1], [2, 2, 2]]], dtype=uint8)
    """
    what, wanted = "decode_png", dtypes.as_dtype(dtype)
    if wanted.name not in ("uint8", "uint16"):
        raise invalid(f"{what}: dtype must be uint8 or uint16. Received: {wanted.name}.")
    data = file_bytes(contents, what)
    kind = kind_of(data, what)
    if kind == "BMP":
        raise invalid(f"{what}: the file is a BMP. Use decode_bmp or decode_image.")
    image = image_in(data, kind, channels, wanted.numpy_dtype, what)
    return one_frame(image, what) if kind == "GIF" else image


def one_frame(images: Tensor, what: str) -> Tensor:
    """The frame of a GIF that has no more."""
    if len(images._array) != 1:
        raise invalid(
            f"{what}: the GIF has {len(images._array)} frames. Use decode_gif or decode_image."
        )
    return images[0]


@host_function(dynamic_shapes=True)
def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """The image in a BMP file, as uint8: `[height, width, channels]`.

    `channels` is 3 for RGB, 4 for RGBA, or 0 for those of the file.
    """
    what = "decode_bmp"
    data = file_bytes(contents, what)
    kind = kind_of(data, what)
    if kind != "BMP":
        raise invalid(f"{what}: the file is a {kind}. Use decode_{kind.lower()} or decode_image.")
    return image_in(data, kind, channels, _UINT8, what)


@host_function(dynamic_shapes=True)
def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """The frames of a GIF file, as uint8 in RGB: `[frames, height, width, 3]`.

    Each frame is drawn over the one before. The canvas is as high as the highest frame and as wide
    as the widest, and black before the first. A PNG and a JPEG are taken too, as one frame.
    """
    what = "decode_gif"
    data = file_bytes(contents, what)
    kind = kind_of(data, what)
    if kind == "BMP":
        raise invalid(f"{what}: the file is a BMP. Use decode_bmp or decode_image.")
    image = image_in(data, kind, 3, _UINT8, what)
    return image if kind == "GIF" else image[None]


@host_function(dynamic_shapes=True)
def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """The image in a PNG, JPEG, GIF or BMP file, whichever it is, in any dtype.

    A GIF gives `[frames, height, width, 3]`, or its first frame alone without
    `expand_animations`. Intensities are scaled as `tf.image.convert_image_dtype` does it.
    """
    what, wanted = "decode_image", dtypes.as_dtype(dtype)
    data = file_bytes(contents, what)
    kind = kind_of(data, what)
    known = wanted.name in ("uint8", "uint16", "float32")
    read_as = wanted if known else dtypes.uint16
    frames = None if expand_animations else 1
    image = image_in(data, kind, channels or 0, read_as.numpy_dtype, what, frames)
    if kind == "GIF" and not expand_animations:
        image = image[0]
    return image if known else convert_image_dtype(image, wanted)


@host_function
def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """A PNG file with an image of 1 to 4 channels, in uint8 or uint16, as a string.

    `compression` goes from 0, none, to 9, the smallest file; -1 leaves that to zlib. Leading axes
    make a batch, and so a file for each image.
    """
    what = "encode_png"
    x = as_tensor(image)
    check_dtype(x, ("uint8", "uint16"), "image", what)
    shape = x._spec.shape
    if len(shape) < 3 or shape[-1] not in (1, 2, 3, 4):
        raise invalid(
            f"{what}: `image` has shape {shape}. Expected (..., height, width, channels), 1 to 4 "
            "channels."
        )
    if not -1 <= compression <= 9:
        raise invalid(
            f"{what}: compression must be from -1 to 9. Received: {as_text(compression)}."
        )
    if 0 in shape[-3:-1]:
        raise InternalError(None, None, f"{what}: `image` has shape {shape}, without pixels.")
    files = np.empty(shape[:-3], object)
    pixels = np.asarray(x)
    for place in np.ndindex(files.shape):
        files[place] = _png.encode(pixels[place], compression)
    return Tensor(files)
