"""Computes a layered graph layout with few crossings (Sugiyama's method).

Its steps: assign each box to a layer, insert dummy nodes where an edge crosses layers, order each
layer by the mean position of its neighbors, and compute coordinates that keep the order.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import pairwise
from typing import NamedTuple

GAP = 28.0  # between boxes of one layer
LAYER_GAP = 44.0  # between layers
_DUMMY_WIDTH = 6.0  # where an edge crosses a layer
_SWEEPS = 12


class Layout(NamedTuple):
    """The corner and size of each box, the points of each arrow, and the total size."""

    boxes: dict[Hashable, tuple[float, float, float, float]]
    arrows: dict[tuple[Hashable, Hashable], list[tuple[float, float]]]
    width: float
    height: float


class _Dummy(NamedTuple):
    """A point where an edge crosses a layer."""

    edge: tuple
    layer: int


def compute_layout(
    sizes: Mapping[Hashable, tuple[float, float]], edges: list[tuple[Hashable, Hashable]]
) -> Layout:
    """Lays out boxes of these sizes from top to bottom along `edges`.

    The graph must be acyclic, and `sizes` must be in topological order.
    """
    layers_of = _assign_layers(list(sizes), edges)
    chains = {edge: _chain(edge, layers_of) for edge in edges}
    layers = _group_by_layer(layers_of)
    links = [pair for chain in chains.values() for pair in pairwise(chain)]
    _order_layers(layers, links)
    width = {
        node: sizes[node][0] if node in sizes else _DUMMY_WIDTH for row in layers for node in row
    }
    centers = _compute_centers(layers, links, width)
    heights = [max((sizes[n][1] for n in row if n in sizes), default=0.0) for row in layers]
    tops = [sum(heights[:i]) + LAYER_GAP * i for i in range(len(layers))]
    boxes = {}
    for row, top, height in zip(layers, tops, heights, strict=True):
        for node in row:
            if node in sizes:
                w, h = sizes[node]
                boxes[node] = (centers[node] - w / 2, top + (height - h) / 2, w, h)
    arrows = {}
    for (start, end), chain in chains.items():
        points = [(centers[start], boxes[start][1] + boxes[start][3])]
        for dummy in chain[1:-1]:
            level = layers_of[dummy]
            x = centers[dummy]
            points += [(x, tops[level]), (x, tops[level] + heights[level])]
        points.append((centers[end], boxes[end][1]))
        arrows[start, end] = points
    right = max((centers[n] + width[n] / 2 for row in layers for n in row), default=0.0)
    return Layout(boxes, arrows, right, (tops[-1] + heights[-1]) if layers else 0.0)


def _assign_layers(nodes: list, edges: list) -> dict:
    """Assigns each box to the layer after its last predecessor.

    A box without predecessors is in the layer before its first successor.
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
    """Returns the ends of an edge, with a dummy node for each layer between them."""
    start, end = edge
    dummies = [_Dummy(edge, level) for level in range(layers[start] + 1, layers[end])]
    layers.update({dummy: dummy.layer for dummy in dummies})
    return [start, *dummies, end]


def _group_by_layer(layers_of: dict) -> list[list]:
    count = 1 + max(layers_of.values(), default=-1)
    layers: list[list] = [[] for _ in range(count)]
    for node, level in layers_of.items():
        layers[level].append(node)
    return layers


def _order_layers(layers: list[list], links: list[tuple]) -> None:
    """Sorts each layer by the mean position of its neighbors, above and below in turn."""
    above: dict = {node: [] for row in layers for node in row}
    below: dict = {node: [] for row in layers for node in row}
    for start, end in links:
        above[end].append(start)
        below[start].append(end)
    best, fewest = [list(row) for row in layers], _count_crossings(layers, below)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        neighbors = above if down else below
        for row in layers if down else layers[::-1]:
            position_of = {n: i for line in layers for i, n in enumerate(line)}
            row.sort(key=lambda n: _mean([position_of[m] for m in neighbors[n]], position_of[n]))
        count = _count_crossings(layers, below)
        if count < fewest:
            best, fewest = [list(row) for row in layers], count
    layers[:] = best


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _count_crossings(layers: list[list], below: dict) -> int:
    """Returns the number of crossings between adjacent layers."""
    total = 0
    for row, following in pairwise(layers):
        position_of = {n: i for i, n in enumerate(following)}
        ends = [position_of[m] for n in row for m in sorted(below[n], key=position_of.get)]
        for i, end in enumerate(ends):
            total += sum(1 for other in ends[i + 1 :] if other < end)
    return total


def _compute_centers(layers: list[list], links: list[tuple], width: dict) -> dict:
    """Returns the center of each node: close to its neighbors, in order, without overlap."""
    center: dict = {}
    for row in layers:
        x = 0.0
        for node in row:
            center[node] = x + width[node] / 2
            x += width[node] + GAP
    neighbors: dict = {node: [] for row in layers for node in row}
    for start, end in links:
        # Edges that cross layers should be straight.
        weight = 4 if type(start) is type(end) is _Dummy else 1
        neighbors[start].append((end, weight))
        neighbors[end].append((start, weight))
    for sweep in range(_SWEEPS):
        for row in layers if sweep % 2 == 0 else layers[::-1]:
            preferred = [_preferred_position(node, neighbors, center) for node in row]
            for node, x in zip(row, _separate(row, preferred, width), strict=True):
                center[node] = x
    left = min((center[n] - width[n] / 2 for row in layers for n in row), default=0.0)
    return {node: x - left for node, x in center.items()}


def _preferred_position(node: Hashable, neighbors: dict, center: dict) -> float:
    pairs = neighbors[node]
    total = sum(weight for _, weight in pairs)
    return sum(center[n] * weight for n, weight in pairs) / total if total else center[node]


def _separate(row: list, preferred: list[float], width: dict) -> list[float]:
    """Returns positions close to the preferred ones, in order and without overlap.

    Nodes that would overlap form a block, which is at the mean of their preferred positions.
    """
    blocks: list[list] = []  # the first node, and the preferred positions minus the offsets
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (width[left] + width[right]) / 2 + GAP)
    for i, x in enumerate(preferred):
        blocks.append([i, [x - offsets[i]]])
        while len(blocks) > 1 and _mean(blocks[-2][1], 0.0) > _mean(blocks[-1][1], 0.0):
            blocks[-2][1] += blocks.pop()[1]
    positions = []
    for _, values in blocks:
        positions += [_mean(values, 0.0)] * len(values)
    return [x + offset for x, offset in zip(positions, offsets, strict=True)]
