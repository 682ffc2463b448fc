"""Regular expressions, translated from RE2 (TensorFlow's engine) to Python's `re`."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np

from retrograde.strings._elementwise import decode_utf8, encode_utf8, map_strings, scalar_string
from retrograde.values.errors import invalid

# The syntax differs in named character classes and the end of the text. RE2 supports neither
# lookaround nor backreferences, so these raise an error.
_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_TOKEN = re.compile(
    r"(?P<unsupported>\(\?(?:[=!(]|<[=!]|P=)|\\[1-9])"
    r"|(?P<escaped>\\.)"
    r"|(?P<set>\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\])"
    r"|.",
    re.DOTALL,
)
_IN_SET = re.compile(r"\[:(?P<name>\w+):\]|\\.|(?P<special>[\[&~|])", re.DOTALL)
_BY_LINES = re.compile(r"\(\?[a-zA-Z]*m")


@functools.lru_cache(maxsize=256)
def _compile(pattern: str) -> re.Pattern:
    end = "$" if _BY_LINES.search(pattern) else r"\Z"

    def translate(token: re.Match) -> str:
        if token["unsupported"]:
            raise invalid(f"Invalid pattern: {pattern!r}: {token[0]!r} is not supported.")
        if token["set"]:
            return "[" + _IN_SET.sub(_translate_in_set, token["set"][1:])
        return {"$": end, r"\z": r"\Z"}.get(token[0], token[0])

    try:
        return re.compile(_TOKEN.sub(translate, pattern), re.ASCII)
    except re.error as error:
        raise invalid(f"Invalid pattern: {pattern!r}: {error}.") from None


def _translate_in_set(token: re.Match) -> str:
    """Translates a token in a character set; some characters are special only in Python."""
    if token["name"]:
        if token["name"] not in _CLASSES:
            raise invalid(f"Invalid pattern: unknown character class {token[0]}.")
        return _CLASSES[token["name"]]
    return f"\\{token[0]}" if token["special"] else token[0]


def _pattern(value: Any, op_name: str) -> re.Pattern:
    return _compile(decode_utf8(scalar_string(value, f"{op_name}: pattern")))


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Any:
    """Returns whether a pattern matches each entire string.

    >>> tf.strings.regex_full_match(["abc", "abcd"], "a.c").numpy()
    array([ True, False])
    """
    regex = _pattern(pattern, "regex_full_match")
    return map_strings(lambda s: regex.fullmatch(decode_utf8(s)) is not None, input, np.dtype(bool))


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Any:
    r"""Replaces all matches of a pattern, or only the first; `\1` refers to the first group.

    >>> tf.strings.regex_replace("a-b", "(a)-(b)", r"\2-\1").numpy()
    b'b-a'
    """
    regex = _pattern(pattern, "regex_replace")
    parts = re.split(r"\\(\d|\\)", decode_utf8(scalar_string(rewrite, "regex_replace: rewrite")))
    groups = [int(part) for part in parts[1::2] if part != "\\"]
    count = 0 if replace_global else 1
    if max(groups, default=0) > regex.groups:
        return map_strings(lambda s: s, input)  # RE2 leaves the string unchanged

    def expand(match: re.Match) -> str:
        pieces = list(parts)
        for i in range(1, len(parts), 2):
            pieces[i] = "\\" if parts[i] == "\\" else match[int(parts[i])] or ""
        return "".join(pieces)

    return map_strings(lambda s: encode_utf8(regex.sub(expand, decode_utf8(s), count=count)), input)
