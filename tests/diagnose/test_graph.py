"""Tests `tape.graph()`: boxes, arrows, layout and output formats."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import retrograde as tf
from retrograde.diagnose.graph.layout import GAP, LAYER_GAP, compute_layout
from tests.namespaces.helpers import assert_raises


def titles(graph, kind):
    return [box.rows[0] for box in graph.boxes.values() if box.kind == kind]


def by_title(graph):
    """Returns the arrows as pairs of titles."""
    return {(graph.boxes[a].rows[0], graph.boxes[b].rows[0]) for a, b in graph.arrows}


@pytest.fixture
def network():
    w, v = tf.Variable(np.ones((3, 4), np.float32), name="w"), tf.Variable(tf.ones(4), name="v")
    x = tf.constant(np.ones((2, 3), np.float32))
    with tf.GradientTape(lines=True) as tape:
        h = tf.tanh(x @ w)
        y = h * v + h
        tf.sqrt(y)
        loss = tf.reduce_sum(y) + tf.reduce_sum(w)
    return tape, loss, w, v


def test_boxes_are_lines_and_arrows_connect_variables_to_the_target(network):
    tape, loss, *_ = network
    graph = tape.graph(loss)
    first, second, last = (
        "h = tf.tanh(x @ w)",
        "y = h * v + h",
        "loss = tf.reduce_sum(y) + tf.reduce_sum(w)",
    )

    assert titles(graph, "calls") == [first, second, last]
    assert titles(graph, "unused") == ["tf.sqrt(y)"]
    assert titles(graph, "variable") == ["w"]  # v is in the box of the only line that reads it
    assert by_title(graph) == {
        ("w", first),
        ("w", last),
        (first, second),
        (second, "tf.sqrt(y)"),
        (second, last),
        (last, "target"),
    }


def test_a_box_has_the_line_the_calls_the_variables_and_the_output(network):
    tape, loss, *_ = network
    box = next(b for b in tape.graph(loss).boxes.values() if b.rows[0].startswith("y ="))

    assert box.rows[1].endswith(f"test_graph.py:{box.location.line}")
    assert box.rows[2:] == ["multiply, add", "v  float32[4]", "float32[2, 4] · saves 64 B"]


def test_arrows_have_sizes_in_bytes(network):
    tape, loss, w, _ = network
    graph = tape.graph(loss)
    (start,) = [key for key, box in graph.boxes.items() if box.kind == "variable"]

    assert {n for (a, _), n in graph.arrows.items() if a == start} == {w._array.nbytes}


def test_values_that_leave_the_tape_are_marked():
    w = tf.Variable([1.0, 2.0], name="w")
    total = tf.Variable(0.0)
    with tf.GradientTape(lines=True) as tape:
        h = tf.exp(w)
        for _ in range(2):
            h.numpy()
        loss = tf.reduce_sum(h)
        total.assign(loss)
    graph = tape.graph(loss)

    escapes = [box.rows for box in graph.boxes.values() if box.kind == "escape"]
    assert [rows[0] for rows in escapes] == ["h.numpy()", "total.assign(loss)"]
    assert [rows[2] for rows in escapes] == ["leaves the tape: numpy", "leaves the tape: assign"]
    assert ("h = tf.exp(w)", "h.numpy()") in by_title(graph)


def test_sources_limit_the_graph(network):
    tape, loss, _, v = network
    graph = tape.graph(loss, v)

    assert titles(graph, "calls") == ["y = h * v + h", "loss = tf.reduce_sum(y) + tf.reduce_sum(w)"]


def test_a_tape_without_lines_shows_each_call():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.exp(x) * 3.0)
    graph = tape.graph(y)

    assert titles(graph, "source") == ["watched tensor"]
    assert titles(graph, "calls") == ["exp", "multiply", "sum"]
    assert len(graph.arrows) == 4


def block(x, w):
    y = tf.tanh(x @ w)
    return y + x


def deep(count):
    weights = [tf.Variable(np.eye(3, dtype=np.float32), name=f"w{i}") for i in range(count)]
    x = tf.constant(np.ones((1, 3), np.float32))
    with tf.GradientTape(lines=True) as tape:
        for w in weights:
            x = block(x, w)
        loss = tf.reduce_sum(x)
    return tape, loss


def test_many_lines_are_grouped_by_function():
    tape, loss = deep(40)
    lines, graph = tape.graph(loss, by="line"), tape.graph(loss)

    assert len(titles(lines, "calls")) == 81
    assert titles(graph, "calls") == ["block()"] * 40 + ["loss = tf.reduce_sum(x)"]
    assert len(tape.graph(loss, by="call").boxes) == 122
    few, loss = deep(3)
    assert len(titles(few.graph(loss), "calls")) == 7


def test_svg_is_well_formed_and_contains_every_row(network):
    tape, loss, *_ = network
    graph = tape.graph(loss)
    root = ET.fromstring(graph.svg)
    namespace = "{http://www.w3.org/2000/svg}"
    rows = [text.text for text in root.iter(f"{namespace}text")]

    assert rows == [row for box in graph.boxes.values() for row in box.rows]
    assert len(list(root.iter(f"{namespace}path"))) == len(graph.arrows) + 1  # and the arrowhead
    assert "<style>" in graph.svg  # light or dark, as the system
    assert graph._repr_html_() == re.sub("<style>.*</style>", "", graph.svg)
    assert root.attrib["style"] == "max-width: 100%; height: auto"  # fits narrow pages


def test_long_rows_are_truncated_and_special_characters_escaped():
    name = "<&" + "w" * 100
    x = tf.Variable(1.0, name=name)
    with tf.GradientTape() as tape:
        y = x * x + x
    svg = tape.graph(y).svg

    assert f"&lt;&amp;{'w' * 55}…" in svg
    ET.fromstring(svg)


def test_dot_has_boxes_and_arrows(network):
    tape, loss, *_ = network
    lines = tape.graph(loss).dot.splitlines()

    assert lines[0] == "digraph tape {"
    assert lines[-1] == "}"
    assert sum(" -> " in line for line in lines) == 6
    assert any('label="w\\lfloat32[3, 4]\\l"' in line for line in lines)


def test_files_are_svg_or_dot(network, tmp_path):
    tape, loss, *_ = network
    graph = tape.graph(loss)
    graph.save(tmp_path / "graph.svg")
    graph.save(tmp_path / "graph.dot")

    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == graph.svg
    assert (tmp_path / "graph.dot").read_text(encoding="utf-8") == graph.dot
    assert_raises(
        lambda: graph.save("graph.png"),
        ValueError,
        "graph: expected a path that ends in .svg or .dot. Received: graph.png.",
    )
    assert str(graph) == "<Graph with 6 boxes: 1 variable, 3 calls, 1 unused, 1 target>"


def test_an_unknown_grouping_raises(network):
    tape, loss, *_ = network
    assert_raises(
        lambda: tape.graph(loss, by="layer"),
        ValueError,
        "graph: expected `by` to be one of ('call', 'line', 'function'). Received: 'layer'.",
    )


# The layout


def random_graph(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 40))
    sizes = {i: tuple(rng.uniform(20, 300, 2)) for i in range(count)}
    edges = sorted(
        {
            tuple(sorted(map(int, rng.choice(count, 2, replace=False))))
            for _ in range(2 * count if count > 1 else 0)
        }
    )
    return sizes, edges


@pytest.mark.parametrize("seed", range(30))
def test_boxes_do_not_overlap_and_arrows_go_down(seed):
    sizes, edges = random_graph(seed)
    layout = compute_layout(sizes, edges)

    assert {key: box[2:] for key, box in layout.boxes.items()} == sizes
    boxes = list(layout.boxes.values())
    for i, (x, y, width, height) in enumerate(boxes):
        assert -1e-6 <= x <= x + width <= layout.width + 1e-6
        assert -1e-6 <= y <= y + height <= layout.height + 1e-6
        for other_x, other_y, other_width, other_height in boxes[:i]:
            separate = x + width + GAP <= other_x + 1e-6 or other_x + other_width + GAP <= x + 1e-6
            above = y + height + LAYER_GAP <= other_y + 1e-6
            assert separate or above or other_y + other_height + LAYER_GAP <= y + 1e-6
    for (start, end), points in layout.arrows.items():
        heights = [y for _, y in points]
        assert heights == sorted(heights)
        assert heights[0] == pytest.approx(layout.boxes[start][1] + sizes[start][1])
        assert heights[-1] == pytest.approx(layout.boxes[end][1])


@pytest.mark.parametrize("seed", range(30))
def test_arrows_do_not_cross_boxes(seed):
    sizes, edges = random_graph(seed)
    layout = compute_layout(sizes, edges)

    for points in layout.arrows.values():
        for px, py in points[1:-1]:
            for x, y, width, height in layout.boxes.values():
                assert not (x < px < x + width and y < py < y + height)


def test_a_chain_is_a_straight_line():
    layout = compute_layout({i: (50.0, 20.0) for i in range(5)}, [(i, i + 1) for i in range(4)])

    assert {box[0] for box in layout.boxes.values()} == {0.0}
    assert (layout.width, layout.height) == (50.0, 5 * 20.0 + 4 * LAYER_GAP)


def test_two_edges_do_not_cross():
    layout = compute_layout({k: (10.0, 10.0) for k in "abcd"}, [("a", "d"), ("b", "c")])
    order = {k: layout.boxes[k][0] for k in "abcd"}

    assert (order["a"] < order["b"]) == (order["d"] < order["c"])


def test_an_empty_graph_has_size_zero():
    assert compute_layout({}, []) == ({}, {}, 0.0, 0.0)
