"""tape.graph(): what stands in the boxes, where the arrows go, and where all is placed."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import retrograde as tf
from retrograde.diagnose.graph.layout import GAP, LAYER_GAP, place
from tests.namespaces.helpers import assert_raises


def titles(graph, kind):
    return [box.rows[0] for box in graph.boxes.values() if box.kind == kind]


def by_title(graph):
    """Arrows as pairs of titles."""
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


def test_boxes_are_lines_and_arrows_lead_from_variables_to_the_target(network):
    tape, loss, *_ = network
    graph = tape.graph(loss)
    first, second, last = (
        "h = tf.tanh(x @ w)",
        "y = h * v + h",
        "loss = tf.reduce_sum(y) + tf.reduce_sum(w)",
    )

    assert titles(graph, "calls") == [first, second, last]
    assert titles(graph, "dead end") == ["tf.sqrt(y)"]
    assert titles(graph, "variable") == ["w"]  # v, which one line alone reads, stands there
    assert by_title(graph) == {
        ("w", first),
        ("w", last),
        (first, second),
        (second, "tf.sqrt(y)"),
        (second, last),
        (last, "target"),
    }


def test_a_box_says_line_calls_variables_and_what_comes_out(network):
    tape, loss, *_ = network
    box = next(b for b in tape.graph(loss).boxes.values() if b.rows[0].startswith("y ="))

    assert box.rows[1].endswith(f"test_graph.py:{box.place.line}")
    assert box.rows[2:] == ["multiply, add", "v  float32[4]", "float32[2, 4] · keeps 64 B"]


def test_arrows_carry_bytes(network):
    tape, loss, w, _ = network
    graph = tape.graph(loss)
    (start,) = [key for key, box in graph.boxes.items() if box.kind == "variable"]

    assert {n for (a, _), n in graph.arrows.items() if a == start} == {w._array.nbytes}


def test_exits_are_marked():
    w = tf.Variable([1.0, 2.0], name="w")
    total = tf.Variable(0.0)
    with tf.GradientTape(lines=True) as tape:
        h = tf.exp(w)
        for _ in range(2):
            h.numpy()
        loss = tf.reduce_sum(h)
        total.assign(loss)
    graph = tape.graph(loss)

    exits = [box.rows for box in graph.boxes.values() if box.kind == "exit"]
    assert [rows[0] for rows in exits] == ["h.numpy()", "total.assign(loss)"]
    assert [rows[2] for rows in exits] == ["leaves by numpy", "leaves by assign"]
    assert ("h = tf.exp(w)", "h.numpy()") in by_title(graph)


def test_sources_choose_what_is_shown(network):
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


def test_many_lines_are_put_together_by_function():
    tape, loss = deep(40)
    lines, graph = tape.graph(loss, by="line"), tape.graph(loss)

    assert len(titles(lines, "calls")) == 81
    assert titles(graph, "calls") == ["block()"] * 40 + ["loss = tf.reduce_sum(x)"]
    assert len(tape.graph(loss, by="call").boxes) == 122
    few, loss = deep(3)
    assert len(titles(few.graph(loss), "calls")) == 7


def test_the_picture_is_well_formed_and_every_row_is_in_it(network):
    tape, loss, *_ = network
    graph = tape.graph(loss)
    picture = ET.fromstring(graph.svg)
    space = "{http://www.w3.org/2000/svg}"
    words = [text.text for text in picture.iter(f"{space}text")]

    assert words == [row for box in graph.boxes.values() for row in box.rows]
    assert len(list(picture.iter(f"{space}path"))) == len(graph.arrows) + 1  # with the tip
    assert graph._repr_svg_() == graph.svg
    assert picture.attrib["style"] == "max-width: 100%; height: auto"  # for narrow pages


def test_long_rows_are_cut_and_marks_are_escaped():
    name = "<&" + "w" * 100
    x = tf.Variable(1.0, name=name)
    with tf.GradientTape() as tape:
        y = x * x + x
    picture = tape.graph(y).svg

    assert f"&lt;&amp;{'w' * 55}…" in picture
    ET.fromstring(picture)


def test_text_for_graphviz(network):
    tape, loss, *_ = network
    lines = tape.graph(loss).dot.splitlines()

    assert lines[0] == "digraph tape {"
    assert lines[-1] == "}"
    assert sum(" -> " in line for line in lines) == 6
    assert any('label="w\\lfloat32[3, 4]\\l"' in line for line in lines)


def test_files_are_svg_or_dot(network, tmp_path):
    tape, loss, *_ = network
    graph = tape.graph(loss)
    graph.save(tmp_path / "way.svg")
    graph.save(tmp_path / "way.dot")

    assert (tmp_path / "way.svg").read_text(encoding="utf-8") == graph.svg
    assert (tmp_path / "way.dot").read_text(encoding="utf-8") == graph.dot
    assert_raises(
        lambda: graph.save("way.png"),
        ValueError,
        "graph: expected a path that ends in .svg or .dot. Received: way.png.",
    )
    assert str(graph) == "<a picture of 6 boxes: 1 variable, 3 calls, 1 dead end, 1 target>"


def test_an_unknown_grouping_is_refused(network):
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
    placed = place(sizes, edges)

    assert {key: box[2:] for key, box in placed.boxes.items()} == sizes
    boxes = list(placed.boxes.values())
    for i, (x, y, width, height) in enumerate(boxes):
        assert -1e-6 <= x <= x + width <= placed.width + 1e-6
        assert -1e-6 <= y <= y + height <= placed.height + 1e-6
        for other_x, other_y, other_width, other_height in boxes[:i]:
            beside = x + width + GAP <= other_x + 1e-6 or other_x + other_width + GAP <= x + 1e-6
            above = y + height + LAYER_GAP <= other_y + 1e-6
            assert beside or above or other_y + other_height + LAYER_GAP <= y + 1e-6
    for (start, end), points in placed.arrows.items():
        heights = [y for _, y in points]
        assert heights == sorted(heights)
        assert heights[0] == pytest.approx(placed.boxes[start][1] + sizes[start][1])
        assert heights[-1] == pytest.approx(placed.boxes[end][1])


@pytest.mark.parametrize("seed", range(30))
def test_arrows_pass_beside_boxes(seed):
    sizes, edges = random_graph(seed)
    placed = place(sizes, edges)

    for points in placed.arrows.values():
        for px, py in points[1:-1]:
            for x, y, width, height in placed.boxes.values():
                assert not (x < px < x + width and y < py < y + height)


def test_a_chain_is_a_straight_line():
    placed = place({i: (50.0, 20.0) for i in range(5)}, [(i, i + 1) for i in range(4)])

    assert {box[0] for box in placed.boxes.values()} == {0.0}
    assert (placed.width, placed.height) == (50.0, 5 * 20.0 + 4 * LAYER_GAP)


def test_two_pairs_are_not_crossed():
    placed = place({k: (10.0, 10.0) for k in "abcd"}, [("a", "d"), ("b", "c")])
    order = {k: placed.boxes[k][0] for k in "abcd"}

    assert (order["a"] < order["b"]) == (order["d"] < order["c"])


def test_nothing_takes_no_room():
    assert place({}, []) == ({}, {}, 0.0, 0.0)
