"""RaggedTensor and tf.ragged: values, gradients and errors."""

import copy
import json
import pathlib
import pickle

import numpy as np
import pytest

import retrograde as tf
from retrograde.testing import check_gradients
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_raises, float64

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "ragged_results.json").read_text())


def make_ragged(values, lengths=(2, 0, 1, 3)):
    return tf.RaggedTensor.from_row_lengths(values, list(lengths))


def make_nested(values):
    return tf.RaggedTensor.from_nested_row_lengths(values, [[2, 0, 1], [2, 1, 3]])


@pytest.mark.parametrize("call", EXPECTED)
def test_result_agrees_with_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, EXPECTED[call]), f"got {actual}, expected {EXPECTED[call]}"


# Gradients

COLUMN = [[2.0], [3.0], [5.0], [7.0]]

SPEC = tf.RaggedTensorSpec([None], tf.float64, ragged_rank=0)

GRADIENTS = {
    "multiply": lambda v: (make_ragged(v) * make_ragged(v)).flat_values,
    "column": lambda v: (make_ragged(v) * tf.constant(COLUMN, tf.float64)).flat_values,
    "broadcast": lambda v: (make_ragged(v) * tf.reshape(v[:4], [4, 1])).flat_values,
    "scalar": lambda v: (v[0] / make_ragged(v)).flat_values,
    "where": lambda v: (
        tf.where(make_ragged(v) > 0.5, make_ragged(v), make_ragged(v) ** 3.0).flat_values
    ),
    "sum": lambda v: tf.reduce_sum(make_ragged(v), axis=1),
    "sum_rows": lambda v: tf.reduce_sum(make_ragged(v), axis=0),
    "sum_nested": lambda v: tf.reduce_sum(make_nested(v), axis=1).flat_values,
    "sum_outer": lambda v: tf.reduce_sum(make_nested(v), axis=0).flat_values,
    "mean": lambda v: tf.reduce_mean(make_ragged(v), axis=0),
    "prod": lambda v: tf.reduce_prod(make_ragged(v), axis=1),
    "max": lambda v: tf.reduce_max(make_ragged(v), axis=1)[2:],
    "min": lambda v: tf.reduce_min(make_ragged(v), axis=0),
    "logsumexp": lambda v: tf.reduce_logsumexp(make_ragged(v), axis=0),
    "variance": lambda v: tf.math.reduce_variance(make_ragged(v), axis=0),
    "softmax": lambda v: tf.nn.softmax(make_ragged(v)).flat_values,
    "to_tensor": lambda v: make_ragged(v).to_tensor(default_value=v[1]),
    "truncated": lambda v: make_ragged(v).to_tensor(shape=[None, 2]),
    "to_sparse": lambda v: make_ragged(v).to_sparse().values,
    "from_tensor": lambda v: (
        tf.RaggedTensor.from_tensor(tf.reshape(v, [2, 3]), lengths=[1, 3]).flat_values
    ),
    "from_sparse": lambda v: (
        tf.RaggedTensor.from_sparse(
            tf.SparseTensor([[0, 0], [2, 0], [2, 1]], v[:3], [3, 2])
        ).flat_values
    ),
    "row": lambda v: make_ragged(v)[3],
    "rows": lambda v: make_ragged(v)[::2].flat_values,
    "columns": lambda v: make_ragged(v)[:, :2].flat_values,
    "concat": lambda v: tf.concat([make_ragged(v), make_ragged(v * v)], axis=1).flat_values,
    "concat_dense": lambda v: tf.concat([make_ragged(v), tf.reshape(v[:4], [4, 1])], 1).flat_values,
    "stack": lambda v: tf.stack([make_ragged(v), make_ragged(v * v)], axis=1).flat_values,
    "gather": lambda v: tf.gather(make_ragged(v), [3, 0, 3]).flat_values,
    "gather_within": lambda v: (
        tf.gather(
            make_ragged(v), tf.ragged.constant([[1], [], [0, 0], [2]]), batch_dims=1
        ).flat_values
    ),
    "lookup": lambda v: (
        tf.nn.embedding_lookup(tf.reshape(v, [3, 2]), tf.ragged.constant([[2, 2], [0]])).flat_values
    ),
    "expand_dims": lambda v: tf.expand_dims(make_ragged(v), 1).flat_values,
    "reverse": lambda v: tf.reverse(make_ragged(v), [0, 1]).flat_values,
    "boolean_mask": lambda v: (
        tf.ragged.boolean_mask(make_ragged(v), make_ragged(v) > 0.0).flat_values
    ),
    "map_flat_values": lambda v: tf.ragged.map_flat_values(tf.sin, make_ragged(v)).flat_values,
    "partitions": lambda v: (
        tf.ragged.stack_dynamic_partitions(v, [1, 0, 1, 1, 0, 2], 4).flat_values
    ),
    "tile": lambda v: tf.tile(make_ragged(v), [2, 3]).flat_values,
    "squeeze": lambda v: tf.squeeze(tf.expand_dims(make_ragged(v), 1), 1).flat_values,
    "split": lambda v: tf.split(make_ragged(v), [1, 3])[1].flat_values,
    "cumsum": lambda v: tf.cumsum(make_ragged(v), axis=1).flat_values,
    "gather_nd": lambda v: tf.gather_nd(make_ragged(v), [[3, 2], [0, 1], [3, 2]]),
    "segments": lambda v: (
        tf.math.unsorted_segment_prod(make_ragged(v), [0, 1, 1, 0], 3).flat_values
    ),
    "map_fn": lambda v: (
        tf.map_fn(
            lambda row: row * tf.reduce_sum(row), make_ragged(v), fn_output_signature=SPEC
        ).flat_values
    ),
    "map_fn_nested": lambda v: tf.map_fn(
        lambda row: tf.reduce_sum(row * row), make_nested(v), fn_output_signature=tf.float64
    ),
    "outer": lambda v: (
        (make_nested(v) * make_ragged(v[:3], (2, 0, 1))[:, :, tf.newaxis]).flat_values
    ),
    "merge_dims": lambda v: make_nested(v).merge_dims(1, 2).flat_values,
    "leaky_relu": lambda v: tf.nn.leaky_relu(make_ragged(v)).flat_values,
}


