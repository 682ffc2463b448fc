"""`tape.graph()`: a picture of the way from sources to a target, calls grouped by line."""

from __future__ import annotations

import pathlib
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from retrograde.core.tape_arguments import flat
from retrograde.derivatives.checkpointing import owner_of
from retrograde.diagnose.calls import RecordedCall, calls_of, entries_of
from retrograde.diagnose.graph import drawing
from retrograde.diagnose.rendering import bytes_in_words, described, shown
from retrograde.values.arguments import brief
from retrograde.values.source_location import Place

_MANY = 60  # boxes above which lines are put together by the function they are in
WAYS = ("call", "line", "function")


def graph(tape: Any, target: Any, sources: Any = None, by: str | None = None) -> Graph:
    """A picture of the way from `sources`, or all that is watched, to `target`.

    A box stands for the calls of one line (`by="line"`), of one function (`by="function"`) or for
    a single one (`by="call"`), and in Keras models of one layer. By default it is the line, if the
    tape keeps lines, or the function if these were too many. Arrows are as thick as what goes along
    them is large. Notebooks show the picture; `save("way.svg")` or `save("way.dot")` writes it to a
    file, `svg` and `dot` are its text.

    >>> x = tf.Variable([1.0, 2.0], name="x")
    >>> with tf.GradientTape() as tape:
    ...     y = tf.reduce_sum(tf.exp(x) * 2.0)
    >>> print(tape.graph(y))
    <a picture of 4 boxes: 3 calls, 1 target>
    """
    if by is not None and by not in WAYS:
        raise ValueError(f"graph: expected `by` to be one of {WAYS}. Received: {brief(by)}.")
    calls = calls_of(entries_of(tape, "graph"))
    targets, _ = flat(target, "target")
    held = [] if sources is None else flat(sources, "source")[0]
    return _Builder(tape, calls, targets, held).build(by)


@dataclass
class Box:
    """A box of the picture: a "variable", "source", "calls", a "dead end", an "exit" or a "target".

    `rows` are the lines in it, the first of them its title. Calls at a dead end were recorded and
    do not lead to the target; at an exit a value left for Python or NumPy, or into a variable.
    """

    kind: str
    rows: list[str]
    place: Place | None = None


