"""Formats the comparison as Markdown tables."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from benchmarks.peers import ROOT
from parity.calls import namespaces
from parity.compare import BEYOND, DIFFERENT, LISTED, NOTHING, SAME, STAGES, Finding, compare
from parity.differences import DIFFERENCES

DIFFERENCES_PAGE = ROOT / "docs" / "differences.md"
TITLES = {"value": "value", "gradient": "gradient", "second": "second-order gradient"}


class Entry(NamedTuple):
    """The findings for all calls to one function, by stage.

    There are none if the function is missing or was not compared.
    """

    name: str
    missing: bool
    findings: dict[str, list[Finding]]

    def first(self, stage: str, *kinds: str) -> Finding | None:
        """Returns a finding of the first of `kinds` that occurs."""
        for kind in kinds:
            for finding in self.findings[stage]:
                if finding.kind == kind:
                    return finding
        return None

    def verdict(self, stage: str) -> str:
        """Returns the kind for all calls; a difference takes precedence."""
        return self.first(stage, DIFFERENT, LISTED, SAME, BEYOND, NOTHING).kind


class Report:
    """The findings for every function of every namespace."""

    def __init__(self, theirs: list[dict], ours: list[dict]) -> None:
        by_function = [_by_function(results) for results in (theirs, ours)]
        self.namespaces = {
            namespace: [
                entry_of(name, *(results.get(name, []) for results in by_function))
                for name in functions
            ]
            for namespace, functions in namespaces().items()
        }

    @property
    def entries(self) -> list[Entry]:
        """Returns the entries of all namespaces."""
        return [entry for entries in self.namespaces.values() for entry in entries]

    def with_kind(self, kind: str) -> list[tuple[str, str, str]]:
        """Returns function, stage and reason for each finding of a kind."""
        return [
            (entry.name, stage, entry.first(stage, kind).why)
            for entry in self.entries
            for stage in entry.findings
            if entry.first(stage, kind)
        ]

    def rows(self) -> list[list[str]]:
        """Returns a row for each namespace, and one for all."""
        rows = [_row(name, entries) for name, entries in self.namespaces.items()]
        return [*rows, _row("all", self.entries)]

    def text(self) -> str:
        """Returns the table and the unexplained differences."""
        lines = [table(HEADINGS, self.rows())]
        lines += [
            f"{name}, {TITLES[stage]}: {why}" for name, stage, why in self.with_kind(DIFFERENT)
        ]
        return "\n".join(lines)


def _by_function(results: list[dict]) -> dict[str, list[dict]]:
    by_function = {}
    for result in results:
        by_function.setdefault(result["function"], []).append(result)
    return by_function


def entry_of(name: str, theirs: list[dict], ours: list[dict]) -> Entry:
    """Compares the results for one function, which are in the same order."""
    missing = any("missing" in result for result in ours)
    if missing or not any(result["expression"] for result in theirs):
        return Entry(name, missing, {})
    in_double = {a["expression"]: a for a in theirs if a["precision"] == "float64"}
    findings = {stage: [] for stage in STAGES}
    for their, our in zip(theirs, ours, strict=True):
        if _is_unsupported_precision(their):
            continue
        for stage, finding in compare(their, our, in_double[their["expression"]]).items():
            findings[stage].append(_mark_listed(finding, stage, their))
    return Entry(name, False, findings)


def _mark_listed(finding: Finding, stage: str, theirs: dict) -> Finding:
    """Marks a finding that is on the list of intentional differences."""
    difference = DIFFERENCES.get((theirs["function"], stage))
    if finding.kind == DIFFERENT and difference and difference.explains(theirs):
        return Finding(LISTED, difference.title)
    return finding


def _is_unsupported_precision(theirs: dict) -> bool:
    """Returns whether TensorFlow accepts a call in single precision, but not in this one."""
    return theirs["precision"] != "float32" and theirs.get("error", [""])[0] == "value"


HEADINGS = [
    "namespace",
    "functions",
    "missing",
    "not compared",
    *(f"same {TITLES[stage]}" for stage in STAGES),
    "intentionally different",
    "unexplained",
]


def _row(title: str, entries: list[Entry]) -> list[str]:
    compared = [entry for entry in entries if entry.findings]
    missing = sum(entry.missing for entry in entries)
    kinds = [entry.verdict(stage) for entry in compared for stage in STAGES]
    cells = [len(entries), missing, len(entries) - missing - len(compared)]
    cells += [_share(compared, stage) for stage in STAGES]
    cells += [kinds.count(LISTED), kinds.count(DIFFERENT)]
    return [title, *map(str, cells)]


def _share(compared: list[Entry], stage: str) -> str:
    """Returns how many functions agree, among all for which TensorFlow has a result."""
    kinds = [entry.verdict(stage) for entry in compared]
    same, different = kinds.count(SAME), kinds.count(DIFFERENT) + kinds.count(LISTED)
    return f"{same} of {same + different}" if same + different else "-"


def table(headings: list[str], rows: list[list[str]]) -> str:
    """Returns a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@functools.cache
