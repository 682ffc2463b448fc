"""Compares the outcomes of both libraries and counts them by directory."""

from __future__ import annotations

import collections
import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

START, END = "<!-- TensorFlow's own tests -->", "<!-- end of TensorFlow's own tests -->"
SECTION = """\
## TensorFlow's own tests

`make tf-suite TESTS=dir` runs TensorFlow's unit tests on retrograde. `dir` contains a copy of
TensorFlow's repository, because this repository does not include it. The tests import internal
modules of TensorFlow. The runner (`tensorflow_suite/`) replaces these modules with modules whose
attributes are public names. Tests that do not pass on retrograde also run on TensorFlow, with the
same replacements.

- *applicable*: the test passes on retrograde or on TensorFlow. Tests of graph mode, TensorFlow 1,
  GPUs and internal names are *inapplicable*.
- *excluded*: `tensorflow_suite/excluded.toml` lists the test with the reason.
- *missing*: the test needs a public name that retrograde does not have.

Error messages are not compared, only exception classes. {count} of {total} test files were run,
with TensorFlow {version}. Directories without applicable tests are omitted.
"""
EXCLUDED = Path(__file__).with_name("excluded.toml")
COLUMNS = ("applicable", "passed", "excluded", "failed", "missing", "inapplicable")

# Attributes that only TensorFlow's graphs and internal classes have
INTERNAL_ATTRIBUTES = re.compile(
    r"has no attribute '(_\w*|graph|op|eval|handle|as_proto|to_proto|from_proto|as_default"
    r"|initializer|node_def|captured_inputs|function_def|replace_capture_with_deferred_capture)'"
    r"|Graph|is_subtype_of|most_specific_common_supertype"
)


def read_exclusions(path: Path = EXCLUDED) -> dict[str, str]:
    """Returns the reasons for exclusion. A name covers all tests whose names start with it."""
    groups = tomllib.loads(path.read_text())["excluded"]
    return {name: group["reason"] for group in groups for name in group["tests"]}


def results_file(folder: Path, library: str, file: str) -> Path:
    """Returns the results file of a test file on a library."""
    return folder / library / (file.removesuffix(".py").replace("/", "__") + ".json")


def read_results(folder: Path, library: str, file: str) -> dict[str, list[str]]:
    """Returns the outcome of each test; none if the file did not run."""
    path = results_file(folder, library, file)
    return json.loads(path.read_text()) if path.exists() else {}


def unfinished(results: dict[str, list[str]]) -> list[str]:
    """Returns the tests that neither passed nor were skipped, to run them on TensorFlow."""
    names = {
        name.partition("#")[0]
        for name, outcome in results.items()
        if outcome[0] in ("failed", "missing", "slow") and not _needs_internal(outcome)
    }
    return sorted(names)


def _needs_internal(outcome: list[str]) -> bool:
    _, error, message, *_ = outcome
    return error in ("AttributeError", "TypeError") and bool(INTERNAL_ATTRIBUTES.search(message))


@dataclass
class Comparison:
    """The outcomes of one test file on both libraries."""

    file: str
    counts: collections.Counter = field(default_factory=collections.Counter)
    failures: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def compare(folder: Path, file: str, exclusions: dict[str, str]) -> Comparison:
    """Compares the outcomes of `file`.

    A test is applicable if it passes here, or on TensorFlow with the same modules.
    """
    comparison = Comparison(file)
    theirs = read_results(folder, "tensorflow", file)
    for name, outcome in read_results(folder, "retrograde", file).items():
        if name.startswith("<"):
            comparison.notes.append(f"{name} {outcome[1]} {outcome[2]}".strip())
            continue
        kind = outcome[0]
        if kind in ("failed", "slow", "missing"):
            passes_there = theirs.get(name.partition("#")[0], [""])[0] == "passed"
            if not passes_there or _needs_internal(outcome):
                kind = "inapplicable"
            elif kind != "missing":
                full_name = f"{file}::{name}"
                kind = "excluded" if full_name.startswith(tuple(exclusions)) else "failed"
        elif kind == "skipped":
            kind = "inapplicable"
        if kind == "failed":
            comparison.failures[name] = outcome
        comparison.counts[kind] += 1
        comparison.counts["applicable"] += kind in ("passed", "excluded", "failed")
    return comparison


def by_directory(comparisons: list[Comparison]) -> dict[str, collections.Counter]:
    """Adds up the counts by directory, and all of them."""
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for comparison in comparisons:
        counts[comparison.file.rpartition("/")[0]].update(comparison.counts)
    counts = {name: count for name, count in sorted(counts.items()) if count["applicable"]}
    total = sum((c.counts for c in comparisons), collections.Counter())
    return counts | {"all": total}


def table(comparisons: list[Comparison]) -> str:
    """Formats the counts as a table in Markdown."""
    lines = [
        f"| directory | {' | '.join(COLUMNS)} | pass rate |",
        f"| --- |{' ---: |' * (len(COLUMNS) + 1)}",
    ]
    for directory, counts in by_directory(comparisons).items():
        share = f"{counts['passed'] / counts['applicable']:.1%}" if counts["applicable"] else ""
        cells = [directory, *(str(counts[column]) for column in COLUMNS), share]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def failures(comparisons: list[Comparison]) -> str:
    """Lists the failures, and the files that did not run to their end."""
    lines = []
    for comparison in comparisons:
        lines += [f"{comparison.file}: {note}" for note in comparison.notes]
        for name, (_, error, message, place, *_) in comparison.failures.items():
            first = " ".join(message.split())[:200]
            lines.append(f"{comparison.file}::{name}: {error}: {first} ({place.split(' < ')[0]})")
    return "\n".join(lines)


def page(text: str, comparisons: list[Comparison], version: str) -> str:
    """Returns the page `text` with a new section between its two marks, or at its end."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    count = sum(bool(comparison.counts or comparison.notes) for comparison in comparisons)
    introduction = SECTION.format(count=count, total=len(comparisons), version=version)
    new_section = f"{START}\n\n{introduction}\n{table(comparisons)}\n\n{END}"
    return f"{before.rstrip()}\n\n{new_section}{after or chr(10)}"


def section(text: str) -> str:
    """Returns the section of the page `text` with its marks; an empty string without it."""
    _, start, rest = text.partition(START)
    inner, end, _ = rest.partition(END)
    return f"\n{start}{inner}{end}\n" if start else ""
