from retrograde.summary import experimental as experimental
from retrograde.summary.plugins import (
    audio as audio,
    histogram as histogram,
    image as image,
    scalar as scalar,
    text as text,
    trace_export as trace_export,
    trace_off as trace_off,
    trace_on as trace_on,
    write as write,
)
from retrograde.summary.writer import (
    SummaryWriter as SummaryWriter,
    create_file_writer as create_file_writer,
    create_noop_writer as create_noop_writer,
    flush as flush,
    record_if as record_if,
    should_record_summaries as should_record_summaries,
)
