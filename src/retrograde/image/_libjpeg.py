"""Decoding of JPEG files with libjpeg-turbo, if `simplejpeg` is installed.

TensorFlow uses the same library, so the pixels are identical to TensorFlow's. Our own decoder
computes the same pixels.
"""

from __future__ import annotations

import functools
from types import ModuleType

import numpy as np

_COLOR_SPACES = {1: "GRAY", 3: "RGB"}


@functools.cache
def _simplejpeg() -> ModuleType | None:
    try:
        import simplejpeg
    except ImportError:
        return None
    return simplejpeg


def decode(
    data: bytes, shape: tuple[int, int, int], channels: int, fancy: bool, accurate: bool
) -> np.ndarray | None:
    """Decodes a JPEG file whose header states `shape`, if the library is installed.

    Returns `None` if it is not, or if the file is not valid or too short for its shape.
    """
    height, width, own = shape
    library = _simplejpeg()
    if library is None or own not in _COLOR_SPACES or height * width > 512 * len(data):
        return None  # a block of 8 x 8 pixels takes at least one bit
    try:
        return library.decode_jpeg(
            data, _COLOR_SPACES[channels or own], fastdct=not accurate, fastupsample=not fancy
        )
    except ValueError:  # our own decoder states what is wrong
        return None
