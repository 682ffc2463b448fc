"""tf.audio: WAV files of 16-bit samples."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from retrograde._api.lazy import from_all
from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integer
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.strings._elementwise import scalar_string
from retrograde.values.errors import InvalidArgumentError, invalid

__all__ = ["decode_wav", "encode_wav"]

__getattr__, __dir__ = from_all(__name__)

_FORMAT = struct.Struct("<HHIIHH")
_MAX_RATE = 1 << 31


class DecodeWav(NamedTuple):
    """The samples of a file, with shape `[samples, channels]`, and their rate per second."""

    audio: Tensor
    sample_rate: Tensor


def decode_wav(
    contents: Any, desired_channels: Any = -1, desired_samples: Any = -1, name: str | None = None
) -> DecodeWav:
    """Decodes a WAV file of 16-bit samples to float32 values in [-1, 1).

    Missing channels repeat the last channel, and missing samples are 0. Additional channels and
    samples are dropped. By default, all are kept.

    >>> file = tf.audio.encode_wav([[0.5], [-0.25]], sample_rate=8000)
    >>> audio, rate = tf.audio.decode_wav(file)
    >>> audio.numpy().tolist(), rate.numpy()
    ([[0.5], [-0.25]], np.int32(8000))
    """
    channels = integer(desired_channels, "decode_wav: desired_channels")
    samples = integer(desired_samples, "decode_wav: desired_samples")
    return DecodeWav(*_decode(contents, channels, samples))


@host_function(dynamic_shapes=True)
def _decode(contents: Any, channels: int, samples: int) -> tuple[Tensor, Tensor]:
    data = scalar_string(contents, "decode_wav: contents")
    values, rate = _read_samples(data)
    if channels > 0:
        last = np.repeat(values[:, -1:], max(0, channels - values.shape[1]), axis=1)
        values = np.concatenate([values[:, :channels], last], axis=1)
    if samples > 0:
        zeros = np.zeros((max(0, samples - len(values)), values.shape[1]), np.int16)
        values = np.concatenate([values[:samples], zeros])
    return Tensor(values.astype(np.float32) / np.float32(32768)), Tensor(np.int32(rate))


def _read_samples(data: bytes) -> tuple[np.ndarray, int]:
    """Returns the samples and their rate."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise _invalid_wav("it does not start with RIFF and WAVE")
    if data[12:16] != b"fmt " or len(data) < 36:
        raise _invalid_wav("it has no format chunk")
    (size,) = struct.unpack("<I", data[16:20])
    kind, channels, rate, byte_rate, block, bits = _FORMAT.unpack(data[20:36])
    if size not in (16, 18) or kind != 1 or bits != 16:
        raise _invalid_wav("its samples are not 16-bit PCM")
    if not channels or block != 2 * channels or byte_rate != rate * block or rate >= _MAX_RATE:
        raise _invalid_wav("its format is inconsistent")
    values, position = None, 20 + size
    while position < len(data):
        if position + 8 > len(data):
            raise _invalid_wav("a chunk is truncated")
        name, (length,) = (
            data[position : position + 4],
            struct.unpack("<I", data[position + 4 : position + 8]),
        )
        position += 8
        if length > len(data) - position:
            raise _invalid_wav("a chunk is truncated")
        if name == b"data":
            if values is not None or length % block:
                raise _invalid_wav("its samples are corrupt")
            values = np.frombuffer(data[position : position + length], "<i2").reshape(-1, channels)
        position += length
    if values is None:
        raise _invalid_wav("it has no samples")
    return values, rate


def _invalid_wav(reason: str) -> InvalidArgumentError:
    return invalid(f"decode_wav: the data is not a valid WAV file: {reason}.")


@host_function
def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Tensor:
    """Encodes samples in [-1, 1], with shape `[samples, channels]`, as a WAV file of 16 bits.

    >>> tf.audio.encode_wav([[0.0], [1.0]], sample_rate=44100).numpy()[:4]
    b'RIFF'
    """
    samples = np.asarray(as_tensor(audio, np.dtype(np.float32)))
    rate = np.asarray(as_tensor(sample_rate, np.dtype(np.int32)))
    if samples.ndim != 2 or not samples.shape[1]:
        raise invalid(f"encode_wav: audio must be 2-dimensional. Received: shape {samples.shape}.")
    if rate.ndim or rate <= 0:
        raise invalid("encode_wav: expected a positive scalar for sample_rate.")
    scaled = np.round(np.clip(samples * np.float32(32768), -32768, 32767))
    data = np.where(np.isnan(scaled), 0, scaled).astype("<i2").tobytes()
    channels = samples.shape[1]
    block = 2 * channels
    header = _FORMAT.pack(1, channels, int(rate), int(rate) * block & 0xFFFFFFFF, block, 16)
    chunks = b"WAVEfmt " + struct.pack("<I", 16) + header + b"data"
    chunks += struct.pack("<I", len(data)) + data
    return Tensor(np.array(b"RIFF" + struct.pack("<I", len(chunks)) + chunks, object))
