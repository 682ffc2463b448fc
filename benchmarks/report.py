"""Formats measured values as Markdown tables."""

import re
import statistics
from dataclasses import dataclass, field

from benchmarks.peers import COMPILED_PEERS, KERAS_PEERS, MODEL_PEERS, PEERS
from benchmarks.workloads import (
    COMPILED,
    DESCRIPTIONS,
    KERAS,
    KERAS_LOOPS,
    MODEL_MEMORY,
    MODELS,
)

OURS = "retrograde"
TOLERANCE = 1e-3
MISSING = "-"
NOISY = 1.5


@dataclass
class Result:
    """One row of a table: values by peer, in seconds (`unit` "s") or megabytes ("MB").

    `rounds` has the times of all rounds; a value is their minimum. Memory and imports have none.
    A checksum is a list of pairs: the sum of an array and the sum of its absolute values.
    `failures` maps each peer without a value to the reason.
    """

    workload: str
    unit: str
    values: dict[str, float] = field(default_factory=dict)
    rounds: dict[str, list[float]] = field(default_factory=dict)
    checksums: dict[str, list] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def ratio(self, numerator, denominator):
        """Returns the ratio of the values of two peers, or None if one of them is missing."""
        usable = {name: value for name, value in self.values.items() if self._is_usable(name)}
        if numerator not in usable or not usable.get(denominator):
            return None
        return usable[numerator] / usable[denominator]

    def value_text(self, name):
        return format_value(self.values[name], self.unit) if self._is_usable(name) else MISSING

    def _is_usable(self, name):
        return name in self.values and name not in self.failures


def format_value(value, unit):
    """Formats a value with three digits and a unit: 1.23 ms, 45.6 us, 789 MB."""
    if unit != "s":
        return f"{value:.0f} {unit}"
    for name, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 0.9995:
            return f"{three_digits(value * factor)} {name}"
    return f"{three_digits(value * 1e9)} ns"


def three_digits(number):
    """Formats a number with three significant digits, or with all digits before the point."""
    if number < 9.995:
        return f"{number:.2f}"
    return f"{number:.1f}" if number < 99.95 else f"{number:.0f}"


def format_ratio(ratio):
    return MISSING if ratio is None else three_digits(ratio)


def markdown_table(header, rows, left=1):
    """Returns a table with aligned columns; the first `left` columns are left-aligned."""
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
    """Returns a row for each result: our value, then each peer's value and its ratio to ours."""
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


def mode_table(heading, results, peers):
    """Returns a row for each workload, with the value of each library in each mode."""
    rows = [[result.workload, *map(result.value_text, peers)] for result in results]
    return markdown_table([heading, *peers], rows)


def goal_table(goals, results):
    """Returns a row for each goal whose workload is among the results."""
    by_name = {result.workload: result for result in results}
    rows = [_goal_row(goal, by_name[goal.workload]) for goal in goals if goal.workload in by_name]
    return markdown_table(["workload", "goal", "measured", "met"], rows, left=2)


def _goal_row(goal, result):
    measured = goal.measurement(result)
    if measured is None:
        return [goal.workload, str(goal), MISSING, "not measured"]
    verdict = "met" if goal.is_met(measured) else "not met"
    return [goal.workload, str(goal), format_ratio(measured), verdict]


def checksums_agree(one, two, tolerance=TOLERANCE):
    """Returns whether all sums differ by at most `tolerance` times the sum of absolute values."""
    return len(one) == len(two) and all(
        _close(a, b, tolerance * max(scale_a, scale_b))
        for (a, scale_a), (b, scale_b) in zip(one, two, strict=True)
    )


def _close(a, b, tolerance):
    return abs(a - b) <= tolerance  # false for NaN


def find_mismatches(checksums):
    """Returns the reference peer, and the peers whose checksum differs from it.

    The reference is the first peer other than retrograde. Without one, nothing is compared.
    """
    others = [name for name in checksums if not name.startswith((OURS, "keras_"))]
    if not others:
        return None, []
    reference = others[0]
    expected = checksums[reference]
    return reference, [n for n, c in checksums.items() if not checksums_agree(c, expected)]


def disagreements(results):
    """Returns a line for each workload in which the results of the peers differ."""
    lines = []
    for result in results:
        reference, names = find_mismatches(result.checksums)
        if names:
            lines.append(f"{result.workload}: {', '.join(names)} differs from {reference}.")
    return lines


