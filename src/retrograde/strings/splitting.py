"""Splitting of strings into words, bytes and characters; Unicode conversion; n-grams."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integer, integer_array, integers
from retrograde.ops.host_functions import host_function
from retrograde.ragged.partition import RowPartition
from retrograde.ragged.tensor import RaggedTensor
from retrograde.strings._elementwise import (
    STRING,
    array_of,
    as_string_tensor,
    check_one_of,
    map_strings,
    map_to_ragged,
    scalar_string,
)
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_ERRORS = ("replace", "ignore", "strict")
_BYTE_ORDER_MARKS = {
    "utf-16": ((codecs.BOM_UTF16_LE, "le"), (codecs.BOM_UTF16_BE, "be")),
    "utf-32": ((codecs.BOM_UTF32_LE, "le"), (codecs.BOM_UTF32_BE, "be")),
}
_MARK = "\ufeff"
_OUTPUTS = ("UTF-8", "UTF-16-BE", "UTF-32-BE")


def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """Splits each string at whitespace, or at `sep`, into a RaggedTensor of words.

    >>> tf.strings.split(["a b", "c"])
    <tf.RaggedTensor [[b'a', b'b'], [b'c']]>
    """
    sep = None if sep is None else scalar_string(sep, "split: sep") or None
    maxsplit = integer(maxsplit, "split: maxsplit", TypeError)

    def words(string: bytes) -> list[bytes]:
        if maxsplit == 0:
            return [string]
        parts = string.split(sep, maxsplit)
        if sep is None and len(parts) == maxsplit:  # TensorFlow adds the empty rest
            parts.append(b"")
        return parts

    return map_to_ragged(words, input)


def bytes_split(input: Any, name: str | None = None) -> Any:
    """Splits each string into bytes, as a RaggedTensor.

    >>> tf.strings.bytes_split(["ab", "c"])
    <tf.RaggedTensor [[b'a', b'b'], [b'c']]>
    """
    return map_to_ragged(lambda s: [s[i : i + 1] for i in range(len(s))], input)


# Unicode


def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """Decodes each string to its code points, as a RaggedTensor.

    >>> tf.strings.unicode_decode(["hé"], "UTF-8")
    <tf.RaggedTensor [[104, 233]]>
    """
    decode = _Decoder(input_encoding, errors, replacement_char, replace_control_characters)
    return map_to_ragged(lambda s: list(map(ord, decode(s))), input, _INT32)


def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Decodes each string to its code points and their byte offsets."""
    options = (input_encoding, errors, replacement_char, replace_control_characters)
    return unicode_decode(input, *options), _offsets(input, _Decoder(*options))


