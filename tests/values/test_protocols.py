"""Protocols of TensorFlow for user classes: `__tf_tensor__` and `__tf_flatten__`.

TensorFlow computed the expected values.
"""

import dataclasses

import numpy as np
import pytest

import retrograde as tf


@dataclasses.dataclass
class Masked:
    mask: bool
    value: object

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(metadata[0], components[0])


class Three:
    def __init__(self, value=(1, 2, 3)):
        self.value = value

    def __tf_tensor__(self, dtype=None, name=None):
        return tf.convert_to_tensor(self.value, dtype=dtype, name=name)


def test_objects_with_tf_flatten_are_structures():
    masked = Masked(True, tf.constant([1]))

    assert tf.nest.is_nested(masked)
    assert [x.numpy().tolist() for x in tf.nest.flatten({"a": masked, "b": 2 * masked.value})] == [
        [1],
        [2],
    ]
    assert tf.nest.pack_sequence_as(masked, [5]) == Masked(True, 5)
    assert tf.nest.map_structure(lambda x, y: x + y, Masked(True, 1), Masked(False, 5)) == Masked(
        True, 6
    )
    assert tf.nest.flatten(Masked(True, [1, {"a": 2}])) == [1, 2]
    with pytest.raises(TypeError, match="the types Masked and list differ"):
        tf.nest.assert_same_structure(masked, [1])


def test_metadata_belongs_to_the_signature_of_a_function():
    traces = []

    @tf.function
    def add_one(masked):
        traces.append(masked.mask)
        return Masked(masked.mask, masked.value + 1)

    results = [add_one(Masked(mask, tf.constant(3))) for mask in (True, False, True)]

    assert [(r.mask, int(r.value)) for r in results] == [(True, 4), (False, 4), (True, 4)]
    assert traces == [True, False]


def test_objects_with_tf_flatten_are_elements_of_datasets():
    dataset = tf.data.Dataset.from_tensors(Masked(True, tf.constant([1])))

    assert dataset.element_spec == Masked(True, tf.TensorSpec([1], tf.int32))
    (element,) = dataset.batch(2).map(lambda x: Masked(False, x.value * 2))
    assert (element.mask, element.value.numpy().tolist()) == (False, [[2]])


def test_views_of_dicts_are_structures():
    views = {"d": 3, "b": 1}

    assert tf.nest.is_nested(views.keys())
    assert tf.nest.flatten([views.values(), 1]) == [3, 1, 1]
    assert tf.nest.pack_sequence_as(views.items(), [1, 2, 3, 4]) == [(1, 2), (3, 4)]


def test_objects_with_tf_tensor_are_converted():
    assert tf.convert_to_tensor(Three(), tf.float32).numpy().tolist() == [1.0, 2.0, 3.0]
    assert tf.add(Three(), 1).numpy().tolist() == [2, 3, 4]
    assert (tf.constant([1, 2, 3]) + Three()).numpy().tolist() == [2, 4, 6]
    assert tf.stack([Three(), Three()]).shape == (2, 3)
    assert tf.convert_to_tensor([Three(), [0, 0, 0]]).numpy().tolist() == [[1, 2, 3], [0, 0, 0]]


def test_gradients_flow_through_tf_tensor():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.square(Three(x)))

    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]


def test_array_interface_is_enough_for_conversion():
    class Wrapper:
        array = np.array([1, 2, 3])
        __array_interface__ = array.__array_interface__

    assert tf.convert_to_tensor(Wrapper()).numpy().tolist() == [1, 2, 3]


def test_empty_array_of_objects_is_an_empty_string_tensor():
    tensor = tf.convert_to_tensor(np.empty((2, 0, 5), object))

    assert (tensor.shape, tensor.dtype) == (tf.TensorShape([2, 0, 5]), tf.string)


def test_large_shape_does_not_fit_int32():
    with pytest.raises(ValueError) as error:
        tf.convert_to_tensor(tf.TensorShape([2**31, 2]), tf.int32)
    assert str(error.value) == (
        "Cannot convert a TensorShape to dtype int32: a dimension is too large: (2147483648, 2). "
        "Consider using dtype int64."
    )


def test_dtypes_equal_their_numbers_in_protocol_buffers():
    assert (tf.as_dtype(3), tf.as_dtype(11)) == (tf.int32, tf.qint8)
    assert tf.int32 == 3
    assert tf.int32 != 4
    assert tf.as_dtype("float8_e5m2").is_floating


def test_composite_tensors_match_specs_if_they_are_expanded():
    sparse, ragged = tf.SparseTensor([[0]], [1], [1]), tf.ragged.constant([[1]])

    def check(value, spec):
        tf.nest.assert_same_structure(value, spec, expand_composites=True)

    check(ragged, tf.type_spec_from_value(ragged))
    check(sparse, tf.SparseTensorSpec([None, None], tf.int32))
    check(sparse, tf.SparseTensor([[0]], [1], [7]))
    for spec in (
        tf.SparseTensorSpec([None], tf.float32),
        tf.RaggedTensorSpec([None, None], tf.int32),
        tf.TensorSpec([None], tf.int32),
    ):
        with pytest.raises(ValueError, match="don't have the same nested structure"):
            check(sparse, spec)


