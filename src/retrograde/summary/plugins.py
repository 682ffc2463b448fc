"""Functions that write summaries for TensorBoard's plugins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image import convert_image_dtype
from retrograde.image._png import encode
from retrograde.ops.arguments import integer
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_callbacks import HostCallback, call_host
from retrograde.summary import _events, writer
from retrograde.summary.experimental import summary_scope
from retrograde.toplevel.shaping import cast
from retrograde.values import dtypes
from retrograde.values.arguments import brief, expect, shown
from retrograde.values.errors import invalid

# Data are converted and checked only if the summary is written.


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Writes a scalar. Returns whether it was written."""

    def make_tensor() -> Tensor:
        tensor = as_tensor(data)
        if tensor.shape.rank:
            raise ValueError(f"Expected scalar shape, saw shape: {tensor.shape}.")
        return cast(tensor, dtypes.float32)

    return _record(name, make_tensor, step, "scalars", description)


def histogram(
    name: str,
    data: Any,
    step: Any = None,
    buckets: Any = None,
    description: str | None = None,
) -> Tensor:
    """Writes a histogram of `data` with `buckets` (default 30) intervals of equal width."""
    count = 30 if buckets is None else integer(buckets, "buckets")
    make_tensor = lambda: cast(as_tensor(data), dtypes.float64)  # noqa: E731
    count_buckets = lambda array: _buckets(array.reshape(-1), count)  # noqa: E731
    return _record(name, make_tensor, step, "histograms", description, count_buckets)


def _buckets(values: np.ndarray, count: int) -> np.ndarray:
    """Returns the ends and the count of each interval."""
    if not values.size or not count:
        return np.zeros((count, 3))
    low, high = values.min(), values.max()
    if low == high:  # all values are in the last interval
        counts = np.zeros(count)
        counts[-1] = values.size
        return np.stack([np.full(count, low), np.full(count, high), counts], axis=1)
    with np.errstate(all="ignore"):
        indices = np.floor((values - low) / ((high - low) / count))
        edges = np.linspace(low, high, count + 1)
    finite = indices[np.isfinite(indices)].astype(np.int64)
    counts = np.bincount(np.minimum(finite, count - 1), minlength=count)
    return np.stack([[low, *edges[1:-1]], [*edges[1:-1], high], counts], axis=1)


def image(
    name: str,
    data: Any,
    step: Any = None,
    max_outputs: Any = 3,
    description: str | None = None,
) -> Tensor:
    """Writes the first `max_outputs` images of a batch of shape `[k, height, width, channels]`.

    Floats are in [0, 1] and are clipped; uint8 values are in [0, 255]. There are one to four
    channels: grayscale or RGB, with or without alpha.
    """
    max_count = integer(max_outputs, "max_outputs")

    def make_tensor() -> Tensor:
        images = _batch(data, 4, "image: expected a batch of images")
        if images.shape[-1] not in (1, 2, 3, 4):
            raise invalid(f"image must have 1, 2, 3, or 4 channels, got {images.shape[-1]}")
        return convert_image_dtype(images[:max_count], dtypes.uint8, saturate=True)

    return _record(name, make_tensor, step, "images", description, _as_png)


def _batch(data: Any, rank: int, kind: str) -> Tensor:
    tensor = as_tensor(data)
    if tensor.shape.rank != rank:
        raise ValueError(
            f"{kind}, of rank {rank}. Received: rank {tensor.shape.rank}, shape {tensor.shape}."
        )
    return tensor


def _as_png(images: np.ndarray) -> np.ndarray:
    """Returns the width and height as strings, followed by the PNG images."""
    _, height, width, _ = images.shape
    sizes = [str(width).encode(), str(height).encode()]
    return np.array([*sizes, *(encode(image, -1) for image in images)], object)


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Writes strings of any shape, which are displayed as Markdown."""

    def make_tensor() -> Tensor:
        tensor = as_tensor(data)
        if tensor.dtype != dtypes.string:
            raise TypeError(f"tensor must be of type tf.string; got {tensor.dtype!r}")
        return tensor

    return _record(name, make_tensor, step, "text", description)


def audio(
    name: str,
    data: Any,
    sample_rate: Any,
    step: Any = None,
    max_outputs: Any = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> Tensor:
    """Writes the first `max_outputs` clips of a batch of shape `[k, samples, channels]`.

    Samples are floats in [-1, 1].
    """
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {shown(encoding)}. Expected 'wav'.")
    rate, max_count = integer(sample_rate, "sample_rate"), integer(max_outputs, "max_outputs")

    def make_tensor() -> Tensor:
        return cast(
            _batch(data, 3, "audio: expected a batch of audio clips")[:max_count], dtypes.float32
        )

    to_wav = lambda sounds: np.array([[_wav(x, rate), b""] for x in sounds], object)  # noqa: E731
    wav_content = bytes([2 << 3, 11])  # field 2, the encoding
    return _record(name, make_tensor, step, "audio", description, to_wav, wav_content)


def _wav(sound: np.ndarray, rate: int) -> bytes:
    import io
    import wave

    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(sound.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        scaled = np.clip(np.rint(np.asarray(sound) * 32768), -32768, 32767)
        file.writeframes(scaled.astype("<i2").tobytes())
    return buffer.getvalue()


def write(
    tag: str, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None
) -> Tensor:
    """Writes a tensor with the name `tag` for the plugin in `metadata`.

    `metadata` is a TensorBoard `SummaryMetadata`, possibly serialized. `tensor` may be a function
    without arguments, which is called only if the summary is written.
    """
    data = b"" if metadata is None else metadata
    if not isinstance(data, bytes):
        if not hasattr(data, "SerializeToString"):
            raise TypeError(
                f"write: expected metadata as bytes or SummaryMetadata. Received: {brief(data)}."
            )
        data = data.SerializeToString()
    make_tensor = lambda: as_tensor(tensor() if callable(tensor) else tensor)  # noqa: E731
    return _write(tag, make_tensor, step, data, lambda array: array)


def _record(
    name: str,
    tensor: Callable[[], Tensor],
    step: Any,
    plugin: str,
    description: str | None,
    encode: Callable = lambda array: array,
    content: bytes = b"",
) -> Tensor:
    if description is not None:
        expect(description, str, plugin, "a description of type str")
    with summary_scope(name) as (tag, _):
        metadata = _events.plugin_metadata(plugin, description, content)
        return _write(tag, tensor, step, metadata, encode)


def _write(
    tag: str, tensor: Callable[[], Tensor], step: Any, metadata: bytes, encode: Callable
) -> Tensor:
    """Passes a summary to the active writer, also in each replay of a traced function."""
    active_writer = writer.thread.writer
    if not writer.should_record_summaries():
        return as_tensor(False)
    expect(tag, str, "summary", "a tag of type str")
    number = writer.current_step(step)

    def record(array: Any, step: Any) -> Any:
        value = _events.summary_value(tag, np.asarray(encode(np.asarray(array))), metadata)
        active_writer._append(int(step), _events.summary(value))
        return np.True_

    return call_host(HostCallback("summary", record, pure=False), (tensor(), number))


_tracing = False


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Starts a trace. It stays empty: there are no graphs to trace."""
    global _tracing
    _tracing = True


def trace_off() -> None:
    """Stops a trace."""
    global _tracing
    _tracing = False


def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """Stops a trace. Nothing is written, because the trace is empty."""
    global _tracing
    if not _tracing:
        raise ValueError("Must enable trace before export through tf.summary.trace_on.")
    writer.current_step(step)
    _tracing = False
