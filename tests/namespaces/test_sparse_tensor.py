"""SparseTensor: attributes, operators, nested structures, specs and tapes."""

import copy
import pickle

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises


def sparse(values=(1.0, 2.0)):
    return tf.SparseTensor([[0, 1], [1, 0]], list(values), [2, 2])


def test_attributes():
    x = sparse()

    assert x.indices.dtype is x.dense_shape.dtype is tf.int64
    assert x.indices.numpy().tolist() == [[0, 1], [1, 0]]
    assert x.values.numpy().tolist() == [1.0, 2.0]
    assert x.dense_shape.numpy().tolist() == [2, 2]
    assert (x.dtype, x.shape, x.get_shape()) == (tf.float32, (2, 2), (2, 2))
    assert tf.is_tensor(x)
    assert tf.sparse.SparseTensor is tf.SparseTensor


def test_repr_agrees_with_tensorflow():
    x = tf.SparseTensor([[1]], [5.0], [3])

    assert (
        repr(x)
        == str(x)
        == (
            "SparseTensor(indices=tf.Tensor([[1]], shape=(1, 1), dtype=int64), "
            "values=tf.Tensor([5.], shape=(1,), dtype=float32), "
            "dense_shape=tf.Tensor([3], shape=(1,), dtype=int64))"
        )
    )


def test_string_values_and_empty_tensors():
    assert tf.SparseTensor([[0]], ["a"], [1]).dtype is tf.string
    empty = tf.SparseTensor(np.zeros([0, 2], np.int64), [], tf.TensorShape([2, 3]))
    assert (empty.dtype, empty.shape) == (tf.float32, (2, 3))


def test_with_values_and_from_value():
    x = sparse()
    doubled = x.with_values(x.values * 2)

    assert doubled.values.numpy().tolist() == [2.0, 4.0]
    assert doubled.indices is x.indices
    assert tf.SparseTensor.from_value(x) is x

    class Value:
        indices, values, dense_shape = [[0, 1]], [1.0], [2, 2]

    assert tf.SparseTensor.from_value(Value()).shape == (2, 2)


def test_copies_and_pickles():
    for copied in (copy.deepcopy(sparse()), pickle.loads(pickle.dumps(sparse()))):
        assert copied.values.numpy().tolist() == [1.0, 2.0]
        assert copied.shape == (2, 2)


def test_set_shape_checks_compatibility():
    x = sparse()
    x.set_shape([None, 2])

    assert x.shape == (2, 2)
    with pytest.raises(ValueError, match="incompatible"):
        x.set_shape([3, 2])


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        (
            ([[0, 1]], [1.0, 2.0], [2, 2]),
            ValueError,
            "Dimensions 1 and 2 are not compatible: indices and values of a SparseTensor must have "
            "the same number of elements.",
        ),
        (
            ([[0, 1]], [1.0], [2, 2, 2]),
            ValueError,
            "Dimensions 2 and 3 are not compatible: indices and dense_shape of a SparseTensor must "
            "have the same rank.",
        ),
        (([0, 1], [1.0, 2.0], [2, 2]), ValueError, "Shape (2,) must have rank 2"),
        (([[0, 1]], [[1.0]], [2, 2]), ValueError, "Shape (1, 1) must have rank 1"),
        (
            ([[0.0, 1.0]], [1.0], [2, 2]),
            TypeError,
            "Cannot convert [[0.0, 1.0]] to a tensor of dtype int64.",
        ),
    ],
)
def test_inconsistent_components(parts, error, message):
    assert_raises(lambda: tf.SparseTensor(*parts), error, message)


def test_from_value_of_another_type():
    assert_raises(
        lambda: tf.SparseTensor.from_value(3),
        TypeError,
        "Argument sparse_tensor_value=3 is neither a SparseTensor nor a SparseTensorValue.",
    )


