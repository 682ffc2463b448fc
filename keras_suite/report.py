"""Counts the outcomes of Keras's tests by directory."""

from __future__ import annotations

import collections
import json
from dataclasses import dataclass
from pathlib import Path

START, END = "<!-- counts of Keras's tests -->", "<!-- end of the counts -->"
OUTCOMES = ("passed", "skipped", "excluded", "failed")


@dataclass
class Results:
    """The outcome of each test by its name, with the reason if it did not pass."""

    path: Path
    outcomes: dict[str, list[str]]

    @classmethod
    def read(cls, path: Path) -> Results:
        """Reads a results file, which may be missing. The last line of each test wins."""
        lines = path.read_text().splitlines() if path.exists() else ()
        return cls(path, {name: rest for name, *rest in map(json.loads, lines)})

    def merge(self, newer: Results) -> Results:
        """Returns these results merged with a newer run, which replaces entire files."""
        files = {_file(name) for name in newer.outcomes}
        unchanged = {name: o for name, o in self.outcomes.items() if _file(name) not in files}
        return Results(self.path, unchanged | newer.outcomes)

    def write(self) -> None:
        """Writes the results to their file."""
        lines = [json.dumps([name, *rest]) for name, rest in self.outcomes.items()]
        self.path.write_text("\n".join(lines) + "\n")

    def passed(self) -> set[str]:
        """Returns the names of the tests that passed."""
        return {name for name, (outcome, _) in self.outcomes.items() if outcome == "passed"}

    def counts(self) -> dict[str, collections.Counter]:
        """Counts the outcomes by directory."""
        counts = collections.defaultdict(collections.Counter)
        for name, (outcome, _) in self.outcomes.items():
            counts[name.partition("/")[0]][outcome] += 1
        return dict(sorted(counts.items()))

    def table(self) -> str:
        """Formats the counts as plain text."""
        lines = [f"{'directory':<16}" + "".join(f"{outcome:>10}" for outcome in OUTCOMES)]
        total: collections.Counter = collections.Counter()
        for directory, counts in self.counts().items():
            total += counts
            lines.append(f"{directory:<16}" + "".join(f"{counts[o]:>10}" for o in OUTCOMES))
        lines.append(f"{'all':<16}" + "".join(f"{total[o]:>10}" for o in OUTCOMES))
        return "\n".join(lines)


def _file(name: str) -> str:
    return name.partition("::")[0]


def page(text: str, directory: Path) -> str:
    """Returns the page `text` with new counts between its two marks."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    ours, torch = (Results.read(directory / f"{name}.jsonl") for name in ("retrograde", "torch"))
    return f"{before}{START}\n\n{_comparison(ours, torch)}\n\n{END}{after}"


def _comparison(ours: Results, torch: Results) -> str:
    """Formats both results as a table, with how many tests that pass on PyTorch also pass here."""
    lines = [
        "| directory | passed | skipped | excluded | failed | pass on PyTorch | and also here |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for directory, counts in [*ours.counts().items(), ("all", _total(ours))]:
        passed = {n for n in torch.passed() if directory == "all" or n.startswith(f"{directory}/")}
        count = len(passed & ours.passed())
        also_here = f"{count} ({count / len(passed):.1%})" if passed else ""
        cells = [directory, *(str(counts[o]) for o in OUTCOMES), str(len(passed)), also_here]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _total(results: Results) -> collections.Counter:
    return sum(results.counts().values(), collections.Counter())
