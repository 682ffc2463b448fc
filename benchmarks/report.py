"""From measured values to tables in Markdown; no measuring here."""

import statistics
from dataclasses import dataclass, field

from benchmarks.peers import BACKENDS, COMPILERS, PEERS
from benchmarks.workloads import COMPILED, DESCRIPTIONS, KERAS, KERAS_LOOPS

OURS = "retrograde"
TOLERANCE = 1e-3
MISSING = "-"
UNSTEADY = 1.5


@dataclass
class Result:
    """One row: values by peer, in seconds (`unit` "s") or megabytes ("MB").

    `turns` has all times of which a value is the best; memory and imports have none.
    A checksum is a list of pairs, the sum of an array and the sum of its magnitudes.
    `failures` has the reason for each peer that gave no value.
    """

    workload: str
    unit: str
    values: dict[str, float] = field(default_factory=dict)
    turns: dict[str, list[float]] = field(default_factory=dict)
    checksums: dict[str, list] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def ratio(self, above, below):
        """`above / below`, or None if one of them is missing."""
        usable = {name: value for name, value in self.values.items() if self._is_usable(name)}
        if above not in usable or not usable.get(below):
            return None
        return usable[above] / usable[below]

    def value_text(self, name):
        return format_value(self.values[name], self.unit) if self._is_usable(name) else MISSING

    def _is_usable(self, name):
        return name in self.values and name not in self.failures


def format_value(value, unit):
    """Three digits and a unit: 1.23 ms, 45.6 us, 789 MB."""
    if unit != "s":
        return f"{value:.0f} {unit}"
    for name, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 0.9995:
            return f"{three_digits(value * factor)} {name}"
    return f"{three_digits(value * 1e9)} ns"


def three_digits(number):
    """Three significant digits, but never fewer than those before the point."""
    if number < 9.995:
        return f"{number:.2f}"
    return f"{number:.1f}" if number < 99.95 else f"{number:.0f}"


def format_ratio(ratio):
    return MISSING if ratio is None else three_digits(ratio)


def markdown_table(header, rows, left=1):
    """A table whose columns line up in the terminal as well; the first `left` are flush left."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(3, *map(len, column)) for column in columns]
    lines = [_line(cells, widths, left) for cells in (header, *rows)]
    return "\n".join([lines[0], _rule(widths, left), *lines[1:]])


def _line(cells, widths, left):
    padded = [cell.ljust(width) for cell, width in zip(cells[:left], widths[:left], strict=True)]
    padded += [cell.rjust(width) for cell, width in zip(cells[left:], widths[left:], strict=True)]
    return f"| {' | '.join(padded)} |"


def _rule(widths, left):
    dashes = ["-" * width for width in widths[:left]]
    dashes += ["-" * (width - 1) + ":" for width in widths[left:]]
    return f"| {' | '.join(dashes)} |"


def value_table(results, peers):
    """A row for each result: our value, then each peer's value and its ratio to ours."""
    others = [name for name in peers if name != OURS]
    header = ["workload", OURS]
    for name in others:
        header += [name, "ratio"]
    return markdown_table(header, [_value_row(result, others) for result in results])


def _value_row(result, others):
    row = [result.workload, result.value_text(OURS)]
    for name in others:
        row += [result.value_text(name), format_ratio(result.ratio(name, OURS))]
    return row


def ways_table(heading, results, peers):
    """A row for each workload: the value of each library and way."""
    rows = [[result.workload, *map(result.value_text, peers)] for result in results]
    return markdown_table([heading, *peers], rows)


def goal_table(goals, results):
    """A row for each goal whose workload is among the results."""
    by_name = {result.workload: result for result in results}
    rows = [_goal_row(goal, by_name[goal.workload]) for goal in goals if goal.workload in by_name]
    return markdown_table(["workload", "goal", "measured", "met"], rows, left=2)


def _goal_row(goal, result):
    measured = goal.measured(result)
    if measured is None:
        return [goal.workload, str(goal), MISSING, "not measured"]
    verdict = "met" if goal.is_met(measured) else "not met"
    return [goal.workload, str(goal), format_ratio(measured), verdict]


def checksums_agree(one, two, tolerance=TOLERANCE):
    """Whether all sums differ by at most `tolerance` of the sum of magnitudes."""
    return len(one) == len(two) and all(
        _close(a, b, tolerance * max(scale_a, scale_b))
        for (a, scale_a), (b, scale_b) in zip(one, two, strict=True)
    )


def _close(a, b, allowed):
    return abs(a - b) <= allowed  # false for NaN


def differing(checksums):
    """The peer that serves as reference, and those whose checksum differs from it.

    The reference is the first peer other than retrograde; without one, nothing is compared.
    """
    others = [name for name in checksums if not name.startswith((OURS, "keras_"))]
    if not others:
        return None, []
    reference = others[0]
    expected = checksums[reference]
    return reference, [n for n, c in checksums.items() if not checksums_agree(c, expected)]


