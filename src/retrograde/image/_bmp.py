"""Decoder for uncompressed BMP files, one byte per channel."""

from __future__ import annotations

import struct

import numpy as np

from retrograde.image._errors import DecodeError

SIGNATURE = b"BM"


def decode(contents: bytes, channels: int) -> np.ndarray:
    """Decodes a BMP file to `channels` (3 or 4) channels; 0 keeps the file's channels.

    Malformed data raises `DecodeError`, or an error from `struct` or NumPy.
    """
    if len(contents) < 32:
        raise DecodeError(f"the header needs 32 bytes, but there are {len(contents)}")
    (start,) = struct.unpack_from("<I", contents, 10)
    width, height = struct.unpack_from("<ii", contents, 18)
    (bits,) = struct.unpack_from("<H", contents, 28)
    if width <= 0 or not height:
        raise DecodeError(f"width {width} and height {height} are not valid")
    depth = bits // 8
    if depth not in (1, 3, 4):
        raise DecodeError(f"it has {bits} bits per pixel, not 8, 24 or 32")
    length = -(-width * depth // 4) * 4  # rows are padded to multiples of four bytes
    rows = abs(height)
    present = len(contents) - start
    if present != rows * length:
        raise DecodeError(f"{rows * length} bytes are needed, but there are {max(present, 0)}")
    lines = np.frombuffer(contents, np.uint8, offset=start)
    image = lines.reshape(rows, length)[:, : width * depth].reshape(rows, width, depth)
    if height > 0:  # rows are stored from bottom to top
        image = image[::-1]
    if depth > 1:  # channels are stored as BGR
        image = image[..., [2, 1, 0, 3][:depth]]
    channels = channels or depth
    if depth == 1 and channels > 1:
        image = np.repeat(image, 3, axis=-1)
    if channels == 4 and depth < 4:
        image = np.concatenate([image, np.full((rows, width, 1), 255, np.uint8)], axis=-1)
    return image[..., :channels]
