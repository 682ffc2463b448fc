"""Findings: what was found out about each source, as objects, as text and as HTML."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from retrograde.diagnose.missing_gradients.source_code import Line

_WIDTH = 96


@dataclass(frozen=True)
class Finding:
    """What `explain` found out about one source.

    `cause` is one of the short phrases in `causes.py`, "connected" among them.
    `meaning` says in a sentence what happened, `cure` what to write instead, `line` where. `way`
    names the calls between the source and the target, as far as they are known. `further` holds
    the obstacles that wait behind the first. Where `certain` is false, the tape could not see it
    itself, and this is what fits best.
    """

    source: str
    target: str
    cause: str
    meaning: str
    cure: str = ""
    line: Line | None = None
    way: tuple[str, ...] = ()
    certain: bool = True
    further: tuple[Finding, ...] = field(default=())

    @property
    def connected(self) -> bool:
        """Whether a gradient flows from the target to the source."""
        return self.cause == "connected"

    @property
    def filename(self) -> str | None:
        """The file of `line`."""
        return None if self.line is None else self.line.filename

    @property
    def headline(self) -> str:
        """The answer in one line."""
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
        yield from _wrapped(_sentence(self.meaning))
        if self.cure:
            yield from _wrapped("Instead: " + _sentence(self.cure, capital=False))
        for another in self.further:
            where = "" if another.line is None else f" ({another.line})"
            yield from _wrapped(f"Then also, {another.cause}{where}: {_sentence(another.meaning)}")

    def _html(self) -> str:
        answer = "connected" if self.connected else f"None: {self.cause}"
        if not self.certain:
            answer = f"None, most likely: {self.cause}"
        where = ""
        if self.line is not None:
            code = f" <code>{html.escape(self.line.text)}</code>" if self.line.text else ""
            where = f"<br>{html.escape(str(self.line))}{code}"
        cells = [
            f"<code>{html.escape(self.source)}</code>",
            html.escape(answer),
            _marked_up(_sentence(self.meaning)) + where,
            _marked_up(_sentence(self.cure)) if self.cure else "",
        ]
        for another in self.further:
            cells[2] += f"<br>Then also, {html.escape(another.cause)}: "
            cells[2] += _marked_up(_sentence(another.meaning))
        # A tint that lies well on light and dark pages.
        colour = "rgba(60, 160, 60, 0.14)" if self.connected else "rgba(220, 80, 50, 0.14)"
        row = "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
        return f'<tr style="background: {colour}">{row}</tr>'

    def _repr_html_(self) -> str:
        return Explanation([self])._repr_html_()


_CELL = "text-align: left; vertical-align: top; padding: 0.4em; overflow-wrap: anywhere"
_HEADS = (("source", 15), ("gradient", 15), ("why", 40), ("what to write instead", 30))


class Explanation(Sequence):
    """What `tape.explain` returns: a finding for each source, in their order."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = tuple(findings)

    def __getitem__(self, index):
        return self._findings[index]

    def __len__(self) -> int:
        return len(self._findings)

    @property
    def connected(self) -> bool:
        """Whether all sources are connected."""
        return all(finding.connected for finding in self)

    def __str__(self) -> str:
        """Those without a gradient first, and what is the same for several sources only once."""
        missing = [finding for finding in self if not finding.connected]
        if not missing:
            return "\n\n".join(map(str, self))
        paragraphs = [_together(same) for same in _grouped(missing)]
        connected = [finding.source for finding in self if finding.connected]
        if connected:
            paragraphs.append("\n".join(_wrapped(f"Connected: {', '.join(connected)}.", "")))
        return "\n\n".join(paragraphs)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads = "".join(
            f'<th style="text-align: left; width: {width}%">{head}</th>' for head, width in _HEADS
        )
        rows = "".join(finding._html() for finding in self)
        body = f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>"
        table = f'<table style="width: 100%; min-width: 44em; table-layout: fixed">{body}</table>'
        return f'<div style="overflow-x: auto">{table}</div>'


def _grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings that differ in nothing but the name of their source, side by side."""
    groups: dict[tuple, list[Finding]] = {}
    for finding in findings:
        texts = [finding.meaning, finding.cure, *(f.meaning for f in finding.further)]
        nameless = [text.replace(f"`{finding.source}`", "`…`") for text in texts]
        groups.setdefault((finding.cause, finding.line, *nameless), []).append(finding)
    return list(groups.values())


def _together(same: list[Finding]) -> str:
    """The text for findings that are the same, but for their sources."""
    first, *others = same
    also = ", ".join(finding.source for finding in others)
    return "\n".join([str(first), *(_wrapped(f"The same for {also}.") if also else ())])


def _sentence(text: str, capital: bool = True) -> str:
    """`text` with a full stop, and a capital unless it begins with a name."""
    text = text if text.endswith((".", "?")) else f"{text}."
    starts_with_word = text.split(maxsplit=1)[0].strip(",:").isalpha()
    return text[0].upper() + text[1:] if capital and starts_with_word else text


def _marked_up(text: str) -> str:
    """`text` as HTML, where what stands between backticks is code."""
    return re.sub("`(.*?)`", r"<code>\1</code>", html.escape(text, quote=False))


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
