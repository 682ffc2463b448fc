"""tf.strings, tf.as_string, tf.edit_distance and other functions of strings and sequences."""

import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.testing import check_gradients
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_raises, float64

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "string_results.json").read_text())


@pytest.mark.parametrize("call", EXPECTED)
def test_result_agrees_with_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, EXPECTED[call]), f"got {actual}, expected {EXPECTED[call]}"


OFFSETS = {
    b"": [],
    "aé€𝄞".encode(): [0, 1, 3, 6],
    b"h\xff\xc3\xa9x": [0, 1, 2, 4],
    b"\xe2\x82x": [0, 2],
    b"\xf0\x9d": [0],
}


@pytest.mark.parametrize(("string", "expected"), OFFSETS.items())
def test_offsets_of_characters(string, expected):
    _, offsets = tf.strings.unicode_decode_with_offsets([string], "UTF-8")

    assert offsets.to_list() == [expected]


def test_control_characters_can_be_replaced():
    y = tf.strings.unicode_transcode("a\tb", "UTF-8", "UTF-8", "replace", ord("?"), True)

    assert y.numpy() == b"a?b"


def test_invalid_code_points_can_be_ignored():
    y = tf.strings.unicode_encode([104, 0xD800], "UTF-8", errors="ignore")

    assert y.numpy() == b"h"


def test_ragged_tensors_of_rank_3():
    x = tf.ragged.constant([[["a", "b"], ["c"]], [["d", "e", "f"]]])
    points = tf.ragged.constant([[[104, 105]], [[]]])

    assert tf.strings.ngrams(x, 2).to_list() == [[[b"a b"], []], [[b"d e", b"e f"]]]
    assert tf.strings.unicode_encode(points, "UTF-8").to_list() == [[b"hi"], [b""]]
    assert tf.strings.reduce_join(x).numpy() == b"abcdef"
    assert tf.strings.reduce_join(x, keepdims=True).shape == (1, 1, 1)
    joined = tf.strings.reduce_join(x.values, axis=1, keepdims=True)
    assert joined.numpy().tolist() == [[b"ab"], [b"c"], [b"def"]]


def test_addition_concatenates_and_broadcasts_strings():
    x = tf.constant([["a"], ["b"]])

    assert (x + tf.constant(["c", "d"])).numpy().tolist() == [[b"ac", b"ad"], [b"bc", b"bd"]]
    assert ("x" + tf.ragged.constant([["a"], []])).to_list() == [[b"xa"], []]
    assert tf.math.add("a", x).shape == (2, 1)


def test_ngrams_can_preserve_short_rows_with_their_padding():
    row = ["a"]

    short = tf.strings.ngrams(row, 4, preserve_short_sequences=True)
    padded = tf.strings.ngrams(
        row, 4, pad_values="_", padding_width=1, preserve_short_sequences=True
    )
    assert short.numpy().tolist() == [b"a"]
    assert padded.numpy().tolist() == [b"_ a _"]
    assert tf.strings.ngrams(tf.constant([], tf.string), 2).shape == (0,)


def test_gradients_of_ragged_fill_empty_rows():
    def f(values, default):
        y = tf.ragged_fill_empty_rows([2, 0, 2], values, 4, default).output_values
        return y * y

    check_gradients(f, [float64([1.0, 2.0, 3.0]), float64(0.5)])

    index_map, g = tf.constant([3, 0, 1]), float64([1.0, 2.0, 3.0, 4.0, 5.0])
    check_gradients(lambda g: tf.ragged_fill_empty_rows_grad(index_map, g), [g])
    values, default = tf.ragged_fill_empty_rows_grad(index_map, g)
    assert (values.numpy().tolist(), float(default)) == ([4.0, 1.0, 2.0], 8.0)


