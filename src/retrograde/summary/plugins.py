"""Summaries of each kind that TensorBoard shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.host_callbacks import HostCallback, call_host
from retrograde.core.tensor import Tensor
from retrograde.image import convert_image_dtype
from retrograde.image._png import encode
from retrograde.ops.arguments import integer
from retrograde.ops.conversion import as_tensor
from retrograde.summary import _events, writer
from retrograde.summary.experimental import summary_scope
from retrograde.toplevel.shaping import cast
from retrograde.values import dtypes
from retrograde.values.arguments import brief, expect, shown
from retrograde.values.errors import invalid

# What is to be recorded is converted and checked only if it is recorded.


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Records a number. Returns whether it was recorded."""

    def made() -> Tensor:
        tensor = as_tensor(data)
        if tensor.shape.rank:
            raise ValueError(f"Expected scalar shape, saw shape: {tensor.shape}.")
        return cast(tensor, dtypes.float32)

    return _record(name, made, step, "scalars", description)


def histogram(
    name: str,
    data: Any,
    step: Any = None,
    buckets: Any = None,
    description: str | None = None,
) -> Tensor:
    """Records how the elements of `data` are spread over `buckets` intervals of one width (30)."""
    count = 30 if buckets is None else integer(buckets, "buckets")
    made = lambda: cast(as_tensor(data), dtypes.float64)  # noqa: E731
    counted = lambda array: _buckets(array.reshape(-1), count)  # noqa: E731
    return _record(name, made, step, "histograms", description, counted)


def _buckets(values: np.ndarray, count: int) -> np.ndarray:
    """The ends of each interval, and how many values are in it."""
    if not values.size or not count:
        return np.zeros((count, 3))
    low, high = values.min(), values.max()
    if low == high:  # all of them in the last
        counts = np.zeros(count)
        counts[-1] = values.size
        return np.stack([np.full(count, low), np.full(count, high), counts], axis=1)
    with np.errstate(all="ignore"):
        places = np.floor((values - low) / ((high - low) / count))
        edges = np.linspace(low, high, count + 1)
    finite = places[np.isfinite(places)].astype(np.int64)
    counts = np.bincount(np.minimum(finite, count - 1), minlength=count)
    return np.stack([[low, *edges[1:-1]], [*edges[1:-1], high], counts], axis=1)


def image(
    name: str,
    data: Any,
    step: Any = None,
    max_outputs: Any = 3,
    description: str | None = None,
) -> Tensor:
    """Records the first `max_outputs` images of a batch of shape `[k, height, width, channels]`.

    Floats are from 0 to 1, uint8 from 0 to 255; beyond that they are cut off. There are one to four
    channels: grey, or colours, with transparency or without.
    """
    few = integer(max_outputs, "max_outputs")

    def made() -> Tensor:
        images = _batch(data, 4, "image: expected a batch of images")
        if images.shape[-1] not in (1, 2, 3, 4):
            raise invalid(f"image must have 1, 2, 3, or 4 channels, got {images.shape[-1]}")
        return convert_image_dtype(images[:few], dtypes.uint8, saturate=True)

    return _record(name, made, step, "images", description, _as_png)


def _batch(data: Any, rank: int, what: str) -> Tensor:
    tensor = as_tensor(data)
    if tensor.shape.rank != rank:
        raise ValueError(
            f"{what}, of rank {rank}. Received: rank {tensor.shape.rank}, shape {tensor.shape}."
        )
    return tensor


def _as_png(images: np.ndarray) -> np.ndarray:
    """Width and height in words, and the images."""
    _, height, width, _ = images.shape
    sizes = [str(width).encode(), str(height).encode()]
    return np.array([*sizes, *(encode(image, -1) for image in images)], object)


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Records strings, of any shape, in Markdown."""

    def made() -> Tensor:
        tensor = as_tensor(data)
        if tensor.dtype != dtypes.string:
            raise TypeError(f"tensor must be of type tf.string; got {tensor.dtype!r}")
        return tensor

    return _record(name, made, step, "text", description)


def audio(
    name: str,
    data: Any,
    sample_rate: Any,
    step: Any = None,
    max_outputs: Any = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> Tensor:
    """Records the first `max_outputs` sounds of a batch of shape `[k, samples, channels]`.

    Samples are floats from -1 to 1.
    """
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {shown(encoding)}. Expected 'wav'.")
    rate, few = integer(sample_rate, "sample_rate"), integer(max_outputs, "max_outputs")

    def made() -> Tensor:
        return cast(_batch(data, 3, "audio: expected a batch of sounds")[:few], dtypes.float32)

    in_files = lambda sounds: np.array([[_wav(x, rate), b""] for x in sounds], object)  # noqa: E731
    is_wav = bytes([2 << 3, 11])  # field 2, the encoding
    return _record(name, made, step, "audio", description, in_files, is_wav)


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
    """Records any tensor under `tag`, for the plugin that `metadata` names.

    `metadata` is a `SummaryMetadata` of TensorBoard's, or the bytes of one. `tensor` may be a
    function without arguments, which is called only if the summary is recorded.
    """
    data = b"" if metadata is None else metadata
    if not isinstance(data, bytes):
        if not hasattr(data, "SerializeToString"):
            raise TypeError(
                f"write: expected metadata as bytes or SummaryMetadata. Received: {brief(data)}."
            )
        data = data.SerializeToString()
    made = lambda: as_tensor(tensor() if callable(tensor) else tensor)  # noqa: E731
    return _write(tag, made, step, data, lambda array: array)


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
    """Hands a summary to the writer at work. A function that is replayed does so each time."""
    at_work = writer.thread.writer
    if not writer.should_record_summaries():
        return as_tensor(False)
    expect(tag, str, "summary", "a tag of type str")
    number = writer.present_step(step)

    def record(array: Any, step: Any) -> Any:
        value = _events.summary_value(tag, np.asarray(encode(np.asarray(array))), metadata)
        at_work._append(int(step), _events.summary(value))
        return np.True_

    return call_host(HostCallback("summary", record, pure=False), (tensor(), number))


_tracing = False


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Begins a trace. There are no graphs to be traced, so nothing will be in it."""
    global _tracing
    _tracing = True


def trace_off() -> None:
    """Ends a trace."""
    global _tracing
    _tracing = False


def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """Ends a trace. There is nothing in it to be written."""
    global _tracing
    if not _tracing:
        raise ValueError("Must enable trace before export through tf.summary.trace_on.")
    writer.present_step(step)
    _tracing = False