def disagreements(results):
    """A line for each result on which the peers differ."""
    lines = []
    for result in results:
        reference, names = differing(result.checksums)
        if names:
            lines.append(f"{result.workload}: {', '.join(names)} differs from {reference}.")
    return lines


def agreement_text(results):
    """Whether the peers computed the same, in words and as a list of differences."""
    compared = [result.workload for result in results if len(result.checksums) > 1]
    if not compared:
        return "No results were compared."
    lines = disagreements(results)
    if not lines:
        return (
            f"All peers computed the same results in {', '.join(compared)} "
            f"(relative tolerance {TOLERANCE:g})."
        )
    return "\n".join(["**The results differ:**", "", *(f"- {line}" for line in lines)])


def failure_lines(unavailable, results):
    """The reasons behind the dashes, whole peers first."""
    lines = [f"- {name}: {reason}" for name, reason in unavailable.items()]
    for result in results:
        lines += [
            f"- {result.workload}, {name}: {reason}" for name, reason in result.failures.items()
        ]
    return lines


def unsteady_lines(results):
    """The values whose median turn took far longer than the best: something else was running."""
    lines = []
    for result in results:
        for name, turns in result.turns.items():
            median = statistics.median(turns)
            if median > UNSTEADY * min(turns):
                best, usual = (format_value(v, result.unit) for v in (min(turns), median))
                lines.append(f"- {result.workload}, {name}: best turn {best}, median {usual}")
    return lines


def unsteady_text(results):
    lines = unsteady_lines(results)
    if not lines:
        return ""
    return "\n".join(["Unsteady values, to be taken with caution:", "", *lines])


def relative_line(result, reference):
    """All values of a result as multiples of the one of `reference`; None without it."""
    if result.ratio(reference, reference) is None:
        return None
    parts = [
        f"{name} {format_ratio(result.ratio(name, reference))}"
        for name in result.values
        if name != reference and name not in result.failures
    ]
    own = result.value_text(reference)
    return f"{result.workload}, relative to {reference} ({own}): {', '.join(parts)}."


@dataclass
class Report:
    """Everything a run found out; `text` is what the terminal shows."""

    peers: list[str]
    results: list[Result]
    unavailable: dict[str, str]
    versions: dict[str, dict[str, str]]
    goals: tuple

    def text(self):
        parts = [
            *self._values(),
            *self._relative_lines(),
            agreement_text(self.results),
            unsteady_text(self.results),
            "\n".join(failure_lines(self.unavailable, self.results)),
            goal_table(self.goals, self.results),
        ]
        return "\n\n".join(part for part in parts if part)

    def _values(self):
        groups = (("compiled", COMPILED, COMPILERS), ("Keras", KERAS | KERAS_LOOPS, BACKENDS))
        with_ways = COMPILED | KERAS | KERAS_LOOPS
        others = [result for result in self.results if result.workload not in with_ways]
        if others:
            yield value_table(others, self._among(PEERS))
            yield "Ratio: the peer's value divided by retrograde's; above 1 retrograde is better."
        for heading, workloads, peers in groups:
            results = [result for result in self.results if result.workload in workloads]
            if results:
                yield ways_table(heading, results, self._among(peers))

    def _among(self, peers):
        return [peer.name for peer in peers if peer.name in self.peers]

    def _relative_lines(self):
        references = {"memory_50_layers": "torch", "import": "numpy"}
        relevant = [result for result in self.results if result.workload in references]
        return [relative_line(result, references[result.workload]) for result in relevant]

    def version_table(self):
        rows = [[name, v["version"], v["numpy"]] for name, v in self.versions.items()]
        return markdown_table(["peer", "version", "NumPy"], rows)


def page(report, machine, date, rounds):
    """The text of docs/benchmarks.md. `machine` maps headings to facts."""
    workloads = [[f"`{r.workload}`", DESCRIPTIONS[r.workload]] for r in report.results]
    parts = [
        "# Benchmarks",
        "Written by `python benchmarks/run.py --write`; `make bench` prints the same tables.",
        markdown_table(["workload", "what it does"], workloads, left=2),
        "## Values",
        report.text(),
        "## How it was measured",
        "Each peer runs in an environment and a process of its own, with its default number of\n"
        "threads. The peers take turns; a turn is a few short loops over the step, and the best\n"
        f"loop of {rounds} turns counts. All arrays are float32, JAX runs without `jit` but where\n"
        "the table says so, and Python's garbage collector stays on. Memory is the growth of the\n"
        "peak resident size of a fresh process after the import. Import times are medians over\n"
        "fresh interpreters.",
        report.version_table(),
        "\n".join(f"- {name}: {fact}" for name, fact in machine.items()),
        f"Measured on {date}.",
    ]
    return "\n\n".join(parts) + "\n"
