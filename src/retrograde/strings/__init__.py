"""tf.strings: operations on tensors of byte strings."""

from retrograde._api.lazy import speaking
from retrograde.strings.basics import (
    as_string,
    format,
    join,
    length,
    lower,
    reduce_join,
    strip,
    substr,
    to_hash_bucket,
    to_hash_bucket_fast,
    to_hash_bucket_strong,
    to_number,
    unsorted_segment_join,
    upper,
)
from retrograde.strings.patterns import regex_full_match, regex_replace
from retrograde.strings.splitting import (
    bytes_split,
    ngrams,
    split,
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_encode,
    unicode_split,
    unicode_split_with_offsets,
    unicode_transcode,
)

__all__ = [
    "as_string",
    "bytes_split",
    "format",
    "join",
    "length",
    "lower",
    "ngrams",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_decode",
    "unicode_decode_with_offsets",
    "unicode_encode",
    "unicode_split",
    "unicode_split_with_offsets",
    "unicode_transcode",
    "unsorted_segment_join",
    "upper",
]

__getattr__ = speaking(__name__)