INVALID = {
    "both_notations": (
        lambda: tf.as_string([1.0], scientific=True, shortest=True),
        "as_string: scientific and shortest cannot both be True.",
    ),
    "fill": (
        lambda: tf.as_string([1], fill="x"),
        "as_string: fill must be one of '', ' ', '0', '+', '-'. Received: 'x'.",
    ),
    "precision": (
        lambda: tf.as_string([1], precision=2),
        "as_string: precision, scientific and shortest require a floating dtype. Received: dtype "
        "int32.",
    ),
    "join": (
        lambda: tf.strings.join([["a", "b"], ["c"]]),
        "join: the shapes [(1,), (2,)] differ. Expected equal shapes or scalars.",
    ),
    "separator": (
        lambda: tf.strings.join(["a"], separator=["b"]),
        "join: separator must be a scalar. Received: shape (1,).",
    ),
    "unit": (
        lambda: tf.strings.length(["a"], unit="x"),
        "length: unit must be one of 'BYTE', 'UTF8_CHAR'. Received: 'x'.",
    ),
    "dtype": (
        lambda: tf.strings.length(tf.ragged.constant([[1]])),
        "Expected strings. Received: dtype int32.",
    ),
    "substr_shapes": (
        lambda: tf.strings.substr(["hello"], 1, [2]),
        "substr: pos and len should have the same shape. Received: () and (1,).",
    ),
    "substr_broadcast": (
        lambda: tf.strings.substr(["a", "b"], [0, 0, 0], [1, 1, 1]),
        "substr: the shapes (2,) and (3,) do not broadcast.",
    ),
    "substr_range": (
        lambda: tf.strings.substr(["hello"], 6, 2),
        "substr: pos 6 is out of range for the string b'hello'.",
    ),
    "to_number": (
        lambda: tf.strings.to_number(["1_0"]),
        "to_number: b'1_0' is not a number of dtype float32.",
    ),
    "segments": (
        lambda: tf.strings.unsorted_segment_join(["a"], [2], 2),
        "unsorted_segment_join: expected segment_ids in [0, 2).",
    ),
    "segment_shape": (
        lambda: tf.strings.unsorted_segment_join(["a"], [0, 1], 2),
        "unsorted_segment_join: the shape (2,) of segment_ids is not a prefix of the shape (1,) of "
        "inputs.",
    ),
    "buckets": (
        lambda: tf.strings.to_hash_bucket_fast(["a"], 0),
        "to_hash_bucket_fast: expected num_buckets >= 1. Received: 0.",
    ),
    "key": (
        lambda: tf.strings.to_hash_bucket_strong(["a"], 5, [1]),
        "to_hash_bucket_strong: expected a key of 2 integers. Received: [1].",
    ),
    "method": (
        lambda: tf.fingerprint(["a"], method="x"),
        "fingerprint: the method must be 'farmhash64'. Received: 'x'.",
    ),
    "fingerprint": (
        lambda: tf.fingerprint("a"),
        "fingerprint: expected data with at least one axis. Received: a scalar.",
    ),
    "pattern": (
        lambda: tf.strings.regex_replace("a", "(", ""),
        "Invalid pattern: '(': missing ), unterminated subpattern at position 0.",
    ),
    "class": (
        lambda: tf.strings.regex_replace("a", "[[:foo:]]", ""),
        "Invalid pattern: unknown character class [:foo:].",
    ),
    "lookahead": (
        lambda: tf.strings.regex_full_match("a", "(?=b)"),
        "Invalid pattern: '(?=b)': '(?=' is not supported.",
    ),
    "encoding": (
        lambda: tf.strings.unicode_decode("a", "X"),
        "Unknown encoding: 'X'.",
    ),
    "decoding": (
        lambda: tf.strings.unicode_decode(b"\xff", "UTF-8", errors="strict"),
        "b'\\xff' is not valid in the encoding UTF-8.",
    ),
    "surrogate": (
        lambda: tf.strings.unicode_encode([0xD800], "UTF-8", errors="strict"),
        "unicode_encode: a code point is out of range or a surrogate.",
    ),
    "axis_twice": (
        lambda: tf.strings.reduce_join(["a"], axis=[0, -1]),
        "reduce_join: an axis is repeated. Received: [0, -1].",
    ),
    "no_code_points": (
        lambda: tf.strings.unicode_encode([1.5], "UTF-8"),
        "unicode_encode: expected integers. Received: [1.5] of dtype float32.",
    ),
    "add": (
        lambda: tf.add(["a", "b"], ["c", "d", "e"]),
        "add: strings of shapes (2,) and (3,) do not broadcast.",
    ),
    "fill_shapes": (
        lambda: tf.ragged_fill_empty_rows([0], [1.0, 2.0], 2, 0.0),
        "ragged_fill_empty_rows: value_rowids and values must be vectors of the same length. "
        "Received: shapes (1,) and (2,).",
    ),
    "fill_row": (
        lambda: tf.ragged_fill_empty_rows([5], [1.0], 2, 0.0),
        "ragged_fill_empty_rows: row 5 at position 0 is not in [0, 2).",
    ),
    "fill_grad": (
        lambda: tf.ragged_fill_empty_rows_grad([5], [1.0]),
        "ragged_fill_empty_rows_grad: expected indices in [0, 1).",
    ),
    "edit_distance": (
        lambda: tf.edit_distance(tf.sparse.from_dense([1]), tf.sparse.from_dense([1])),
        "edit_distance: expected equal ranks of at least 2. Received: shapes (1,) and (1,).",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_arguments(case):
    call, message = INVALID[case]

    assert_raises(call, tf.errors.InvalidArgumentError, message)


OTHER_ERRORS = {
    "width": (
        lambda: tf.strings.ngrams(["a"], 0),
        ValueError,
        "ngrams: expected widths of at least 1. Received: [0].",
    ),
    "ngrams_scalar": (
        lambda: tf.strings.ngrams("a", 1),
        ValueError,
        "ngrams: expected strings along at least one axis. Received: a scalar.",
    ),
    "code_point": (
        lambda: tf.strings.unicode_encode(104, "UTF-8"),
        ValueError,
        "unicode_encode: expected at least one axis of code points. Received: a scalar.",
    ),
    "columns_of_csv": (
        lambda: tf.io.decode_csv("1,2", [[0], [0]], select_cols=[1, 0]),
        ValueError,
        "decode_csv: `select_cols` must increase, with one column for each of `record_defaults`. "
        "Received: [1, 0] for 2 defaults.",
    ),
    "no_strings": (
        lambda: tf.strings.length([1]),
        TypeError,
        "Cannot convert [1] to a tensor of dtype string.",
    ),
    "format": (
        lambda: tf.strings.format("{} {}", (1,)),
        ValueError,
        "format: the template has 2 placeholders. Received: 1 inputs.",
    ),
    "axis": (
        lambda: tf.strings.reduce_join([["a"]], axis=2),
        tf.errors.OutOfRangeError,
        "reduce_join: axis 2 is out of range for 2 axes.",
    ),
    "ragged_axis": (
        lambda: tf.strings.reduce_join(tf.ragged.constant([[["a"]]]), axis=1),
        ValueError,
        "reduce_join: a RaggedTensor with 3 axes can be joined only along all of them.",
    ),
    "edit_distance": (
        lambda: tf.edit_distance(3, tf.sparse.from_dense([[1]])),
        TypeError,
        "Hypothesis must be a SparseTensor. Received: 3.",
    ),
}


@pytest.mark.parametrize("case", OTHER_ERRORS)
def test_other_errors(case):
    assert_raises(*OTHER_ERRORS[case])


def test_fingerprint_of_numbers_depends_on_their_bytes():
    same_bytes = tf.bitcast(tf.constant([[1.0, 2.0]]), tf.int32)

    np.testing.assert_array_equal(tf.fingerprint([[1.0, 2.0]]), tf.fingerprint(same_bytes))
