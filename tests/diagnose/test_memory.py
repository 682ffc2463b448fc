"""Tests `tape.memory()` and `print(tape)`."""

import gc
import tracemalloc

import numpy as np
import pytest

import retrograde as tf

SIZE = 4000  # bytes of each array


def array():
    return tf.Variable(np.linspace(0.1, 1.0, 1000, dtype=np.float32))


def test_arrays_count_once_and_by_origin():
    x, constant = array(), tf.constant(np.ones(1000, np.float32))
    with tf.GradientTape() as tape:
        y = tf.sin(x) * tf.exp(x)  # saves x and the outputs of sin and exp
        z = tf.reduce_sum(y * constant)
    report = tape.memory(z)

    assert report.calls == 5
    assert (report.held, report.outputs, report.variables, report.inputs) == (
        4 * SIZE,
        2 * SIZE,
        SIZE,
        SIZE,
    )
    assert report.by_primitive == {"sin": SIZE, "exp": SIZE}
    assert report.by_line == {}


def test_freed_excludes_arrays_with_other_references():
    x = array()
    with tf.GradientTape() as tape:
        h = tf.exp(x)
        y = tf.exp(h)
        z = tf.reduce_sum(y)
    before = tape.memory()
    view = y.numpy, h._array[10:20]
    del h
    with_view = tape.memory()
    del view, y
    without = tape.memory()

    assert before.freed == 0
    assert with_view.freed == 0
    assert without.freed == 2 * SIZE
    assert tape.gradient(z, x) is not None


def test_views_count_as_their_base_array():
    x = array()
    with tf.GradientTape() as tape:
        h = tf.reshape(tf.exp(x), [10, 100])
        y = tf.sin(h[2:4])
    report = tape.memory()

    assert report.outputs == SIZE
    assert report.freed == 0
    del h
    assert tape.memory().freed == SIZE
    del y


@pytest.mark.parametrize("options", [{"persistent": True}, {"lines": True}])
def test_tapes_that_keep_their_entries_do_not_free_values(options):
    x = array()
    with tf.GradientTape(**options) as tape:
        y = tf.reduce_sum(tf.exp(tf.exp(x)))

    for _ in range(2):
        report = tape.memory(y)
        assert report.freed == 0
        assert report.exclusive >= 2 * SIZE
        assert report.peak >= report.exclusive + 2 * SIZE
        before = report.held
        if tape._entries is not None:
            tape.gradient(y, x)
    assert tape.memory().held == before


def test_a_used_tape_holds_no_arrays():
    x = array()
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.exp(x))
    tape.gradient(y, x)
    report = tape.memory()

    assert (report.calls, report.held, report.freed) == (0, 0, 0)


def test_report_agrees_with_tracemalloc():
    x = tf.constant(np.random.default_rng(0).standard_normal((256, 200)))
    weights = [tf.Variable(np.eye(200) * 0.5) for _ in range(4)]
    h = x
    gc.collect()
    tracemalloc.start()
    try:
        with tf.GradientTape() as tape:
            for w in weights:
                h = tf.tanh(h @ w)
            loss = tf.reduce_sum(h)
        del h, w
        report = tape.memory(loss)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        gradients = tape.gradient(loss, weights)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    added = sum(g._array.nbytes for g in gradients)

    assert report.freed == 4 * x._array.nbytes
    assert before - (after - added) == pytest.approx(report.freed, rel=0.01)
    # The gradient of tanh has a temporary array.
    assert peak - before == pytest.approx(report.peak - report.freed, abs=1.1 * x._array.nbytes)


def test_lines_are_sorted_by_size():
    x = array()
    with tf.GradientTape(lines=True) as tape:
        a = tf.exp(x)
        b = tf.exp(tf.exp(a))
    report = tape.memory()

    first, second = report.by_line.items()
    assert first[0].endswith(": b = tf.exp(tf.exp(a))")
    assert first[1] == 2 * SIZE
    assert second[0].endswith(": a = tf.exp(x)")
    del b


def test_text_and_html():
    x = array()
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.exp(tf.sin(x)))

    assert str(tape.memory(y)) == (
        "3 calls hold 8.0 kB.\n"
        "  outputs of calls       4.0 kB\n"
        "  values of variables    4.0 kB\n"
        "  other inputs           0 B\n"
        "  held only by the tape  4.0 kB\n"
        "  freed by gradient()    4.0 kB\n"
        "  backward pass peak     12.0 kB\n"
        "  By primitive:\n"
        "    4.0 kB  exp"
    )
    page = tape.memory()._repr_html_()
    assert ">freed by gradient()</td>" in page
    assert page.count("<table") == 2  # the totals, and a row with a bar for each primitive
    assert page.count("background:#4c8fbd") == 1


# print(tape)


def test_a_tape_prints_its_calls_in_order():
    x = tf.Variable(np.ones((2, 3), np.float32), name="weights")
    with tf.GradientTape() as tape:
        y = tf.exp(x)
        tf.reduce_sum(y * 2.0, axis=1)

    assert str(tape) == (
        "<GradientTape, 1 watched, 3 calls recorded>\n"
        "     call      inputs                    outputs        saves  line\n"
        "  0  exp       weights:0                 float32[2, 3]  24 B\n"
        "  1  multiply  float32[2, 3], float32[]  float32[2, 3]  4 B\n"
        "  2  sum       float32[2, 3]             ?"
    )


def test_lines_are_printed_with_the_calls():
    x = tf.Variable([1.0, 2.0], name="x")
    with tf.GradientTape(persistent=True, lines=True) as tape:
        tf.sin(x)
        assert str(tape).startswith("<persistent GradientTape, 1 watched, 1 calls recording>")
    row = str(tape).splitlines()[-1]

    assert row.startswith("  0  sin   x:0     float32[2]  16 B ")
    assert row.endswith(": tf.sin(x)")


def test_a_long_tape_is_shortened():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        for _ in range(100):
            x = x * 1.0
    lines = str(tape).splitlines()

    assert len(lines) == 43
    assert "60 more" in lines[22]
    assert lines[-1].startswith("   99  multiply")


def test_a_used_tape_names_the_line():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)

    assert str(tape) == (
        f"<GradientTape, 1 watched, used by gradient() at {__file__}:{tape._used_at[1]}>"
    )
    assert "used by gradient()" in tape._repr_html_()


def test_html_is_a_table():
    x = tf.Variable(1.0, name="a<b")
    with tf.GradientTape() as tape:
        x * x

    page = tape._repr_html_()
    assert ">multiply</td>" in page
    assert ">a&lt;b:0, a&lt;b:0</td>" in page
    assert page.count("<tr>") == 2


def test_a_repr_stays_short():
    assert repr(tf.GradientTape()).startswith("<retrograde.core.tape.GradientTape object at ")