@pytest.mark.parametrize("f", GRADIENTS.values(), ids=GRADIENTS)
def test_first_and_second_order_gradients_agree_with_finite_differences(f):
    """Checks squares, so that linear functions have a second derivative as well."""
    check_gradients(lambda v: f(v) * f(v), [float64([0.7, -1.2, 0.4, 1.9, 0.3, -0.8])])


class TestTape:
    def test_gradient_of_a_ragged_source_is_ragged(self):
        x = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        g = tape.gradient(y, {"x": x})["x"]

        assert g.to_list() == [[2.0, 4.0], [], [6.0]]
        assert g.row_splits is x.row_splits

    def test_nested_source(self):
        x = make_nested([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x * x, axis=[1, 2])

        assert tape.gradient(y, x).to_list() == [[[2.0, 4.0], [6.0]], [], [[8.0, 10.0, 12.0]]]

    def test_gathered_rows_have_a_dense_gradient(self):
        x = tf.ragged.constant([[1.0, 2.0], [3.0]])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.gather(x, [1, 1])

        assert tape.gradient(y, x).to_list() == [[0.0, 0.0], [2.0]]

    @pytest.mark.parametrize("flat", [False, True])
    def test_output_gradients(self, flat):
        x = tf.ragged.constant([[1.0, 2.0], [3.0]])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        weights = x.flat_values if flat else x

        assert tape.gradient(y, x, output_gradients=weights).to_list() == [[2.0, 8.0], [18.0]]

    def test_unconnected(self):
        x = tf.ragged.constant([[1.0, 2.0], [3.0]])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.constant(1.0)

        assert tape.gradient(y, x) is None
        zeros = tape.gradient(y, x, unconnected_gradients="zero")
        assert zeros.to_list() == [[0.0, 0.0], [0.0]]

    def test_second_order(self):
        x = tf.ragged.constant([[1.0, 2.0], [3.0]])
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = x**3.0
            g = inner.gradient(y, x)

        assert outer.gradient(g, x).to_list() == [[6.0, 12.0], [18.0]]


# Conversion and Python protocols


def test_repr():
    assert repr(tf.ragged.constant([[0.1, 2.0], []])) == "<tf.RaggedTensor [[0.1, 2.0], []]>"
    assert repr(tf.ragged.constant([["a"], []])) == "<tf.RaggedTensor [[b'a'], []]>"
    assert repr(make_nested([1, 2, 3, 4, 5, 6])) == (
        "<tf.RaggedTensor [[[1, 2], [3]], [], [[4, 5, 6]]]>"
    )
    assert repr(tf.ragged.constant([[1, 100]])) == "<tf.RaggedTensor [[1, 100]]>"
    many = repr(tf.ragged.constant([[i] * 200 for i in range(9)]))
    assert "..." in many
    assert len(many) < 7000


def test_numpy():
    rows = tf.ragged.constant([[1, 2], [3]]).numpy()

    assert rows.dtype == object
    assert [row.tolist() for row in rows] == [[1, 2], [3]]
    assert tf.ragged.constant([[1, 2], [3, 4]]).numpy().tolist() == [[1, 2], [3, 4]]
    assert tf.RaggedTensor.from_row_lengths([], []).numpy().shape == (0,)


def test_copies_and_pickles():
    x = make_nested([1, 2, 3, 4, 5, 6])
    for copied in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert copied.to_list() == x.to_list()


def test_iteration_yields_rows():
    assert [row.numpy().tolist() for row in tf.ragged.constant([[1, 2], [3]])] == [[1, 2], [3]]
    assert [row.to_list() for row in make_nested([1, 2, 3, 4, 5, 6])] == [
        [[1, 2], [3]],
        [],
        [[4, 5, 6]],
    ]


def test_bool_and_hash_raise():
    x = tf.ragged.constant([[1]])
    assert_raises(
        lambda: bool(x),
        TypeError,
        "A RaggedTensor cannot be converted to bool: use tf.reduce_any or tf.reduce_all.",
    )
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


def test_constructor_is_private():
    assert_raises(
        lambda: tf.RaggedTensor([1], None),
        ValueError,
        "Create RaggedTensors with methods such as RaggedTensor.from_row_lengths or with "
        "tf.ragged.constant, not with this constructor.",
    )


def test_dense_operations_raise():
    x = tf.ragged.constant([[1]])
    assert tf.is_tensor(x)
    for call in (tf.convert_to_tensor, tf.Variable, tf.transpose):
        with pytest.raises(ValueError, match=r"Make it dense with its method to_tensor\(\) first"):
            call(x)


def test_different_row_split_dtypes_become_int64():
    inner = tf.RaggedTensor.from_row_splits([1, 2], tf.constant([0, 1, 2], tf.int32))
    outer = tf.RaggedTensor.from_row_splits(inner, tf.constant([0, 2], tf.int64))

    assert {splits.dtype for splits in outer.nested_row_splits} == {tf.int64}


def test_operators_with_arrays_and_tensors_on_the_left():
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    column = np.array([[10.0], [20.0]], np.float32)

    assert (column * x).to_list() == (tf.constant(column) * x).to_list() == [[10.0, 20.0], [60.0]]
    assert (tf.Variable(column) - x).to_list() == [[9.0, 8.0], [17.0]]
    assert (1.0 / x).to_list()[0] == [1.0, 0.5]
    assert (tf.constant(2.0) > x).to_list() == [[True, False], [False]]


def test_keyword_arguments():
    x, column = tf.ragged.constant([[1.0, 2.0], [3.0]]), tf.constant([[1.0], [2.0]])
    loss = tf.nn.sigmoid_cross_entropy_with_logits

    assert tf.cast(x=x, dtype=tf.int32).to_list() == [[1, 2], [3]]
    assert tf.identity(input=x).to_list() == tf.abs(x=x).to_list() == [[1.0, 2.0], [3.0]]
    assert tf.math.add(x=x, y=column).to_list() == [[2.0, 3.0], [5.0]]
    assert tf.clip_by_value(x, clip_value_min=column, clip_value_max=2.0).to_list() == [
        [1.0, 2.0],
        [2.0],
    ]
    by_keyword, by_position = loss(labels=x, logits=x), loss(x, x)
    assert by_keyword.to_list() == by_position.to_list()


def test_dispatch_does_not_format_an_error_message(monkeypatch):
    monkeypatch.setattr(tf.RaggedTensor, "__repr__", None)

    assert (tf.ragged.constant([[1.0]]) + 1.0).to_list() == [[2.0]]


def test_nested_empty_rows():
    x = tf.ragged.constant([[[], [1.0]], []])

    assert tf.reduce_sum(x, axis=2).to_list() == [[0.0, 1.0], []]
    assert tf.reduce_sum(x, axis=1).to_list() == [[1.0], []]
    assert x.bounding_shape().numpy().tolist() == [2, 2, 1]


def test_print():
    lines = []
    tf.print(X, tf.ragged.constant([["a"], []]), output_stream=lines.append)
    tf.print(tf.ragged.range([8, 2]), summarize=2, output_stream=lines.append)

    assert lines == [
        "[[1.000000, 2.000000], [], [3.000000]] [['a'], []]\n",
        "[[0, 1, ..., 6, 7], [0, 1]]\n",
    ]


class TestNest:
    def test_components_are_flat_values_and_row_splits(self):
        x = make_nested([1, 2, 3, 4, 5, 6])
        parts = tf.nest.flatten(x, expand_composites=True)

        assert parts[0] is x.flat_values
        assert [p.numpy().tolist() for p in parts[1:]] == [[0, 2, 2, 3], [0, 2, 3, 6]]

    def test_packing_keeps_the_uniform_row_length(self):
        x = tf.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2)
        mapped = tf.nest.map_structure(lambda t: t * 1, [x], expand_composites=True)[0]

        assert mapped.to_list() == [[1, 2], [3, 4]]
        assert mapped.shape == (2, 2)


