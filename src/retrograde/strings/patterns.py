"""Regular expressions, by Python's `re` where TensorFlow has RE2."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np

from retrograde.core.errors import invalid
from retrograde.strings._mapping import data, each, scalar_string, text

# What the two spell differently: named classes, and the very end of the text. RE2 has neither
# lookaround nor backreferences, which are refused as it does.
_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_CLASS = re.compile(r"\[:(\w+):\]")
_REFUSED = re.compile(r"(?<!\\)(?:\\\\)*(\(\?(?:[=!]|<[=!]|P=|\()|\\[1-9])")


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern:
    refused = _REFUSED.search(pattern)
    if refused:
        raise invalid(f"Invalid pattern: {pattern!r}: {refused[1]!r} is not supported.")
    spelled = _CLASS.sub(lambda m: _CLASSES.get(m[1], m[0]), pattern).replace(r"\z", r"\Z")
    spelled = re.sub(r"(?<!\\)((?:\\\\)*)\$", r"\1\\Z", spelled)
    try:
        return re.compile(spelled, re.ASCII)
    except re.error as error:
        raise invalid(f"Invalid pattern: {pattern!r}: {error}.") from None


def _pattern(value: Any, what: str) -> re.Pattern:
    return _compiled(text(scalar_string(value, f"{what}: pattern")))


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Any:
    """Whether a pattern matches each string as a whole.

    >>> tf.strings.regex_full_match(["abc", "abcd"], "a.c").numpy()
    array([ True, False])
    """
    found = _pattern(pattern, "regex_full_match")
    return each(lambda s: found.fullmatch(text(s)) is not None, input, np.dtype(bool))


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Any:
    r"""Matches of a pattern replaced: all, or the first. `\1` stands for the first group.

    >>> tf.strings.regex_replace("a-b", "(a)-(b)", r"\2-\1").numpy()
    b'b-a'
    """
    found = _pattern(pattern, "regex_replace")
    parts = re.split(r"\\(\d|\\)", text(scalar_string(rewrite, "regex_replace: rewrite")))
    groups = [int(part) for part in parts[1::2] if part != "\\"]
    count = 0 if replace_global else 1
    if max(groups, default=0) > found.groups:
        return each(lambda s: s, input)  # RE2 leaves the string as it is then

    def written(match: re.Match) -> str:
        pieces = list(parts)
        for i in range(1, len(parts), 2):
            pieces[i] = "\\" if parts[i] == "\\" else match[int(parts[i])] or ""
        return "".join(pieces)

    return each(lambda s: data(found.sub(written, text(s), count=count)), input)
