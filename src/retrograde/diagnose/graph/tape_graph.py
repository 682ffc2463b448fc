"""`tape.graph()`: the computation graph from sources to a target, with calls grouped by line."""

from __future__ import annotations

import pathlib
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from retrograde.core.tape_arguments import flatten_arguments
from retrograde.derivatives.checkpointing import owner_of
from retrograde.diagnose.calls import RecordedCall, calls_of, entries_of
from retrograde.diagnose.graph import drawing
from retrograde.diagnose.rendering import format_bytes, format_location, format_spec
from retrograde.values.arguments import brief
from retrograde.values.source_location import SourceLocation

_MAX_BOXES = 60  # more boxes are grouped by function
GROUPINGS = ("call", "line", "function")


def graph(tape: Any, target: Any, sources: Any = None, by: str | None = None) -> Graph:
    """Returns the computation graph from `sources` (default: all watched) to `target`.

    A box contains the calls of one line (`by="line"`), of one function (`by="function"`) or a
    single call (`by="call"`). In Keras models it contains the calls of one layer. The default is
    the line if the tape stores lines, and the function if there were too many boxes. Thick arrows
    stand for large tensors. Notebooks show the graph. `save("graph.svg")` or `save("graph.dot")`
    writes it to a file; the attributes `svg` and `dot` are the text.

    >>> x = tf.Variable([1.0, 2.0], name="x")
    >>> with tf.GradientTape() as tape:
    ...     y = tf.reduce_sum(tf.exp(x) * 2.0)
    >>> print(tape.graph(y))
    <Graph with 4 boxes: 3 calls, 1 target>
    """
    if by is not None and by not in GROUPINGS:
        raise ValueError(f"graph: expected `by` to be one of {GROUPINGS}. Received: {brief(by)}.")
    calls = calls_of(entries_of(tape, "graph"))
    targets, _ = flatten_arguments(target, "target")
    leaves = [] if sources is None else flatten_arguments(sources, "source")[0]
    return _Builder(tape, calls, targets, leaves).build(by)


@dataclass
class Box:
    """A box of the graph.

    `kind` is "variable", "source", "calls", "unused", "escape" or "target". "unused" calls were
    recorded but do not lead to the target. At an "escape", a value was converted to Python or
    NumPy, or assigned to a variable. `rows` are the lines of text; the first one is the title.
    """

    kind: str
    rows: list[str]
    location: SourceLocation | None = None


@dataclass
class Graph:
    """A computation graph: boxes by key, and arrows with the bytes of their tensors."""

    boxes: dict[Hashable, Box] = field(default_factory=dict)
    arrows: dict[tuple[Hashable, Hashable], int] = field(default_factory=dict)

    @property
    def svg(self) -> str:
        """The graph as SVG."""
        return drawing.svg(self.boxes, self.arrows)

    @property
    def dot(self) -> str:
        """The graph in the DOT language of Graphviz."""
        return drawing.dot(self.boxes, self.arrows)

    def save(self, path: Any) -> None:
        """Writes the graph to a file with the suffix `.svg` or `.dot`."""
        path = pathlib.Path(path)
        if path.suffix not in (".svg", ".dot"):
            raise ValueError(f"graph: expected a path that ends in .svg or .dot. Received: {path}.")
        path.write_text(self.svg if path.suffix == ".svg" else self.dot, encoding="utf-8")

    def _repr_html_(self) -> str:
        return drawing.svg(self.boxes, self.arrows, inline=True)

    def __str__(self) -> str:
        kinds = Counter(box.kind for box in self.boxes.values())
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        return f"<Graph with {len(self.boxes)} boxes: {counts}>"