def unicode_split(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """Splits each string into characters, as a RaggedTensor of strings in the same encoding.

    >>> tf.strings.unicode_split(["hé"], "UTF-8")
    <tf.RaggedTensor [[b'h', b'\\xc3\\xa9']]>
    """
    decode = _Decoder(input_encoding, errors, replacement_char)
    return map_to_ragged(lambda s: [c.encode(decode.encoding) for c in decode(s)], input)


def unicode_split_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Splits each string into characters, and returns their byte offsets."""
    options = (input_encoding, errors, replacement_char)
    return unicode_split(input, *options), _offsets(input, _Decoder(*options))


def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """Converts each string to another encoding."""
    decode = _Decoder(input_encoding, errors, replacement_char, replace_control_characters)
    target = check_one_of(output_encoding, _OUTPUTS, "unicode_transcode: output_encoding")
    return map_strings(lambda s: decode.without_mark(s).encode(target), input)


@host_function
def unicode_encode(
    input: Any,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """Encodes the code points along the last axis as strings.

    >>> tf.strings.unicode_encode([104, 233], "UTF-8").numpy()
    b'h\\xc3\\xa9'
    """
    target = check_one_of(output_encoding, _OUTPUTS, "unicode_encode: output_encoding")
    check_one_of(errors, _ERRORS, "unicode_encode: errors")
    if isinstance(input, RaggedTensor) and input.ragged_rank > 1:
        inner = unicode_encode(input.values, output_encoding, errors, replacement_char)
        return input.with_values(inner)
    if isinstance(input, RaggedTensor):
        rows, shape = input.to_list(), (input._partition.nrows,)
    else:
        points = integer_array(input, "unicode_encode")
        if not points.ndim:
            raise ValueError(
                "unicode_encode: expected at least one axis of code points. Received: a scalar."
            )
        shape = points.shape[:-1]
        rows = points.reshape(int(np.prod(shape)), points.shape[-1]).tolist()
    encoded = [_encode(row, target, errors, replacement_char) for row in rows]
    return Tensor(array_of(encoded, STRING).reshape(shape))


def _encode(points: list[int], target: str, errors: str, replacement: int) -> bytes:
    valid = [0 <= p < 0x110000 and not 0xD800 <= p < 0xE000 for p in points]
    if errors == "strict" and not all(valid):
        raise invalid("unicode_encode: a code point is out of range or a surrogate.")
    if errors == "ignore":
        points = [p for p, ok in zip(points, valid, strict=True) if ok]
    else:
        points = [p if ok else replacement for p, ok in zip(points, valid, strict=True)]
    return "".join(map(chr, points)).encode(target)


class _Decoder:
    """Decodes bytes to text, with an error policy for invalid bytes."""

    def __init__(
        self, encoding: str, errors: str, replacement: int, replace_control: bool = False
    ) -> None:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise invalid(f"Unknown encoding: {encoding!r}.") from None
        self.encoding = encoding
        self._codec = codecs.lookup(encoding).name
        self.errors = check_one_of(errors, _ERRORS, "errors")
        if not 0 <= replacement <= sys.maxunicode:
            raise invalid(
                f"replacement_char must be a Unicode code point. Received: {replacement}."
            )
        # Without the policy to replace, control characters are removed.
        self._replacement_of_control = chr(replacement) if errors == "replace" else ""
        self._replacement = chr(replacement)
        self._replace_control = replace_control

    def __call__(self, string: bytes) -> str:
        return "".join(character for character, _ in self.characters(string))

    def without_mark(self, string: bytes) -> str:
        """Returns the text without a byte order mark."""
        text = self(string)
        return text.removeprefix(_MARK) if self._codec in _BYTE_ORDER_MARKS else text

    def characters(self, string: bytes) -> list[tuple[str, int]]:
        """Returns each character and its byte offset; invalid bytes form one character."""
        result: list[tuple[str, int]] = []
        encoding, offset = self._encoding_and_start(string)
        while offset < len(string):
            try:
                valid, invalid_count = string[offset:].decode(encoding), 0
            except UnicodeDecodeError as error:
                if self.errors == "strict":
                    raise invalid(
                        f"{string!r} is not valid in the encoding {self.encoding}."
                    ) from None
                valid = string[offset : offset + error.start].decode(encoding)
                invalid_count = error.end - error.start
            for character in valid:
                result.append((self._replace_if_control(character), offset))
                offset += len(character.encode(encoding))
            if invalid_count and self.errors == "replace":
                result.append((self._replacement, offset))
            offset += invalid_count
        return result

    def _encoding_and_start(self, string: bytes) -> tuple[str, int]:
        """Returns the encoding with its byte order, and the offset of the first character.

        Strings without a byte order mark are big-endian. A big-endian mark is a character.
        """
        marks = _BYTE_ORDER_MARKS.get(self._codec, ())
        for mark, order in marks:
            if string.startswith(mark):
                return f"{self._codec}-{order}", len(mark) if order == "le" else 0
        return f"{self._codec}-be" if marks else self._codec, 0

    def _replace_if_control(self, character: str) -> str:
        control = ord(character) < 32 or ord(character) == 127
        return self._replacement_of_control if control and self._replace_control else character


def _offsets(input: Any, decode: _Decoder) -> Any:
    return map_to_ragged(lambda s: [offset for _, offset in decode.characters(s)], input, _INT64)


# n-grams


@host_function(dynamic_shapes=True)
def ngrams(
    data: Any,
    ngram_width: Any,
    separator: Any = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """Joins `ngram_width` consecutive strings of each row; several widths are allowed.

    >>> tf.strings.ngrams(["a", "b", "c"], 2).numpy()
    array([b'a b', b'b c'], dtype=object)
    """
    x = as_string_tensor(data)
    sep = scalar_string(separator, "ngrams: separator")
    widths = integers(ngram_width, "ngrams: ngram_width")
    if min(widths) < 1:
        raise ValueError(f"ngrams: expected widths of at least 1. Received: {shown(list(widths))}.")
    pads = _pads(pad_values)

    def grams(row: Sequence[bytes]) -> list[bytes]:
        ngrams = []
        for width in widths:
            size = width - 1 if padding_width is None else min(padding_width, width - 1)
            padded = [*pads[0] * size, *row, *pads[1] * size] if pads else list(row)
            ngrams += [sep.join(padded[i : i + width]) for i in range(len(padded) - width + 1)]
        if not ngrams and row and preserve_short_sequences:
            size = (max(widths) - 1 if padding_width is None else padding_width) if pads else 0
            ngrams = [sep.join([*pads[0] * size, *row, *pads[1] * size] if pads else row)]
        return ngrams

    if isinstance(x, RaggedTensor):
        if x.ragged_rank > 1:
            options = (separator, pad_values, padding_width, preserve_short_sequences)
            return x.with_values(ngrams(x.values, widths, *options))
        parts = [grams(row) for row in x.to_list()]
        flat = Tensor(array_of([g for part in parts for g in part], STRING))
        lengths = np.array([len(part) for part in parts], np.int64)
        return RaggedTensor(flat, RowPartition.from_lengths(lengths), internal=True)
    array = np.asarray(x)
    if not array.ndim:
        raise ValueError("ngrams: expected strings along at least one axis. Received: a scalar.")
    if array.shape == (0,):
        return Tensor(array_of([], STRING))
    count = int(np.prod(array.shape[:-1]))
    parts = [grams(row) for row in array.reshape(count, array.shape[-1]).tolist()]
    flat = array_of([g for part in parts for g in part], STRING)
    return Tensor(flat.reshape((*array.shape[:-1], len(parts[0]) if parts else 0)))


def _pads(pad_values: Any) -> tuple[list[bytes], list[bytes]] | None:
    if pad_values is None:
        return None
    both = pad_values if isinstance(pad_values, (list, tuple)) else (pad_values, pad_values)
    left, right = ([scalar_string(v, "ngrams: pad_values")] for v in both)
    return left, right
