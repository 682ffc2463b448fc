"""How Keras's tests ended, counted by folder."""

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
        """What a file holds, the last line about a test; nothing, if it is not there."""
        lines = path.read_text().splitlines() if path.exists() else ()
        return cls(path, {name: rest for name, *rest in map(json.loads, lines)})

    def updated(self, newer: Results) -> Results:
        """These results with those of a newer run in their place, file by file."""
        files = {_file(name) for name in newer.outcomes}
        kept = {name: o for name, o in self.outcomes.items() if _file(name) not in files}
        return Results(self.path, kept | newer.outcomes)

    def write(self) -> None:
        """Keeps them."""
        lines = [json.dumps([name, *rest]) for name, rest in self.outcomes.items()]
        self.path.write_text("\n".join(lines) + "\n")

    def passed(self) -> set[str]:
        """The names of the tests that passed."""
        return {name for name, (outcome, _) in self.outcomes.items() if outcome == "passed"}

    def counts(self) -> dict[str, collections.Counter]:
        """How often each outcome was met, by folder."""
        counts = collections.defaultdict(collections.Counter)
        for name, (outcome, _) in self.outcomes.items():
            counts[name.partition("/")[0]][outcome] += 1
        return dict(sorted(counts.items()))

    def table(self) -> str:
        """The counts as plain text."""
        lines = [f"{'folder':<16}" + "".join(f"{outcome:>10}" for outcome in OUTCOMES)]
        total: collections.Counter = collections.Counter()
        for folder, counts in self.counts().items():
            total += counts
            lines.append(f"{folder:<16}" + "".join(f"{counts[o]:>10}" for o in OUTCOMES))
        lines.append(f"{'all':<16}" + "".join(f"{total[o]:>10}" for o in OUTCOMES))
        return "\n".join(lines)


def _file(name: str) -> str:
    return name.partition("::")[0]


def page(text: str, folder: Path) -> str:
    """The page `text` with the counts between its two marks."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    ours, torchs = (Results.read(folder / f"{b}.jsonl") for b in ("retrograde", "torch"))
    return f"{before}{START}\n\n{_comparison(ours, torchs)}\n\n{END}{after}"


def _comparison(ours: Results, torchs: Results) -> str:
    """A table of both, and of how many that pass on PyTorch pass here."""
    lines = [
        "| folder | passed | skipped | excluded | failed | pass on PyTorch | of these, here |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    here, there = ours.passed(), torchs.passed()
    for folder, counts in [*ours.counts().items(), ("all", _total(ours))]:
        wanted = {n for n in there if folder == "all" or n.startswith(f"{folder}/")}
        both = f"{len(wanted & here)} ({len(wanted & here) / len(wanted):.1%})" if wanted else ""
        cells = [folder, *(str(counts[o]) for o in OUTCOMES), str(len(wanted)), both]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _total(results: Results) -> collections.Counter:
    return sum(results.counts().values(), collections.Counter())