UNARY = [
    tf.abs, tf.identity, tf.stop_gradient, tf.negative, tf.sign, tf.sqrt, tf.square, tf.tanh,
    tf.sin, tf.asin, tf.tan, tf.atan, tf.asinh, tf.atanh, tf.math.erf,
    tf.math.bessel_i0e, tf.math.bessel_i1e,
]  # fmt: skip


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_zero_preserving_functions_apply_to_the_values(function):
    x = sparse()

    np.testing.assert_array_equal(function(x).values, function(x.values))
    assert function(x).indices is x.indices


def test_cast_rank_shape_and_size():
    x = sparse()

    assert tf.cast(x, tf.int32).dtype is tf.cast(x=x, dtype=tf.int32).dtype is tf.int32
    assert isinstance(tf.identity(input=x), tf.SparseTensor)
    assert isinstance(np.ones([2, 2], np.float32) * x, tf.SparseTensor)
    assert int(tf.rank(x)) == 2
    assert tf.shape(x).numpy().tolist() == [2, 2]
    assert int(tf.size(x)) == 4


DENSE_ONLY = {
    "convert_to_tensor": tf.convert_to_tensor,
    "constant": tf.constant,
    "exp": tf.exp,
    "add": lambda x: tf.add(x, 1.0),
    "reduce_sum": tf.reduce_sum,
    "stack": lambda x: tf.stack([x, x]),
    "operator": lambda x: tf.ones([2, 2]) + x,
    "divisor": lambda x: tf.ones([2, 2]) / x,
    "variable": lambda x: tf.Variable(tf.ones([2, 2])) @ x,
    "Variable": tf.Variable,
}


@pytest.mark.parametrize("call", DENSE_ONLY.values(), ids=DENSE_ONLY)
def test_dense_operations_raise(call):
    x = sparse()
    assert_raises(
        lambda: call(x),
        tf.values.composites.NotOneTensor,
        f"Attempt to convert a value ({x!r}) with an unsupported type "
        "(<class 'retrograde.sparse.tensor.SparseTensor'>) to a tensor. Make it dense with "
        "tf.sparse.to_dense first, or use an operation of tf.sparse.",
    )
    assert issubclass(tf.values.composites.NotOneTensor, ValueError)


@pytest.mark.parametrize(
    "call", [lambda x: x + x, lambda x: 1.0 + x, lambda x: -x, lambda x: x // 2.0, lambda x: x[0]]
)
def test_unsupported_operators_raise(call):
    with pytest.raises(TypeError, match="SparseTensor"):
        call(sparse())


def test_tape_watches_the_values():
    x = sparse()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sparse.to_dense(x) * [[1.0, 2.0], [3.0, 4.0]]

    assert tape.gradient(y, x.values).numpy().tolist() == [2.0, 3.0]


@pytest.mark.parametrize("role", ["source", "target", "output gradient"])
def test_sparse_tensors_cannot_be_sources_or_targets_of_gradients(role):
    x = sparse()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sparse.to_dense(x)
    calls = {
        "source": lambda: tape.gradient(y, x),
        "target": lambda: tape.gradient([x], x.values),
        "output gradient": lambda: tape.gradient(y, x.values, output_gradients=x),
    }
    assert_raises(
        calls[role],
        ValueError,
        "Type SparseTensor is not supported as a gradient source or gradient target. Use the "
        "tensor in its attribute `values`.",
    )


def test_tape_watches_the_values_of_indexed_slices():
    x = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([2, 2]))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.convert_to_tensor(x) * 2.0

    assert tape.gradient(y, x.values).numpy().tolist() == [[2.0, 2.0]]