@dataclass
class Graph:
    """A picture of a tape: boxes by their keys, and the bytes that go along each arrow."""

    boxes: dict[Hashable, Box] = field(default_factory=dict)
    arrows: dict[tuple[Hashable, Hashable], int] = field(default_factory=dict)

    @property
    def svg(self) -> str:
        """The picture."""
        return drawing.svg(self.boxes, self.arrows)

    @property
    def dot(self) -> str:
        """The same in the language of Graphviz."""
        return drawing.dot(self.boxes, self.arrows)

    def save(self, path: Any) -> None:
        """Writes the picture to a file: SVG, or DOT if it ends so."""
        path = pathlib.Path(path)
        if path.suffix not in (".svg", ".dot"):
            raise ValueError(f"graph: expected a path that ends in .svg or .dot. Received: {path}.")
        path.write_text(self.svg if path.suffix == ".svg" else self.dot, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        kinds = Counter(box.kind for box in self.boxes.values())
        words = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        return f"<a picture of {len(self.boxes)} boxes: {words}>"


class _Builder:
    """Puts calls into boxes."""

    def __init__(self, tape: Any, calls: list[RecordedCall], targets: list, held: list) -> None:
        self._tape = tape
        self._targets = targets
        self._places = tape._places or {}
        self._sources = {x._id: x for x in held}
        wanted = set(self._sources) or tape._roots
        self._roots = wanted
        ahead = set(wanted)
        self._calls = []
        for call in calls:
            if not ahead.isdisjoint(call.inputs):
                ahead.update(call.outputs)
                self._calls.append(call)
        behind = {x._id for x in targets}
        self._on_the_way = set()
        for call in reversed(self._calls):
            if not behind.isdisjoint(call.outputs):
                behind.update(call.inputs)
                self._on_the_way.add(call.number)
        self._known = _known(calls, targets, [*tape._variables.values(), *held])

    def build(self, by: str | None) -> Graph:
        """The picture."""
        groups = self._grouped(by)
        box_of = {i: key for key, group in groups.items() for c in group for i in c.outputs}
        picture = Graph()
        uses = self._uses(groups)
        for key, users in uses.items():
            if len(users) > 1 or key not in self._tape._variables:
                kind = "variable" if key in self._tape._variables else "source"
                picture.boxes["root", key] = Box(kind, [self._name(key), *self._described(key)])
        for key, group in groups.items():
            own = [k for k, users in uses.items() if users == {key} and k in self._tape._variables]
            picture.boxes[key] = self._box(group, own)
            for call in group:
                for i in call.inputs:
                    start = box_of.get(i, ("root", i))
                    if start in picture.boxes and start != key:
                        self._arrow(picture, start, key, i)
        self._add_exits(picture, box_of)
        for number, x in enumerate(self._targets):
            end = ("target", number)
            picture.boxes[end] = Box("target", ["target", *self._described(x._id)])
            start = box_of.get(x._id, ("root", x._id))
            if start in picture.boxes:
                self._arrow(picture, start, end, x._id)
        return picture

    def _add_exits(self, picture: Graph, box_of: dict[int, Hashable]) -> None:
        """Where values left, each place once."""
        notes = self._tape._notes
        seen = set()
        for way_out in () if notes is None else notes.escapes:
            start = box_of.get(way_out.tensor)
            if start is None or (start, way_out.place) in seen:
                continue
            seen.add((start, way_out.place))
            rows = [f"leaves by {way_out.how}"]
            if way_out.place is not None:
                rows = [way_out.place.text, shown(way_out.place), *rows]
            end = ("exit", len(seen))
            picture.boxes[end] = Box("exit", rows, way_out.place)
            self._arrow(picture, start, end, way_out.tensor)

    def _arrow(self, picture: Graph, start: Hashable, end: Hashable, key: int) -> None:
        array = self._known.get(key)
        picture.arrows.setdefault((start, end), 0)
        if array is not None:
            size = _nbytes(array)
            picture.arrows[start, end] = max(picture.arrows[start, end], size)

    # Groups of calls

    def _grouped(self, by: str | None) -> dict[int, list[RecordedCall]]:
        """Calls by the number of the first of their group: each group is a run of the recording.

        So arrows never lead back. What leads to the target and what does not are kept apart.
        """
        if by is not None:
            return self._runs(_KEYS[by])
        if not self._places:
            return self._runs(_KEYS["call"])
        groups = self._runs(_KEYS["line"])
        return groups if len(groups) <= _MANY else self._runs(_KEYS["function"])

    def _runs(self, key_of: Callable) -> dict[int, list[RecordedCall]]:
        groups: dict[int, list[RecordedCall]] = {}
        last: Any = None
        line = 0
        for call in self._calls:
            place = self._places.get(call.outputs[0])
            key = (key_of(call, place), call.number in self._on_the_way)
            now = 0 if place is None or place.layer else place.line
            if key != last or now < line:
                groups[call.number] = current = []
            current.append(call)
            last, line = key, now
        return groups

    def _uses(self, groups: dict[int, list[RecordedCall]]) -> dict[int, set[int]]:
        """The groups that each root is used by, in order."""
        uses: dict[int, set[int]] = {}
        for key, group in groups.items():
            for call in group:
                for i in call.inputs:
                    if i in self._roots:
                        uses.setdefault(i, set()).add(key)
        return uses

    # Words

    def _box(self, group: list[RecordedCall], variables: list[int]) -> Box:
        place = self._places.get(group[0].outputs[0])
        names = [call.name for call in group]
        rows = []
        if place is not None:
            same = len({str(self._places.get(c.outputs[0])) for c in group}) == 1
            rows.append(place.layer or (place.text if same else f"{place.function}()"))
            rows.append(shown(place))
        rows.append(", ".join(_counted(names)))
        rows += [f"{self._name(key)}  {' '.join(self._described(key))}" for key in variables]
        results = self._described(group[-1].outputs[0])
        kept = sum({id(o): o.nbytes for o in _owners(group)}.values())
        results += [f"keeps {bytes_in_words(kept)}"] if kept else []
        rows += [" · ".join(results)] if results else []
        kind = "calls" if group[0].number in self._on_the_way else "dead end"
        return Box(kind, rows, place)

    def _name(self, key: int) -> str:
        if key in self._tape._variables:
            return self._tape._variables[key].name.removesuffix(":0")
        return "watched tensor"

    def _described(self, key: int) -> list[str]:
        array = self._known.get(key)
        return [] if array is None else [described(array)]


_KEYS: dict[str, Callable] = {
    "call": lambda call, _place: call.number,
    "line": lambda call, place: call.number if place is None else place.layer or str(place),
    "function": lambda call, place: call.number if place is None else place.layer or place.code,
}


def _known(calls: list[RecordedCall], *holders: list) -> dict[int, Any]:
    """The arrays of values, or their shapes and dtypes, by id."""
    found: dict[int, Any] = {}
    for call in calls:
        for key, value in (*call.specs.items(), *call.saved.items()):
            found[key] = value._array
    for holder in (x for part in holders for x in part):
        found[holder._id] = holder._array
    return found


def _nbytes(array: Any) -> int:
    size = array.dtype.itemsize
    for dimension in array.shape:
        size *= dimension
    return size


def _owners(group: list[RecordedCall]) -> list:
    made = {i for call in group for i in call.outputs}
    return [
        owner_of(tensor._array)
        for call in group
        for key, tensor in call.saved.items()
        if key in made
    ]


def _counted(names: list[str]) -> list[str]:
    """Names in order of their first appearance, with how often if more than once."""
    counts = Counter(names)
    return [name if count == 1 else f"{count} x {name}" for name, count in counts.items()]
