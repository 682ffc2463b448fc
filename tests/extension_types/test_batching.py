"""BatchableExtensionType in datasets and maps. Expected values are results of TensorFlow 2.21."""

import numpy as np
import pytest

import retrograde as tf

E = tf.experimental
Dataset = tf.data.Dataset


class Plain(E.ExtensionType):
    values: tf.Tensor


class Batch(E.BatchableExtensionType):
    values: tf.Tensor
    mask: tf.Tensor
    label: str = "q"


def batch():
    return Batch([[1.0, 2.0], [3.0, 4.0]], [[True, False], [True, True]])


SPEC = Batch.Spec(tf.TensorSpec([2]), tf.TensorSpec([2], tf.bool), "q")


def values_of(dataset):
    return [element.values.numpy().tolist() for element in dataset]


def test_datasets_of_values():
    (element,) = Dataset.from_tensors(Plain([1.0]))
    assert element.values.numpy().tolist() == [1.0]
    mapped = Dataset.range(2).map(lambda x: Plain(x))
    assert values_of(mapped) == [0, 1]
    assert mapped.element_spec == Plain.Spec(tf.TensorSpec([], tf.int64))
    assert [int(x) for x in mapped.map(lambda p: p.values + 1)] == [1, 2]


def test_datasets_split_and_batch_values():
    rows = Dataset.from_tensor_slices(batch())
    assert rows.element_spec == SPEC
    assert values_of(rows) == [[1.0, 2.0], [3.0, 4.0]]
    assert [element.label for element in rows] == ["q", "q"]
    batched = rows.batch(2)
    assert batched.element_spec == Batch.Spec(
        tf.TensorSpec([None, 2]), tf.TensorSpec([None, 2], tf.bool), "q"
    )
    assert values_of(batched) == [[[1.0, 2.0], [3.0, 4.0]]]
    assert values_of(batched.unbatch()) == [[1.0, 2.0], [3.0, 4.0]]
    pairs = Dataset.from_tensor_slices((batch(), [5, 6]))
    assert [int(y) for _, y in pairs] == [5, 6]


def test_fields_may_be_ragged():
    class Rows(E.BatchableExtensionType):
        rows: tf.RaggedTensor

    ragged = tf.ragged.constant([[[1], []], [[2, 3]]])
    split = Dataset.from_tensor_slices(Rows(ragged))
    assert [x.rows.to_list() for x in split] == [[[1], []], [[2, 3]]]
    (stacked,) = split.batch(2)
    assert stacked.rows.to_list() == ragged.to_list()


def test_map_fn():
    double = tf.map_fn(lambda x: x.values * 2, batch(), fn_output_signature=tf.float32)
    np.testing.assert_array_equal(double, [[2.0, 4.0], [6.0, 8.0]])
    mapped = tf.map_fn(lambda x: Batch(x.values * 2, x.mask), batch(), fn_output_signature=SPEC)
    np.testing.assert_array_equal(mapped.values, [[2.0, 4.0], [6.0, 8.0]])
    same = tf.map_fn(lambda x: x, batch())
    assert bool(same == batch())
    made = tf.map_fn(
        lambda x: Batch([x, x], [True, False]), tf.constant([1.0, 2.0]), fn_output_signature=SPEC
    )
    np.testing.assert_array_equal(made.values, [[1.0, 1.0], [2.0, 2.0]])
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.map_fn(lambda x: Batch([x, x], [True]), x, fn_output_signature=SPEC).values ** 2
    np.testing.assert_array_equal(tape.gradient(y, x), [4.0, 8.0])


def test_vectorized_map():
    y = tf.vectorized_map(lambda x: x.values * 2, batch())
    np.testing.assert_array_equal(y, [[2.0, 4.0], [6.0, 8.0]])


def test_custom_encoders():
    class Encoder(E.ExtensionTypeBatchEncoder):
        """Encodes a value by one tensor; the other field is static."""

        def batch(self, spec, batch_size):
            return Pair.Spec(tf.TensorSpec([batch_size, *spec.a.shape]), spec.b)

        def unbatch(self, spec):
            return Pair.Spec(tf.TensorSpec(spec.a.shape[1:]), spec.b)

        def encode(self, spec, value, minimum_rank=0):  # noqa: ARG002
            return [value.a + 1.0]

        def decode(self, spec, encoded_value):
            return Pair(encoded_value[0] - 1.0, spec.b)

        def encoding_specs(self, spec):
            return [spec.a]

    class Pair(E.BatchableExtensionType):
        __batch_encoder__ = Encoder()
        a: tf.Tensor
        b: int

    rows = Dataset.from_tensor_slices(Pair([1.0, 2.0], 7))
    assert [(float(x.a), x.b) for x in rows] == [(1.0, 7), (2.0, 7)]
    (stacked,) = rows.batch(2)
    np.testing.assert_array_equal(stacked.a, [1.0, 2.0])


def test_values_that_cannot_be_batched():
    message = (
        "Values of type Plain cannot be batched or split. Derive the class from "
        "tf.experimental.BatchableExtensionType."
    )
    for call in (
        lambda: Dataset.from_tensor_slices(Plain([1.0])),
        lambda: list(Dataset.from_tensors(Plain([1.0])).batch(2)),
        lambda: tf.map_fn(lambda x: x.values, Plain([1.0]), fn_output_signature=tf.float32),
    ):
        with pytest.raises(TypeError) as raised:
            call()
        assert str(raised.value) == message
    labels = Dataset.from_generator(
        lambda: iter([1.0, 2.0]), output_signature=tf.TensorSpec([])
    ).map(lambda x: Batch([x], [True], "a"))
    assert values_of(labels.batch(2)) == [[[1.0], [2.0]]]


def test_static_fields_of_a_batch_must_be_equal():
    elements = tf.data.experimental.from_list([Plain([1.0]), Plain([2.0])])
    assert values_of(elements) == [[1.0], [2.0]]
    from retrograde.extension_types.batching import stack_values

    with pytest.raises(TypeError, match="Cannot batch values with different static fields"):
        stack_values([Batch([1.0], [True], "a"), Batch([1.0], [True], "b")])
