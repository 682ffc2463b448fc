"""Findings, the results of `explain` for each source, as objects, text and HTML."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from retrograde.diagnose.missing_gradients.source_code import Line
from retrograde.diagnose.rendering import to_html

_WIDTH = 96


@dataclass(frozen=True)
class Finding:
    """The result of `explain` for one source.

    Attributes:
        source: The name of the source in the program.
        target: The name of the target.
        cause: A short phrase, one of those in `causes.py`; "connected" if a gradient flows.
        message: A sentence that says what happened.
        fix: How to change the program.
        line: The line of the program where it happened.
        path: The names of the calls from the source to the target, if it is connected.
        certain: False if the tape could not observe the cause; it is then the most likely one.
        additional: Findings for further obstacles on the same path.
    """

    source: str
    target: str
    cause: str
    message: str
    fix: str = ""
    line: Line | None = None
    path: tuple[str, ...] = ()
    certain: bool = True
    additional: tuple[Finding, ...] = field(default=())

    @property
    def connected(self) -> bool:
        """True if a gradient flows from the target to the source."""
        return self.cause == "connected"

    @property
    def filename(self) -> str | None:
        """The file of `line`."""
        return None if self.line is None else self.line.filename

    @property
    def headline(self) -> str:
        """The first line of the text."""
        if self.connected:
            return f"d {self.target} / d {self.source}: connected"
        likely = "" if self.certain else "most likely "
        return f"d {self.target} / d {self.source} is None: {likely}{self.cause}"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.headline
        if self.line is not None:
            yield f"  {self.line}: {self.line.text}" if self.line.text else f"  {self.line}"
        yield from _wrap(_sentence(self.message))
        if self.fix:
            yield from _wrap("Fix: " + _sentence(self.fix, capital=False))
        for other in self.additional:
            where = "" if other.line is None else f" ({other.line})"
            yield from _wrap(f"Also: {other.cause}{where}: {_sentence(other.message)}")

    def _html(self) -> str:
        status = "connected" if self.connected else f"None: {self.cause}"
        if not self.certain:
            status = f"None, most likely: {self.cause}"
        where = ""
        if self.line is not None:
            code = f" <code>{to_html(self.line.text)}</code>" if self.line.text else ""
            where = f"<br>{to_html(str(self.line))}{code}"
        cells = [
            f"<code>{to_html(self.source)}</code>",
            to_html(status),
            _with_code(_sentence(self.message)) + where,
            _with_code(_sentence(self.fix)) if self.fix else "",
        ]
        for other in self.additional:
            cells[2] += f"<br>Also: {to_html(other.cause)}: "
            cells[2] += _with_code(_sentence(other.message))
        # Translucent, so that it works on light and dark pages.
        color = "rgba(60, 160, 60, 0.14)" if self.connected else "rgba(220, 80, 50, 0.14)"
        row = "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
        return f'<tr style="background: {color}">{row}</tr>'

    def _repr_html_(self) -> str:
        return Explanation([self])._repr_html_()


_CELL = "text-align: left; vertical-align: top; padding: 0.4em"
_COLUMNS = (("source", 15), ("gradient", 15), ("why", 40), ("fix", 30))


class Explanation(Sequence):
    """The result of `tape.explain`: a finding for each source, in order."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = tuple(findings)

    def __getitem__(self, index):
        return self._findings[index]

    def __len__(self) -> int:
        return len(self._findings)

    @property
    def connected(self) -> bool:
        """True if all sources are connected."""
        return all(finding.connected for finding in self)

    def __str__(self) -> str:
        """Returns the findings as text: missing gradients first, equal findings only once."""
        missing = [finding for finding in self if not finding.connected]
        if not missing:
            return "\n\n".join(map(str, self))
        paragraphs = [_format_group(group) for group in _group(missing)]
        connected = [finding.source for finding in self if finding.connected]
        if connected:
            paragraphs.append("\n".join(_wrap(f"Connected: {', '.join(connected)}.", "")))
        return "\n\n".join(paragraphs)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header = "".join(
            f'<th style="text-align: left; width: {width}%">{title}</th>'
            for title, width in _COLUMNS
        )
        rows = "".join(finding._html() for finding in self)
        body = f"<thead><tr>{header}</tr></thead><tbody>{rows}</tbody>"
        table = f'<table style="width: 100%; min-width: 44em">{body}</table>'
        return f'<div style="overflow-x: auto">{table}</div>'


def _group(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Groups findings that differ only in the name of their source."""
    groups: dict[tuple, list[Finding]] = {}
    for finding in findings:
        texts = [finding.message, finding.fix, *(f.message for f in finding.additional)]
        templates = [text.replace(f"`{finding.source}`", "`…`") for text in texts]
        groups.setdefault((finding.cause, finding.line, *templates), []).append(finding)
    return list(groups.values())


def _format_group(group: list[Finding]) -> str:
    first, *others = group
    names = ", ".join(finding.source for finding in others)
    return "\n".join([str(first), *(_wrap(f"The same applies to {names}.") if names else ())])


def _sentence(text: str, capital: bool = True) -> str:
    """Returns `text` with a period, and capitalized unless it begins with a name."""
    text = text if text.endswith((".", "?")) else f"{text}."
    starts_with_word = text.split(maxsplit=1)[0].strip(",:").isalpha()
    return text[0].upper() + text[1:] if capital and starts_with_word else text


def _with_code(text: str) -> str:
    """Returns `text` as HTML, with text in backticks as code."""
    return re.sub("`(.*?)`", r"<code>\1</code>", to_html(text))


def _wrap(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