class TestSpec:
    def test_of_a_value(self):
        x = tf.ragged.constant([[1.0, 2.0], [3.0]])
        spec = tf.type_spec_from_value(x)

        assert repr(spec) == "RaggedTensorSpec(TensorShape([2, None]), tf.float32, 1, tf.int64)"
        assert spec == tf.RaggedTensorSpec.from_value(x)
        assert spec.value_type is tf.RaggedTensor
        assert tf.RaggedTensorSpec([None, None]).is_compatible_with(x)
        assert not tf.RaggedTensorSpec([3, None]).is_compatible_with(x)
        assert not tf.RaggedTensorSpec([None, None], tf.int32).is_compatible_with(x)
        assert spec.is_subtype_of(tf.RaggedTensorSpec([None, None]))
        assert pickle.loads(pickle.dumps(spec)) == spec

    def test_properties(self):
        spec = tf.RaggedTensorSpec([3, None, 4], tf.int32, 1, tf.int32)

        assert (spec.shape.rank, spec.dtype, spec.ragged_rank) == (3, tf.int32, 1)
        assert (spec.row_splits_dtype, spec.flat_values_spec) == (tf.int32, None)
        assert tf.RaggedTensorSpec([3, None, 4]).ragged_rank == 2
        flat = tf.RaggedTensorSpec([3, None], flat_values_spec=tf.TensorSpec([None], tf.int32))
        assert flat.dtype is tf.int32

    def test_errors(self):
        assert_raises(
            lambda: tf.RaggedTensorSpec(),
            ValueError,
            "RaggedTensorSpec: ragged_rank is required if the rank of the shape is unknown.",
        )
        assert_raises(
            lambda: tf.RaggedTensorSpec([2, None], ragged_rank=2),
            ValueError,
            "RaggedTensorSpec: ragged_rank 2 must be less than the rank 2.",
        )


X = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
TWO_ROWS = tf.ragged.constant([[1.0, 2.0], [3.0]])
R = tf.RaggedTensor

INVALID = {
    "shapes_of_ranges": (
        lambda: tf.ragged.range([0, 1], [1, 1, 1]),
        "range: shapes (2,), (3,) and () do not broadcast.",
    ),
    "no_indices": (
        lambda: tf.gather(tf.ragged.constant([[1]]), [0.0]),
        "gather: expected indices of dtype int32 or int64. Received: float32.",
    ),
    "decreasing_splits": (
        lambda: tf.ragged.row_splits_to_segment_ids([0, 3, 2]),
        "row_splits_to_segment_ids: splits must be sorted. Received: [0, 3, 2].",
    ),
    "row_splits": (
        lambda: R.from_row_splits([1, 2, 3], [0, 2, 1, 3]),
        "row_splits must start with 0, be sorted, and end with the number of values, 3. Received: "
        "[0, 2, 1, 3].",
    ),
    "row_lengths": (
        lambda: R.from_row_lengths([1, 2, 3], [2, 0]),
        "row_lengths must be nonnegative and sum to the number of values, 3. Received: [2, 0].",
    ),
    "value_rowids": (
        lambda: R.from_value_rowids([1, 2, 3], [0, 2, 1]),
        "value_rowids must be nonnegative and sorted, one for each of 3 values. Received: "
        "[0, 2, 1].",
    ),
    "from_sparse": (
        lambda: R.from_sparse(tf.SparseTensor([[0, 1]], [1], [1, 2])),
        "from_sparse: the values of each row must be sorted and at its start, without gaps.",
    ),
    "rows": (
        lambda: X + TWO_ROWS,
        "Two RaggedTensors of shapes (3, None) and (2, None) cannot be broadcast. Expected equal "
        "row lengths.",
    ),
    "broadcast": (
        lambda: X + tf.ones([3, 2]),
        "A tensor of shape (3, 2) does not broadcast to a RaggedTensor of shape (3, None). "
        "Expected 1 or the length of all rows along each axis.",
    ),
    "too_many_axes": (
        lambda: X + tf.ones([1, 1, 1]),
        "A tensor of shape (1, 1, 1) does not broadcast to a RaggedTensor of shape (3, None). "
        "Expected 1 or the length of all rows along each axis.",
    ),
    "concat": (
        lambda: tf.concat([X, TWO_ROWS], 1),
        "concat: the tensors have [3, 2] rows. Expected equal numbers.",
    ),
    "concat_rows": (
        lambda: tf.concat([make_nested([1] * 6), make_nested([1] * 6)[::-1]], 2),
        "concat: the tensors have rows of different lengths.",
    ),
    "uniform_index": (
        lambda: R.from_tensor([[1, 2]])[:, 5],
        "Index 5 is out of bounds for rows of length 2.",
    ),
    "gather": (lambda: tf.gather(X, [5]), "gather: index 5 is not in [0, 3)."),
    "gather_within": (
        lambda: tf.gather(X, tf.ragged.constant([[5], [], []]), batch_dims=1),
        "gather: index 5 is outside its row.",
    ),
    "mask": (
        lambda: tf.ragged.boolean_mask(X, [[True], [True], [True]]),
        "boolean_mask: data and mask have rows of different lengths.",
    ),
    "outer": (
        lambda: make_nested([1, 2, 3, 4, 5, 6]) * tf.ragged.constant([[1, 2], [3], []])[:, :, None],
        "Two RaggedTensors of shapes (3, None, None) and (3, None, 1) cannot be broadcast. "
        "Expected equal row lengths.",
    ),
    "tile": (
        lambda: tf.tile(X, [2]),
        "tile: expected 2 nonnegative integers, one for each axis. Received: [2].",
    ),
    "squeeze": (
        lambda: tf.squeeze(X, 1),
        "squeeze: axis 1 has the lengths [2, 0, 1]. Expected 1.",
    ),
    "split": (
        lambda: tf.split(X, [1, 1]),
        "split: 3 rows cannot be split into [1, 1].",
    ),
    "split_evenly": (
        lambda: tf.split(X, 2),
        "split: 3 rows cannot be split evenly into 2 parts.",
    ),
    "dynamic_partition": (
        lambda: tf.dynamic_partition(X, [0, 1], 2),
        "dynamic_partition: expected one partition for each of 3 rows of the RaggedTensor. "
        "Received: shape (2,).",
    ),
    "gather_nd": (lambda: tf.gather_nd(X, [[0, 5]]), "gather_nd: index 5 is out of bounds."),
    "segment_ids": (
        lambda: tf.math.unsorted_segment_sum(X, [0, 0], 2),
        "Expected one segment id in [0, 2) for each of 3 rows of the RaggedTensor. Received: "
        "[0, 0].",
    ),
    "cross": (
        lambda: tf.ragged.cross([tf.ragged.constant([["a"]]), tf.constant([["a"], ["b"]])]),
        "cross: the inputs have [1, 2] rows. Expected equal numbers.",
    ),
    "range_shape": (
        lambda: tf.ragged.range([[1]]),
        "range: expected scalars or vectors. Received: shape (1, 1).",
    ),
    "range_step": (
        lambda: tf.ragged.range([1], [2], 0),
        "range: deltas must not be zero.",
    ),
    "segments": (
        lambda: tf.ragged.segment_ids_to_row_splits([0, 5], 3),
        "segment_ids_to_row_splits: an id is not less than num_segments=3.",
    ),
    "partitions_rank": (
        lambda: tf.ragged.stack_dynamic_partitions([1], [[0]], 1),
        "stack_dynamic_partitions: expected the shape of data to start with the shape of "
        "partitions. Received: (1,) and (1, 1).",
    ),
    "partitions": (
        lambda: tf.ragged.stack_dynamic_partitions([1], [1], 1),
        "stack_dynamic_partitions: expected partitions in [0, 1).",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_arguments(case):
    call, message = INVALID[case]

    assert_raises(call, tf.errors.InvalidArgumentError, message)


VALUE_ERRORS = {
    "axis_of_concat": (
        lambda: tf.concat([tf.ragged.constant([[1]])] * 2, 2),
        "concat: axis 2 is out of range for a tensor of rank 2. Expected -2 <= axis < 2.",
    ),
    "map_fn": (
        lambda: tf.map_fn(tf.size, tf.ragged.constant([[1], [2, 3]])),
        "map_fn: expected `fn` to return rows of a RaggedTensor. Received: scalars. Pass the dtype "
        "of its results as `fn_output_signature`.",
    ),
    "range_of_int8": (
        lambda: tf.ragged.range(tf.constant([1], tf.int8)),
        "range: expected int32, int64, float32 or float64. Received: dtype int8.",
    ),
    "empty_splits": (
        lambda: R.from_row_splits([1], []),
        "row_splits must not be empty: for no rows, pass [0].",
    ),
    "splits_dtype": (
        lambda: R.from_row_splits([1], [0.0, 1.0]),
        "row_splits: expected int32 or int64 along one axis. Received: dtype float32, shape (2,).",
    ),
    "row_splits_dtype": (
        lambda: tf.ragged.constant([[1]], row_splits_dtype=tf.int16),
        "row_splits_dtype must be int32 or int64. Received: tf.int16.",
    ),
    "nrows": (
        lambda: R.from_value_rowids([1], [2], nrows=2),
        "from_value_rowids: expected nrows >= value_rowids[-1] + 1. Received: nrows=2, "
        "value_rowids[-1]=2.",
    ),
    "uniform": (
        lambda: R.from_uniform_row_length([1, 2, 3, 4], 3),
        "from_uniform_row_length: 1 rows of length 3 do not hold 4 values.",
    ),
    "uniform_zero": (
        lambda: R.from_uniform_row_length([1], 0),
        "from_uniform_row_length: 1 values cannot be partitioned into rows of length 0.",
    ),
    "scalar": (
        lambda: R.from_row_lengths(1, [1]),
        "The values of a RaggedTensor need at least one axis. Received: a scalar.",
    ),
    "with_values": (
        lambda: X.with_values([1.0]),
        "The values of this RaggedTensor have 3 rows. Received: 1 rows.",
    ),
    "from_tensor": (
        lambda: R.from_tensor([1, 2]),
        "from_tensor: a tensor of 1 axes cannot have 1 ragged axes. Expected 0 < ragged_rank < the "
        "number of axes.",
    ),
    "lengths_and_padding": (
        lambda: R.from_tensor([[1]], lengths=[1], padding=0),
        "from_tensor: lengths and padding cannot be combined. Pass only one.",
    ),
    "lengths_rank": (
        lambda: R.from_tensor([[[1]]], lengths=[1], ragged_rank=2),
        "from_tensor: lengths and padding require a single ragged axis. Received: ragged_rank=2.",
    ),
    "sparse_rank": (
        lambda: R.from_sparse(tf.SparseTensor([[0]], [1], [1])),
        "from_sparse: expected 2 axes. Received: shape (1,).",
    ),
    "merge_dims": (
        lambda: X.merge_dims(1, 0),
        "merge_dims: expected outer_axis <= inner_axis. Received: 1 and 0.",
    ),
    "to_tensor": (
        lambda: tf.ragged.constant([[[1, 2]]], ragged_rank=1).to_tensor(shape=[1, 1, 3]),
        "to_tensor: the axes after the ragged ones have the shape (2,). Received: shape=[1, 1, 3].",
    ),
    "inner_index": (
        lambda: X[:, 0],
        "Cannot index into an inner ragged dimension. Use a slice there.",
    ),
    "constant_depth": (
        lambda: tf.ragged.constant([[1], 2]),
        "constant: all scalars must have the same nesting depth.",
    ),
    "constant_rank": (
        lambda: tf.ragged.constant([[1]], ragged_rank=2),
        "constant: lists of depth 2 cannot have 2 ragged axes.",
    ),
    "stack": (
        lambda: tf.ragged.stack([]),
        "stack: expected a list of tensors. Received: [].",
    ),
    "stack_ranks": (
        lambda: tf.ragged.stack([X, [1.0]]),
        "stack: the shapes (3, None), (1,) have different ranks.",
    ),
    "concat_ranks": (
        lambda: tf.concat([X, [1.0]], 0),
        "concat: the shapes (3, None), (1,) have different ranks.",
    ),
    "gather_axis": (
        lambda: tf.gather(X, [0], axis=1),
        "gather: only rows can be gathered from a RaggedTensor. Received: axis=1, batch_dims=0.",
    ),
    "mask": (
        lambda: tf.ragged.boolean_mask(X, [True]),
        "boolean_mask: expected 3 booleans. Received: dtype bool, shape (1,).",
    ),
    "map_flat_values": (
        lambda: tf.ragged.map_flat_values(tf.reduce_sum, X),
        "map_flat_values: op must keep the number of flat values, 3. It returned the shape ().",
    ),
    "axis": (
        lambda: tf.reduce_sum(X, axis=2),
        "axis=2 is out of bounds: expected -2 <= axis < 2.",
    ),
    "squeeze": (
        lambda: tf.squeeze(X),
        "squeeze: axis is required for a RaggedTensor.",
    ),
    "split_axis": (
        lambda: tf.split(X, 2, axis=1),
        "split: a RaggedTensor can be split only along uniform axes. Received: axis=1.",
    ),
    "gather_nd": (
        lambda: tf.gather_nd(X, [0]),
        "gather_nd: a RaggedTensor requires a matrix of indices into its first axes, and "
        "batch_dims=0. Received: shape (1,), batch_dims=0.",
    ),
    "softmax": (
        lambda: tf.nn.softmax(X, axis=0),
        "softmax: a RaggedTensor supports only the last axis. Received: axis=0.",
    ),
}


@pytest.mark.parametrize("case", VALUE_ERRORS)
def test_value_errors(case):
    call, message = VALUE_ERRORS[case]

    assert_raises(call, ValueError, message)


OTHER_ERRORS = {
    "row": (lambda: X[5], IndexError, "Row 5 is out of bounds: the RaggedTensor has 3 rows."),
    "too_many": (
        lambda: X[0, 0, 0],
        tf.errors.InvalidArgumentError,
        "Too many indices for a RaggedTensor of 2 axes: 3.",
    ),
    "row_before_the_first": (
        lambda: tf.ragged.constant([[1], [2]])[-3],
        tf.errors.InvalidArgumentError,
        "Row -3 is out of bounds: the RaggedTensor has 2 rows.",
    ),
    "row_after_the_last": (
        lambda: tf.ragged.constant([[1], [2]])[2],
        IndexError,
        "Row 2 is out of bounds: the RaggedTensor has 2 rows.",
    ),
    "key": (
        lambda: X["a"],
        TypeError,
        "A RaggedTensor is indexed with integers, slices, ... and tf.newaxis. Received: 'a'.",
    ),
    "nested": (
        lambda: R.from_nested_row_splits([1], tf.constant([0, 1])),
        TypeError,
        "Expected a list of tensors, one for each ragged axis. Received: a tensor.",
    ),
    "from_sparse": (
        lambda: R.from_sparse(3),
        TypeError,
        "from_sparse: expected a SparseTensor. Received: 3.",
    ),
}


@pytest.mark.parametrize("case", OTHER_ERRORS)
def test_other_errors(case):
    assert_raises(*OTHER_ERRORS[case])


def test_reduce_all_and_reduce_any_accept_numbers():
    x = tf.ragged.constant([[0.1, 0.0], [0.3], []])

    assert tf.reduce_all(x, axis=1).numpy().tolist() == [False, True, True]
    assert tf.reduce_any(x, axis=1).numpy().tolist() == [True, True, False]
    assert not tf.reduce_all(x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_softmax_in_half_precision_is_rounded_once(dtype):
    x = tf.cast(tf.constant(np.linspace(-3.0, 3.0, 300)), dtype)

    narrow, exact = (
        tf.nn.softmax(make_ragged(v, [300])).flat_values for v in (x, tf.cast(x, "float32"))
    )

    assert narrow.dtype == dtype
    np.testing.assert_array_equal(narrow, tf.cast(exact, dtype))