class _Builder:
    """Groups calls into boxes."""

    def __init__(self, tape: Any, calls: list[RecordedCall], targets: list, sources: list) -> None:
        self._tape = tape
        self._targets = targets
        self._locations = tape._locations or {}
        self._roots = {x._id for x in sources} or tape._roots
        reached = set(self._roots)
        self._calls = []
        for call in calls:
            if not reached.isdisjoint(call.inputs):
                reached.update(call.outputs)
                self._calls.append(call)
        needed = {x._id for x in targets}
        self._on_path = set()
        for call in reversed(self._calls):
            if not needed.isdisjoint(call.outputs):
                needed.update(call.inputs)
                self._on_path.add(call.number)
        self._known = _known_arrays(calls, targets, [*tape._variables.values(), *sources])

    def build(self, by: str | None) -> Graph:
        """Returns the graph."""
        groups = self._group_calls(by)
        box_of = {i: key for key, group in groups.items() for c in group for i in c.outputs}
        graph = Graph()
        uses = self._uses(groups)
        for key, users in uses.items():
            if len(users) > 1 or key not in self._tape._variables:
                kind = "variable" if key in self._tape._variables else "source"
                graph.boxes["root", key] = Box(kind, [self._name(key), *self._spec_rows(key)])
        for key, group in groups.items():
            variables = [
                k for k, users in uses.items() if users == {key} and k in self._tape._variables
            ]
            graph.boxes[key] = self._box(group, variables)
            for call in group:
                for i in call.inputs:
                    start = box_of.get(i, ("root", i))
                    if start in graph.boxes and start != key:
                        self._add_arrow(graph, start, key, i)
        self._add_escapes(graph, box_of)
        for number, x in enumerate(self._targets):
            end = ("target", number)
            graph.boxes[end] = Box("target", ["target", *self._spec_rows(x._id)])
            start = box_of.get(x._id, ("root", x._id))
            if start in graph.boxes:
                self._add_arrow(graph, start, end, x._id)
        return graph

    def _add_escapes(self, graph: Graph, box_of: dict[int, Hashable]) -> None:
        """Adds a box for each location where values leave the tape."""
        notes = self._tape._notes
        seen = set()
        for escape in () if notes is None else notes.escapes:
            start = box_of.get(escape.tensor)
            if start is None or (start, escape.location) in seen:
                continue
            seen.add((start, escape.location))
            rows = [f"leaves the tape: {escape.how}"]
            if escape.location is not None:
                rows = [escape.location.text, format_location(escape.location), *rows]
            end = ("escape", len(seen))
            graph.boxes[end] = Box("escape", rows, escape.location)
            self._add_arrow(graph, start, end, escape.tensor)

    def _add_arrow(self, graph: Graph, start: Hashable, end: Hashable, key: int) -> None:
        array = self._known.get(key)
        graph.arrows.setdefault((start, end), 0)
        if array is not None:
            size = _nbytes(array)
            graph.arrows[start, end] = max(graph.arrows[start, end], size)

    # Groups of calls

    def _group_calls(self, by: str | None) -> dict[int, list[RecordedCall]]:
        """Returns groups of calls by the number of their first call.

        A group contains consecutive calls, so the graph is acyclic. Calls that lead to the target
        are not grouped with calls that do not.
        """
        if by is not None:
            return self._group_consecutive(_KEYS[by])
        if not self._locations:
            return self._group_consecutive(_KEYS["call"])
        groups = self._group_consecutive(_KEYS["line"])
        return groups if len(groups) <= _MAX_BOXES else self._group_consecutive(_KEYS["function"])

    def _group_consecutive(self, key_of: Callable) -> dict[int, list[RecordedCall]]:
        groups: dict[int, list[RecordedCall]] = {}
        last: Any = None
        line = 0
        for call in self._calls:
            location = self._locations.get(call.outputs[0])
            key = (key_of(call, location), call.number in self._on_path)
            now = 0 if location is None or location.layer else location.line
            if key != last or now < line:
                groups[call.number] = current = []
            current.append(call)
            last, line = key, now
        return groups

    def _uses(self, groups: dict[int, list[RecordedCall]]) -> dict[int, set[int]]:
        """Returns the groups that use each source, in order."""
        uses: dict[int, set[int]] = {}
        for key, group in groups.items():
            for call in group:
                for i in call.inputs:
                    if i in self._roots:
                        uses.setdefault(i, set()).add(key)
        return uses

    # Text

    def _box(self, group: list[RecordedCall], variables: list[int]) -> Box:
        location = self._locations.get(group[0].outputs[0])
        names = [call.name for call in group]
        rows = []
        if location is not None:
            same_line = len({str(self._locations.get(c.outputs[0])) for c in group}) == 1
            rows.append(
                location.layer or (location.text if same_line else f"{location.function}()")
            )
            rows.append(format_location(location))
        rows.append(", ".join(_count_names(names)))
        rows += [f"{self._name(key)}  {' '.join(self._spec_rows(key))}" for key in variables]
        results = self._spec_rows(group[-1].outputs[0])
        saved = sum({id(o): o.nbytes for o in _owners(group)}.values())
        results += [f"saves {format_bytes(saved)}"] if saved else []
        rows += [" · ".join(results)] if results else []
        kind = "calls" if group[0].number in self._on_path else "unused"
        return Box(kind, rows, location)

    def _name(self, key: int) -> str:
        if key in self._tape._variables:
            return self._tape._variables[key].name.removesuffix(":0")
        return "watched tensor"

    def _spec_rows(self, key: int) -> list[str]:
        array = self._known.get(key)
        return [] if array is None else [format_spec(array)]


_KEYS: dict[str, Callable] = {
    "call": lambda call, _location: call.number,
    "line": lambda call, location: (
        call.number if location is None else location.layer or str(location)
    ),
    "function": lambda call, location: (
        call.number if location is None else location.layer or location.code
    ),
}


def _known_arrays(calls: list[RecordedCall], *holders: list) -> dict[int, Any]:
    """Returns arrays, or their shapes and dtypes, by id."""
    arrays: dict[int, Any] = {}
    for call in calls:
        for key, value in (*call.specs.items(), *call.saved.items()):
            arrays[key] = value._array
    for holder in (x for part in holders for x in part):
        arrays[holder._id] = holder._array
    return arrays


def _nbytes(array: Any) -> int:
    size = array.dtype.itemsize
    for dimension in array.shape:
        size *= dimension
    return size


def _owners(group: list[RecordedCall]) -> list:
    outputs = {i for call in group for i in call.outputs}
    return [
        owner_of(tensor._array)
        for call in group
        for key, tensor in call.saved.items()
        if key in outputs
    ]


def _count_names(names: list[str]) -> list[str]:
    """Returns the distinct names in order, with their counts if greater than one."""
    counts = Counter(names)
    return [name if count == 1 else f"{count} x {name}" for name, count in counts.items()]
