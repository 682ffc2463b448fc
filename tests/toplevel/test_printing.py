"""tf.print: the output matches TensorFlow's."""

import collections
import io
import sys

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.recorders import Recorder, use_recorders
from tests.namespaces.helpers import assert_raises


def print_to_string(*inputs, **kwargs):
    stream = io.StringIO()
    assert tf.print(*inputs, output_stream=stream, **kwargs) is None
    return stream.getvalue()


FLOATS = [1.0, 0.1, 1e10, 1e-10, np.nan, np.inf, -np.inf, 123456.789]
Pair = collections.namedtuple("Pair", "x y")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.5, "1.5"),
        ("a", "a"),
        (None, "None"),
        (b"x", "b'x'"),
        (tf.float32, "tf.float32"),
        (np.array([1.0, 2.0]), "array([1., 2.])"),
        (tf.constant([1.0, 2.0]), "[1 2]"),
        (tf.Variable([1.0, 2.0]), "[1 2]"),
        (tf.constant("hi"), "hi"),
        (tf.constant(["a", "b"]), '["a" "b"]'),
        (tf.constant([True, False]), "[1 0]"),
        (tf.constant([1, 255], tf.uint8), "[1 255]"),
        (tf.constant([0.1], tf.float16), "[0.0999755859]"),
        (tf.constant([0.1], tf.bfloat16), "[0.100097656]"),
        (tf.constant([1.5 - 2j]), "[(1.5-2j)]"),
        (tf.zeros([0]), "[]"),
        (tf.zeros([0, 3]), "[]"),
        (tf.range(6), "[0 1 2 3 4 5]"),
        (tf.range(7), "[0 1 2 ... 4 5 6]"),
        (tf.reshape(tf.range(4), [2, 2]), "[[0 1]\n [2 3]]"),
        (tf.reshape(tf.range(8), [2, 2, 2]), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]"),
        (
            tf.reshape(tf.range(56), [7, 8]),
            "[[0 1 2 ... 5 6 7]\n [8 9 10 ... 13 14 15]\n [16 17 18 ... 21 22 23]\n ...\n"
            " [32 33 34 ... 37 38 39]\n [40 41 42 ... 45 46 47]\n [48 49 50 ... 53 54 55]]",
        ),
        (tf.ones([1, 7]), "[[1 1 1 ... 1 1 1]]"),
        ([tf.constant(1.0), tf.constant([1, 2])], "[1, [1 2]]"),
        ({"b": tf.constant(1), "a": [1, "x"]}, "{'a': [1, 'x'], 'b': 1}"),
        ((1, tf.constant(2)), "(1, 2)"),
        ((tf.constant(2),), "(2,)"),
        (Pair(tf.constant(1), 2), "Pair(x=1, y=2)"),
        (
            tf.sparse.from_dense([[1, 0], [0, 2]]),
            "'SparseTensor(indices=[[0 0]\n [1 1]], values=[1 2], shape=[2 2])'",
        ),
    ],
)
def test_formatting(value, expected):
    assert print_to_string(value) == f"{expected}\n"


def test_numbers_have_enough_digits_to_be_distinct():
    assert print_to_string(tf.constant(FLOATS), summarize=-1) == (
        "[1 0.1 1e+10 1e-10 nan inf -inf 123456.789]\n"
    )
    assert (
        print_to_string(tf.constant([1e10, 1 / 3], tf.float64))
        == "[10000000000 0.33333333333333331]\n"
    )
    assert (
        print_to_string(tf.constant(1 / 3), tf.constant(123456789.0)) == "0.333333343 123456792\n"
    )


def test_keywords():
    assert print_to_string("a", tf.constant(1), "b", sep="|", end="!") == "a|1|b!"
    assert print_to_string(tf.range(5), summarize=1) == "[0 ... 4]\n"
    assert print_to_string(tf.range(5), summarize=0) == "[...]\n"
    assert print_to_string() == "\n"


def test_streams(capsys, tmp_path):
    tf.print("default")
    tf.print("out", output_stream=sys.stdout)
    assert capsys.readouterr() == ("out\n", "default\n")
    lines = []
    tf.print("called", output_stream=lines.append)
    assert lines == ["called\n"]
    file = tmp_path / "log"
    tf.print("first", output_stream=f"file://{file}")
    tf.print("second", output_stream=f"file://{file}")
    assert file.read_text() == "first\nsecond\n"


def test_recorders_observe_printed_tensors():
    class Observer(Recorder):
        observed = ()

        def escape(self, tensor, how):
            self.observed = (*self.observed, (tensor, how))

    observer, x = Observer(), tf.constant(1.0)
    with use_recorders([observer]):
        print_to_string([x])
    ((tensor, how),) = observer.observed
    assert tensor is x
    assert how == "print"


def test_messages():
    assert_raises(
        lambda: tf.print(1, output_stream="nowhere"),
        ValueError,
        "Unsupported output stream, logging level, or file: 'nowhere'. Expected an object with a "
        "`write` method, a function, or 'file://' and a path.",
    )
    assert_raises(
        lambda: tf.print(1, shade="red"),
        ValueError,
        "Unrecognized keyword arguments for tf.print: {'shade': 'red'}",
    )