class TestNest:
    def test_is_a_leaf_without_expand_composites(self):
        x = sparse()

        assert tf.nest.flatten([x, 1]) == [x, 1]
        parts = tf.nest.flatten([x, 1], expand_composites=True)

        assert parts[0] is x.indices
        assert parts[1] is x.values
        assert parts[2] is x.dense_shape
        assert not tf.nest.is_nested(x)

    def test_pack_and_map_its_components(self):
        x = sparse()
        parts = [x.indices, x.values + 1.0, x.dense_shape]
        packed = tf.nest.pack_sequence_as({"a": x}, parts, expand_composites=True)["a"]
        mapped = tf.nest.map_structure(tf.identity, x, expand_composites=True)

        assert packed.values.numpy().tolist() == [2.0, 3.0]
        assert isinstance(mapped, tf.SparseTensor)

    def test_indexed_slices_have_two_or_three_components(self):
        values, indices = tf.ones([2]), tf.constant([0, 1])
        two = tf.IndexedSlices(values, indices)
        three = tf.IndexedSlices(values, indices, tf.constant([2]))

        assert len(tf.nest.flatten(two, expand_composites=True)) == 2
        assert len(tf.nest.flatten(three, expand_composites=True)) == 3
        mapped = tf.nest.map_structure(tf.identity, three, expand_composites=True)
        assert mapped.dense_shape.numpy().tolist() == [2]

    def test_same_structure(self):
        x, slices = sparse(), tf.IndexedSlices(tf.ones([2]), tf.constant([0, 1]))

        tf.nest.assert_same_structure([x], [x], expand_composites=True)
        tf.nest.assert_same_structure([x], [tf.ones([2])])
        with pytest.raises(ValueError, match="SparseTensor and Tensor are not both composite"):
            tf.nest.assert_same_structure([x], [tf.ones([2])], expand_composites=True)
        with pytest.raises(TypeError, match="types SparseTensor and IndexedSlices differ"):
            tf.nest.assert_same_structure([x], [slices], expand_composites=True)


class TestSpecs:
    def test_of_sparse_tensors(self):
        spec = tf.SparseTensorSpec([None, 2])

        assert repr(spec) == "SparseTensorSpec(TensorShape([None, 2]), tf.float32)"
        assert (spec.shape, spec.dtype) == (tf.TensorShape([None, 2]), tf.float32)
        assert spec.value_type is tf.SparseTensor
        assert isinstance(spec, tf.TypeSpec)
        assert spec.is_compatible_with(sparse())
        assert not spec.is_compatible_with(tf.ones([2, 2]))
        assert not spec.is_compatible_with(tf.SparseTensor([[0, 0]], [1], [2, 2]))
        assert spec == tf.SparseTensorSpec([None, 2])
        assert hash(spec) == hash(tf.SparseTensorSpec([None, 2]))
        assert tf.SparseTensorSpec([2, 2]).is_subtype_of(spec)
        assert tf.type_spec_from_value(sparse()) == tf.SparseTensorSpec.from_value(sparse())
        assert tf.SparseTensorSpec().shape.rank is None

    def test_common_type(self):
        a, b = tf.SparseTensorSpec([2, 2]), tf.SparseTensorSpec([3, 2])

        assert a.most_specific_compatible_type(b) == tf.SparseTensorSpec([None, 2])
        assert a.most_specific_common_supertype([tf.TensorSpec([2, 2])]) is None
        assert_raises(
            lambda: a.most_specific_compatible_type(tf.SparseTensorSpec([2, 2], tf.int32)),
            ValueError,
            "No TypeSpec is compatible with both SparseTensorSpec(TensorShape([2, 2]), tf.float32) "
            "and SparseTensorSpec(TensorShape([2, 2]), tf.int32)",
        )

    def test_of_indexed_slices(self):
        two = tf.IndexedSlices(tf.ones([2]), tf.constant([0, 1]))
        three = tf.IndexedSlices(tf.ones([2]), tf.constant([0, 1]), tf.constant([2]))

        assert repr(tf.IndexedSlicesSpec()) == (
            "IndexedSlicesSpec(TensorShape(None), tf.float32, tf.int64, None, TensorShape([None]))"
        )
        assert repr(tf.type_spec_from_value(three)) == (
            "IndexedSlicesSpec(TensorShape([2]), tf.float32, tf.int32, tf.int32, TensorShape([2]))"
        )
        assert tf.IndexedSlicesSpec([None], indices_dtype=tf.int32).is_compatible_with(two)
        assert not tf.IndexedSlicesSpec([None]).is_compatible_with(two)
        assert not tf.type_spec_from_value(two).is_compatible_with(three)
        assert tf.type_spec_from_value(two).value_type is tf.IndexedSlices

    def test_type_spec_is_abstract(self):
        with pytest.raises(TypeError, match="abstract"):
            tf.TypeSpec()

    def test_of_values_that_are_not_tensors(self):
        assert tf.type_spec_from_value([1, 2]) == tf.TensorSpec([2], tf.int32)
        assert_raises(
            lambda: tf.type_spec_from_value(tf),
            TypeError,
            f"Could not build a TypeSpec for {tf!r} of unsupported type <class 'module'>. "
            "Expected a tensor, or a value that converts to one.",
        )


