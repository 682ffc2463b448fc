"""Where to put the boxes of a graph: in layers, along the arrows, with few crossings.

The usual four steps: a layer for each box, stand-ins where an arrow crosses layers, an order within
each layer by the mean place of the neighbours, then places that keep the order.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import pairwise
from typing import NamedTuple

GAP = 28.0  # between boxes of one layer
LAYER_GAP = 44.0  # between layers
_STAND_IN = 6.0  # the width of a place where an arrow passes
_SWEEPS = 12


class Placed(NamedTuple):
    """The corner and size of each box, the points of each arrow, and the size of the whole."""

    boxes: dict[Hashable, tuple[float, float, float, float]]
    arrows: dict[tuple[Hashable, Hashable], list[tuple[float, float]]]
    width: float
    height: float


class _StandIn(NamedTuple):
    """Where an arrow passes a layer."""

    edge: tuple
    layer: int


def place(
    sizes: Mapping[Hashable, tuple[float, float]], edges: list[tuple[Hashable, Hashable]]
) -> Placed:
    """Places boxes of these sizes, from top to bottom along `edges`, which have no cycle.

    The boxes come in an order in which all edges go forwards.
    """
    layers_of = _layers(list(sizes), edges)
    chains = {edge: _chain(edge, layers_of) for edge in edges}
    layers = _stacked(layers_of)
    links = [pair for chain in chains.values() for pair in pairwise(chain)]
    _order(layers, links)
    width = {node: sizes[node][0] if node in sizes else _STAND_IN for row in layers for node in row}
    centres = _centres(layers, links, width)
    heights = [max((sizes[n][1] for n in row if n in sizes), default=0.0) for row in layers]
    tops = [sum(heights[:i]) + LAYER_GAP * i for i in range(len(layers))]
    boxes = {}
    for row, top, height in zip(layers, tops, heights, strict=True):
        for node in row:
            if node in sizes:
                w, h = sizes[node]
                boxes[node] = (centres[node] - w / 2, top + (height - h) / 2, w, h)
    arrows = {}
    for (start, end), chain in chains.items():
        points = [(centres[start], boxes[start][1] + boxes[start][3])]
        for stand_in in chain[1:-1]:
            level = layers_of[stand_in]
            x = centres[stand_in]
            points += [(x, tops[level]), (x, tops[level] + heights[level])]
        points.append((centres[end], boxes[end][1]))
        arrows[start, end] = points
    right = max((centres[n] + width[n] / 2 for row in layers for n in row), default=0.0)
    return Placed(boxes, arrows, right, (tops[-1] + heights[-1]) if layers else 0.0)


def _layers(nodes: list, edges: list) -> dict:
    """A layer for each box: one more than that of the last box before it.

    What nothing leads to stands just above what it leads to first.
    """
    before: dict = {node: [] for node in nodes}
    after: dict = {node: [] for node in nodes}
    for start, end in edges:
        before[end].append(start)
        after[start].append(end)
    layer: dict = {}
    for node in nodes:
        layer[node] = 1 + max((layer[n] for n in before[node]), default=-1)
    for node in reversed(nodes):
        if not before[node] and after[node]:
            layer[node] = max(0, min(layer[n] for n in after[node]) - 1)
    return layer


def _chain(edge: tuple, layers: dict) -> list:
    """The ends of an edge, and a stand-in for each layer between them."""
    start, end = edge
    stand_ins = [_StandIn(edge, level) for level in range(layers[start] + 1, layers[end])]
    layers.update({stand_in: stand_in.layer for stand_in in stand_ins})
    return [start, *stand_ins, end]


def _stacked(layers_of: dict) -> list[list]:
    count = 1 + max(layers_of.values(), default=-1)
    layers: list[list] = [[] for _ in range(count)]
    for node, level in layers_of.items():
        layers[level].append(node)
    return layers


def _order(layers: list[list], links: list[tuple]) -> None:
    """Sorts each layer by the mean place of the neighbours above, then below, again and again."""
    above: dict = {node: [] for row in layers for node in row}
    below: dict = {node: [] for row in layers for node in row}
    for start, end in links:
        above[end].append(start)
        below[start].append(end)
    best, fewest = [list(row) for row in layers], _crossings(layers, below)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        for row in layers if down else layers[::-1]:
            place_of = {n: i for line in layers for i, n in enumerate(line)}
            row.sort(key=lambda n: _mean([place_of[m] for m in neighbours[n]], place_of[n]))
        count = _crossings(layers, below)
        if count < fewest:
            best, fewest = [list(row) for row in layers], count
    layers[:] = best


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _crossings(layers: list[list], below: dict) -> int:
    """How often links between neighbouring layers cross."""
    total = 0
    for row, following in pairwise(layers):
        place_of = {n: i for i, n in enumerate(following)}
        ends = [place_of[m] for n in row for m in sorted(below[n], key=place_of.get)]
        for i, end in enumerate(ends):
            total += sum(1 for other in ends[i + 1 :] if other < end)
    return total


def _centres(layers: list[list], links: list[tuple], width: dict) -> dict:
    """The middle of each node: near those of its neighbours, in order and without overlap."""
    centre: dict = {}
    for row in layers:
        x = 0.0
        for node in row:
            centre[node] = x + width[node] / 2
            x += width[node] + GAP
    neighbours: dict = {node: [] for row in layers for node in row}
    for start, end in links:
        # Arrows that pass layers are kept straight before all.
        weight = 4 if type(start) is type(end) is _StandIn else 1
        neighbours[start].append((end, weight))
        neighbours[end].append((start, weight))
    for sweep in range(_SWEEPS):
        for row in layers if sweep % 2 == 0 else layers[::-1]:
            wished = [_wish(node, neighbours, centre) for node in row]
            for node, x in zip(row, _apart(row, wished, width), strict=True):
                centre[node] = x
    left = min((centre[n] - width[n] / 2 for row in layers for n in row), default=0.0)
    return {node: x - left for node, x in centre.items()}


def _wish(node: Hashable, neighbours: dict, centre: dict) -> float:
    pairs = neighbours[node]
    total = sum(weight for _, weight in pairs)
    return sum(centre[n] * weight for n, weight in pairs) / total if total else centre[node]


def _apart(row: list, wished: list[float], width: dict) -> list[float]:
    """Places as near as can be to those wished for, in order and apart from each other.

    Neighbours that would overlap are joined into blocks, which stand at the mean of their wishes.
    """
    blocks: list[list] = []  # the first node, the wishes of the block less their offsets
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (width[left] + width[right]) / 2 + GAP)
    for i, wish in enumerate(wished):
        blocks.append([i, [wish - offsets[i]]])
        while len(blocks) > 1 and _mean(blocks[-2][1], 0.0) > _mean(blocks[-1][1], 0.0):
            blocks[-2][1] += blocks.pop()[1]
    places = []
    for _, wishes in blocks:
        places += [_mean(wishes, 0.0)] * len(wishes)
    return [place + offset for place, offset in zip(places, offsets, strict=True)]