def test_variables_have_no_static_value():
    assert tf.get_static_value(tf.Variable(1.0)) is None
    assert tf.get_static_value(tf.constant(1.0)) == 1.0


def test_shape_of_indexed_slices_without_a_dense_shape_is_unknown():
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([0]))

    assert slices.shape.rank is None


def test_errors_have_payloads():
    assert tf.errors.CancelledError(None, None, "stopped").experimental_payloads == {}


def test_control_dependencies_call_functions():
    calls = []
    with tf.control_dependencies([tf.constant(1.0), lambda: calls.append(1)]):
        pass

    assert calls == [1]


def test_padding_of_bool_diagonals_may_be_a_number():
    x = tf.constant([[True, False], [False, True]])

    bands = tf.linalg.diag_part(x, k=(-1, 1), padding_value=555)
    assert bands.numpy().tolist() == [[True, False], [True, True], [False, True]]
    matrix = tf.linalg.diag(tf.constant([True, False]), padding_value=5)
    assert matrix.numpy().tolist() == [[True, True], [True, False]]


def test_references_can_be_keys_of_recomputed_structures():
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    squares = tf.recompute_grad(lambda values: {key: x * x for key, x in values.items()})
    with tf.GradientTape() as tape:
        y = tf.add_n(list(squares({a.ref(): a, b.ref(): b}).values()))

    assert [float(g) for g in tape.gradient(y, [a, b])] == [2.0, 4.0]


def test_negative_sizes_of_sparse_tensors_are_unknown_dimensions():
    assert tf.SparseTensor([[0, 0]], [1.0], [-1, 2]).shape.as_list() == [None, 2]


@pytest.mark.parametrize("default", [[[0]], [0, 1]])
def test_defaults_of_csv_columns_have_at_most_one_element(default):
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="must be a scalar or a vector with at most one element",
    ):
        tf.io.decode_csv(["1", "2"], [default])


def test_unflatten_may_be_a_method():
    class Scaled:
        def __init__(self, value):
            self.value = value

        def __tf_flatten__(self):
            return (), (self.value,)

        def __tf_unflatten__(self, metadata, components):
            return Scaled(*components)

    assert tf.nest.map_structure(lambda x: x + 1, Scaled(2)).value == 3


def test_evaluated_sparse_tensors_are_tuples_of_arrays():
    indices, values, shape = tf.test.TestCase().evaluate(tf.SparseTensor([[1]], [5.0], [3]))

    assert (indices.tolist(), values.tolist(), shape.tolist()) == ([[1]], [5.0], [3])


def test_too_many_indices_with_an_ellipsis_are_an_index_error():
    with pytest.raises(IndexError, match="Too many indices for a RaggedTensor of 2 axes: 3"):
        tf.ragged.constant([[1], [2, 3]])[..., 0, 0, 0]


def test_axes_of_ragged_reductions_are_integers():
    with pytest.raises(TypeError, match="axis: expected integers"):
        tf.reduce_sum(tf.ragged.constant([[1], [2, 3]]), ["x"])


def test_device_types_may_be_unknown():
    spec = tf.DeviceSpec.from_string("/job:worker/device:Funny:2")

    assert (spec.job, spec.device_type, spec.device_index) == ("worker", "Funny", 2)


@pytest.mark.parametrize(
    ("values", "splits"), [([1, 2, 3], [2, 3]), (np.zeros(0, np.int64), [0, 5])]
)
def test_unchecked_row_splits_are_an_error_in_to_sparse(values, splits):
    ragged = tf.RaggedTensor.from_row_splits(values, splits, validate=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="The row splits"):
        ragged.to_sparse()


def test_sets_check_the_indices_of_sparse_tensors():
    with pytest.raises(tf.errors.InvalidArgumentError, match="an index is out of range"):
        tf.sets.size(tf.SparseTensor([[4, 7], [48, 25]], [1, 1], [8, 30]))


def test_separator_of_crosses_is_a_scalar():
    with pytest.raises(tf.errors.InvalidArgumentError, match="separator must be a scalar"):
        tf.sparse.cross([], separator=tf.constant(["a", "b"]))


def test_default_values_of_tables_have_at_most_one_axis():
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a scalar or a vector"):
        tf.lookup.experimental.MutableHashTable(
            tf.string, tf.int64, tf.constant([[-1, -1]], tf.int64)
        )


def test_names_of_vocabulary_files_are_strings():
    index = tf.lookup.TextFileIndex
    with pytest.raises(ValueError, match="`filename` must be one string"):
        tf.lookup.TextFileInitializer(
            tf.constant(1), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
        )


def test_strings_have_no_limits():
    with pytest.raises(ValueError, match="string has no limits"):
        tf.string.limits  # noqa: B018


def test_no_ragged_images_can_be_resized():
    none = tf.RaggedTensor.from_row_splits(
        tf.RaggedTensor.from_row_splits(tf.zeros([0, 2, 3], tf.uint8), [0]), [0]
    )

    resized = tf.image.resize(none, [4, 4])

    assert (resized.shape.as_list(), resized.dtype) == ([0, 4, 4, 3], tf.float32)


def test_ragged_tensors_equal_lists_of_arrays():
    tf.test.TestCase().assertAllEqual(
        [np.array([1, 2]), np.array([3])], tf.ragged.range([1, 3], [3, 4])
    )
