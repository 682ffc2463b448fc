"""tf.summary: numbers, histograms, images and text, for TensorBoard to show."""

from typing import TYPE_CHECKING

from retrograde._api.lazy import lazily
from retrograde._api.names import HOMES

if TYPE_CHECKING:
    from retrograde.summary import experimental
    from retrograde.summary.plugins import (
        audio,
        histogram,
        image,
        scalar,
        text,
        trace_export,
        trace_off,
        trace_on,
        write,
    )
    from retrograde.summary.writer import (
        SummaryWriter,
        create_file_writer,
        create_noop_writer,
        flush,
        record_if,
        should_record_summaries,
    )

__getattr__, __dir__ = lazily(__name__, HOMES[__name__])

__all__ = [
    "SummaryWriter",
    "audio",
    "create_file_writer",
    "create_noop_writer",
    "experimental",
    "flush",
    "histogram",
    "image",
    "record_if",
    "scalar",
    "should_record_summaries",
    "text",
    "trace_export",
    "trace_off",
    "trace_on",
    "write",
]
