"""From answers to tables in Markdown."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from benchmarks.peers import ROOT
from parity.calls import namespaces
from parity.compare import BEYOND, DIFFERENT, LISTED, NOTHING, SAME, STAGES, Finding, compare
from parity.differences import DIFFERENCES

DIFFERENCES_PAGE = ROOT / "docs" / "differences.md"
TITLES = {"value": "value", "gradient": "gradient", "second": "second order"}


class Entry(NamedTuple):
    """What came of one function: the findings on all its calls, by stage.

    There are none if it is missing, or was not compared.
    """

    name: str
    missing: bool
    findings: dict[str, list[Finding]]

    def first(self, stage: str, *kinds: str) -> Finding | None:
        """A finding of the first of `kinds` that there is."""
        for kind in kinds:
            for finding in self.findings[stage]:
                if finding.kind == kind:
                    return finding
        return None

    def verdict(self, stage: str) -> str:
        """The kind that speaks for all calls: one that differs says more than one that does not."""
        return self.first(stage, DIFFERENT, LISTED, SAME, BEYOND, NOTHING).kind


class Report:
    """The findings on every function of every namespace."""

    def __init__(self, theirs: list[dict], ours: list[dict]) -> None:
        by_function = [_by_function(answers) for answers in (theirs, ours)]
        self.namespaces = {
            namespace: [
                entry_of(name, *(answers.get(name, []) for answers in by_function))
                for name in functions
            ]
            for namespace, functions in namespaces().items()
        }

    @property
    def entries(self) -> list[Entry]:
        """Those of all namespaces."""
        return [entry for entries in self.namespaces.values() for entry in entries]

    def with_kind(self, kind: str) -> list[tuple[str, str, str]]:
        """Function, stage and reason for each finding of a kind."""
        return [
            (entry.name, stage, entry.first(stage, kind).why)
            for entry in self.entries
            for stage in entry.findings
            if entry.first(stage, kind)
        ]

    def rows(self) -> list[list[str]]:
        """A row for each namespace, and one for all."""
        rows = [_row(name, entries) for name, entries in self.namespaces.items()]
        return [*rows, _row("all", self.entries)]

    def text(self) -> str:
        """The table, and what is not explained."""
        lines = [table(HEADINGS, self.rows())]
        lines += [
            f"{name}, {TITLES[stage]}: {why}" for name, stage, why in self.with_kind(DIFFERENT)
        ]
        return "\n".join(lines)


def _by_function(answers: list[dict]) -> dict[str, list[dict]]:
    found = {}
    for answer in answers:
        found.setdefault(answer["function"], []).append(answer)
    return found


def entry_of(name: str, theirs: list[dict], ours: list[dict]) -> Entry:
    """What came of one function; the answers are those to the same calls, in the same order."""
    missing = any("missing" in answer for answer in ours)
    if missing or not any(answer["expression"] for answer in theirs):
        return Entry(name, missing, {})
    in_double = {a["expression"]: a for a in theirs if a["precision"] == "float64"}
    findings = {stage: [] for stage in STAGES}
    for their, our in zip(theirs, ours, strict=True):
        if _refused(their):
            continue
        for stage, finding in compare(their, our, in_double[their["expression"]]).items():
            findings[stage].append(_explained(finding, stage, their))
    return Entry(name, False, findings)


def _explained(finding: Finding, stage: str, theirs: dict) -> Finding:
    """The finding; if it is on the list of differences, it says so."""
    difference = DIFFERENCES.get((theirs["function"], stage))
    if finding.kind == DIFFERENT and difference and difference.explains(theirs):
        return Finding(LISTED, difference.words)
    return finding


def _refused(theirs: dict) -> bool:
    """Whether TensorFlow takes a call in single precision, but not in this one."""
    return theirs["precision"] != "float32" and theirs.get("error", [""])[0] == "value"


HEADINGS = [
    "namespace",
    "functions",
    "missing",
    "not compared",
    *(f"same {TITLES[stage]}" for stage in STAGES),
    "differs on purpose",
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
    """How many are the same, of those that TensorFlow has an answer to."""
    kinds = [entry.verdict(stage) for entry in compared]
    same, different = kinds.count(SAME), kinds.count(DIFFERENT) + kinds.count(LISTED)
    return f"{same} of {same + different}" if same + different else "-"


def table(headings: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@functools.cache
def anchor_of(words: str) -> str:
    """Where docs/differences.md speaks of something: its heading, as a link names it."""
    before = DIFFERENCES_PAGE.read_text().partition(words)[0]
    heading = [line for line in before.splitlines() if line.startswith("## ")][-1]
    return heading.removeprefix("## ").lower().replace(" ", "-")


def page(report: Report, facts: dict[str, str], programs: Sequence[str]) -> str:
    """docs/parity.md."""
    parts = [
        "# Parity with TensorFlow",
        INTRODUCTION.format(**facts),
        table(HEADINGS, report.rows()),
        EXPLANATION,
        "## Programs",
        PROGRAMS,
        *programs,
        "## Unexplained",
        _items(f"`{n}`, {TITLES[s]}: {w}" for n, s, w in report.with_kind(DIFFERENT)),
        "## Different on purpose",
        _items(_linked(*found) for found in report.with_kind(LISTED)),
        "## Where TensorFlow has no answer",
        "TensorFlow raises this error; retrograde has an answer.",
        _items(f"`{n}`, {TITLES[s]}: `{w.split(':')[0]}`" for n, s, w in report.with_kind(BEYOND)),
        "## Missing",
        _names(entry.name for entry in report.entries if entry.missing),
        "## Not compared",
        "retrograde has these too, but there is no sample call for them.",
        _names(e.name for e in report.entries if not e.findings and not e.missing),
    ]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """\
`make parity` calls every function of TensorFlow's numerical namespaces in TensorFlow and in
retrograde, on the same random inputs, and compares what comes back: the value, the gradient by each
input (for random cotangents), and the gradient of the sum of the squares of these gradients. This
page was written on {date}, with TensorFlow {TensorFlow} and `--seed {seed}`; each run draws other
inputs unless it is given a seed. A sample of TensorFlow's answers is kept in `tests/parity`, where
every run of the tests compares with it."""

EXPLANATION = """\
A function counts as the same if all its sample calls are, in float32, float64, float16 and
bfloat16: in dtype, in shape and in number, to 1e-7 of the largest element in float64, else to
what TensorFlow itself loses there. `None` is the same as `None` alone, and a mistake has to raise
the same class. Of functions that draw random numbers, dtypes and shapes are compared, and whether
there is a gradient. A second order is counted where TensorFlow has a gradient to start from."""


PROGRAMS = """\
These programs begin with `import tensorflow as tf`. Each is run by TensorFlow and by
`retrograde run`: the [examples](gallery.md), in a small size, and programs that go, cell by cell,
through what TensorFlow's published guides teach (`tests/programs/guides`). What they come to is
compared: numbers, to 1e-3 of their size in an example and 1e-4 in a guide, shapes, dtypes, texts
and the classes of errors. The largest difference is a share of the largest number in a value."""


def _linked(name: str, stage: str, words: str) -> str:
    text = words.replace("**", "")
    return f"`{name}`, {TITLES[stage]}: [{text}](differences.md#{anchor_of(words)})"


def _items(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_escaped(line)}" for line in lines) or "None."


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "None."


def _escaped(line: str) -> str:
    return line.replace("<", "&lt;").replace(">", "&gt;")