def anchor_of(title: str) -> str:
    """Returns the anchor of the section of docs/differences.md that contains `title`."""
    before = DIFFERENCES_PAGE.read_text().partition(title)[0]
    heading = [line for line in before.splitlines() if line.startswith("## ")][-1]
    return heading.removeprefix("## ").lower().replace(" ", "-")


def page(report: Report, properties: dict[str, str], programs: Sequence[str]) -> str:
    """Returns the text of docs/parity.md."""
    parts = [
        "# Parity with TensorFlow",
        INTRODUCTION.format(**properties),
        table(HEADINGS, report.rows()),
        EXPLANATION,
        "## Programs",
        PROGRAMS,
        *programs,
        "## Unexplained",
        _items(f"`{n}`, {TITLES[s]}: {w}" for n, s, w in report.with_kind(DIFFERENT)),
        "## Intentional differences",
        _items(_format_link(*entry) for entry in report.with_kind(LISTED)),
        "## Not supported by TensorFlow",
        "TensorFlow raises this error; retrograde returns a result.",
        _items(f"`{n}`, {TITLES[s]}: `{w.split(':')[0]}`" for n, s, w in report.with_kind(BEYOND)),
        "## Missing",
        _names(entry.name for entry in report.entries if entry.missing),
        "## Not compared",
        "retrograde has these functions, but there is no sample call for them.",
        _names(e.name for e in report.entries if not e.findings and not e.missing),
    ]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """\
`make parity` calls every function of TensorFlow's numerical namespaces in TensorFlow and in
retrograde, with the same random inputs. It compares the values, the gradients with respect to each
input (for random cotangents), and the gradients of the sum of the squares of these gradients. This
page was generated on {date}, with TensorFlow {TensorFlow} and `--seed {seed}`. Without a seed, each
run uses different inputs. `tests/parity` stores a sample of TensorFlow's results, so the tests can
run without TensorFlow."""

EXPLANATION = """\
A function counts as the same if the results of all its sample calls have the same dtype, shape and
values in float32, float64, float16 and bfloat16. The tolerance is 1e-7 of the largest element in
float64, and TensorFlow's own rounding error in the other dtypes. `None` agrees only with `None`.
Invalid arguments must raise the same exception class. For functions that draw random numbers, only
dtypes, shapes and the existence of a gradient are compared. Second-order gradients are compared if
TensorFlow has a first-order gradient."""


PROGRAMS = """\
These programs start with `import tensorflow as tf`. Each program runs on TensorFlow and with
`retrograde run`. They are the [examples](gallery.md), at reduced size, and programs that follow
TensorFlow's published guides cell by cell (`tests/programs/guides`). The comparison covers numbers,
shapes, dtypes, strings and exception classes. The relative tolerance for numbers is 1e-3 in
examples and 1e-4 in guides. Differences are relative to the largest number in each value."""


def _format_link(name: str, stage: str, title: str) -> str:
    text = title.replace("**", "")
    return f"`{name}`, {TITLES[stage]}: [{text}](differences.md#{anchor_of(title)})"


def _items(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_escape(line)}" for line in lines) or "None."


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "None."


def _escape(line: str) -> str:
    return line.replace("<", "&lt;").replace(">", "&gt;")