ERRORS = {
    "unsorted": (
        lambda: tf.sparse.to_dense(tf.SparseTensor([[1], [0]], [1.0, 2.0], [2])),
        "to_dense: indices[1] = [0] is out of order. Many sparse operations need sorted "
        "indices: use tf.sparse.reorder to create a sorted copy.",
    ),
    "repeated": (
        lambda: tf.sparse.to_dense(tf.SparseTensor([[1], [1]], [1.0, 2.0], [2])),
        "to_dense: indices[1] = [1] is repeated.",
    ),
    "outside": (
        lambda: tf.sparse.to_dense(tf.SparseTensor([[0, 5]], [1.0], [2, 2]), None, False),
        "to_dense: indices[0] = [0, 5] is out of bounds: need 0 <= index < [2, 2].",
    ),
    "default": (
        lambda: tf.sparse.to_dense(sparse(), [7.0]),
        "to_dense: default_value should be a scalar. Received: shape (1,).",
    ),
    "no_axes": (
        lambda: tf.sparse.from_dense(3.0),
        "from_dense: expected a tensor with at least one axis. Received: shape ().",
    ),
    "negative": (
        lambda: tf.sparse.eye(-1),
        "eye: expected sizes >= 0. Received: -1 rows and -1 columns.",
    ),
}


class TestConversion:
    def test_from_dense_and_back(self):
        dense = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, np.nan]])
        x = tf.sparse.from_dense(dense)

        assert x.indices.numpy().tolist() == [[0, 1], [1, 0], [1, 2]]
        np.testing.assert_array_equal(tf.sparse.to_dense(x), dense)

    @pytest.mark.parametrize("dense", [[0, 3], [True, False], ["", "a"]])
    def test_zeros_of_other_dtypes(self, dense):
        x = tf.sparse.from_dense(dense)

        assert x.values.shape == (1,)
        assert tf.sparse.to_dense(x).numpy().tolist() == tf.constant(dense).numpy().tolist()

    def test_default_value(self):
        assert tf.sparse.to_dense(sparse(), 7).numpy().tolist() == [[7.0, 1.0], [2.0, 7.0]]

    def test_eye(self):
        x = tf.sparse.eye(3, 2, tf.int32)

        assert x.dtype is tf.int32
        assert tf.sparse.to_dense(x).numpy().tolist() == [[1, 0], [0, 1], [0, 0]]
        assert tf.sparse.eye(0).shape == (0, 0)

    def test_repeated_and_unsorted_indices(self):
        unsorted = tf.SparseTensor([[1], [0]], [1.0, 2.0], [2])
        repeated = tf.SparseTensor([[1], [1]], [1.0, 2.0], [2])

        assert tf.sparse.to_dense(unsorted, validate_indices=False).numpy().tolist() == [2.0, 1.0]
        assert tf.sparse.to_dense(repeated, validate_indices=False).numpy().tolist() == [0.0, 2.0]

    @pytest.mark.parametrize("case", ERRORS)
    def test_errors(self, case):
        call, message = ERRORS[case]

        assert_raises(call, tf.errors.InvalidArgumentError, message)

    def test_wrong_types(self):
        assert_raises(
            lambda: tf.sparse.to_dense(3), TypeError, "Input must be a SparseTensor. Received: 3."
        )
        assert_raises(
            lambda: tf.sparse.eye(3, dtype=tf.string),
            TypeError,
            "eye: the dtype must be numeric or bool. Received: string.",
        )