def agreement_text(results):
    """Describes whether all peers computed the same results, and lists the differences."""
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
    """Returns the reasons for missing values, unavailable peers first."""
    lines = [f"- {name}: {reason}" for name, reason in unavailable.items()]
    for result in results:
        lines += [
            f"- {result.workload}, {name}: {reason}" for name, reason in result.failures.items()
        ]
    return lines


def noisy_lines(results):
    """Lists the values whose median is far above their minimum, because of other processes."""
    lines = []
    for result in results:
        for name, rounds in result.rounds.items():
            median = statistics.median(rounds)
            if median > NOISY * min(rounds):
                best, middle = (format_value(v, result.unit) for v in (min(rounds), median))
                lines.append(f"- {result.workload}, {name}: best {best}, median {middle}")
    return lines


def noisy_text(results):
    lines = noisy_lines(results)
    if not lines:
        return ""
    return "\n".join(["Noisy measurements:", "", *lines])


def relative_line(result, reference):
    """Returns all values divided by the value of `reference`, or None if that is missing."""
    if result.ratio(reference, reference) is None:
        return None
    parts = [
        f"{name} {format_ratio(result.ratio(name, reference))}"
        for name in result.values
        if name != reference and name not in result.failures
    ]
    value = result.value_text(reference)
    return f"{result.workload}, relative to {reference} ({value}): {', '.join(parts)}."


@dataclass
class Report:
    """The results of a run; `text` formats them for the terminal."""

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
            noisy_text(self.results),
            "\n".join(failure_lines(self.unavailable, self.results)),
            goal_table(self.goals, self.results),
        ]
        return "\n\n".join(part for part in parts if part)

    def _values(self):
        groups = (
            ("compiled", COMPILED, COMPILED_PEERS),
            ("Keras", KERAS | KERAS_LOOPS, KERAS_PEERS),
            ("models", MODELS | MODEL_MEMORY, MODEL_PEERS),
        )
        with_modes = {name for _, workloads, _ in groups for name in workloads}
        others = [result for result in self.results if result.workload not in with_modes]
        if others:
            yield value_table(others, self._among(PEERS))
            yield "Ratio: the peer's value divided by retrograde's; above 1 retrograde is better."
        for heading, workloads, peers in groups:
            results = [result for result in self.results if result.workload in workloads]
            if results:
                yield mode_table(heading, results, self._among(peers))

    def _among(self, peers):
        return [peer.name for peer in peers if peer.name in self.peers]

    def _relative_lines(self):
        references = {"memory_50_layers": "torch", "import": "numpy"}
        relevant = [result for result in self.results if result.workload in references]
        return [relative_line(result, references[result.workload]) for result in relevant]

    def version_table(self):
        rows = [[name, v["version"], v["numpy"]] for name, v in self.versions.items()]
        return markdown_table(["peer", "version", "NumPy"], rows)


def section_of(text, heading):
    """Returns the section with this heading in a page, or an empty string."""
    match = re.search(rf"^{heading}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return match.group() if match else ""


def with_section(text, section):
    """Returns the page with a new version of a section, at its end."""
    heading = section.partition("\n")[0]
    return text.replace(section_of(text, heading), "").rstrip() + f"\n\n{section.rstrip()}\n"


def page(report, machine, date, rounds):
    """Returns the text of docs/benchmarks.md. `machine` maps headings to properties."""
    workloads = [[f"`{r.workload}`", DESCRIPTIONS[r.workload]] for r in report.results]
    parts = [
        "# Benchmarks",
        "`python benchmarks/run.py --write` writes this page; `make bench` prints the same tables.",
        markdown_table(["workload", "description"], workloads, left=2),
        "## Results",
        report.text(),
        "## Method",
        "Each library runs in its own environment and process, with its default number of\n"
        f"threads. There are {rounds} rounds over the libraries. In each round, every library\n"
        "runs a few short loops over the step, and the fastest loop of all rounds counts. All\n"
        "arrays are float32. JAX runs without `jit`, unless the table says otherwise. Python's\n"
        "garbage collector is enabled. Memory is the increase of the peak resident size of a\n"
        "new process after the import. Import times are medians over new interpreters.",
        report.version_table(),
        "\n".join(f"- {name}: {value}" for name, value in machine.items()),
        f"Measured on {date}.",
    ]
    return "\n\n".join(parts) + "\n"
