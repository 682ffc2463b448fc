"""TensorSpec."""

import pickle

import pytest

import retrograde as tf


def test_properties_and_text():
    spec = tf.TensorSpec([2, None], tf.int32, "a")

    assert (spec.shape, spec.dtype, spec.name) == (tf.TensorShape([2, None]), tf.int32, "a")
    assert repr(spec) == "TensorSpec(shape=(2, None), dtype=tf.int32, name='a')"
    assert tf.TensorSpec(None).dtype is tf.float32


def test_specs_of_tensors_and_specs():
    assert tf.TensorSpec.from_tensor(tf.ones([2])) == tf.TensorSpec([2])
    assert tf.TensorSpec.from_tensor(tf.Variable(1)) == tf.TensorSpec([], tf.int32)
    assert tf.TensorSpec.from_spec(tf.TensorSpec([2]), "b").name == "b"
    with pytest.raises(ValueError, match=r"should be a tf\.Tensor"):
        tf.TensorSpec.from_tensor(3.0)


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (tf.ones([5, 2]), True),
        (tf.Variable(tf.ones([5, 2])), True),
        (tf.ones([5, 3]), False),
        (tf.ones([2]), False),
        (tf.ones([5, 2], tf.float64), False),
        (tf.TensorSpec([3, None]), True),
        (tf.TensorSpec([3, 3]), False),
        (3.0, False),
    ],
)
def test_compatibility(value, fits):
    assert tf.TensorSpec([None, 2]).is_compatible_with(value) is fits


def test_subtypes():
    wide, narrow = tf.TensorSpec([None, 2]), tf.TensorSpec([3, 2])

    assert narrow.is_subtype_of(wide)
    assert not wide.is_subtype_of(narrow)
    assert narrow.is_subtype_of(tf.TensorSpec(None))
    assert not tf.TensorSpec(None).is_subtype_of(wide)
    assert not narrow.is_subtype_of(tf.TensorSpec([3, 2], tf.int32))
    assert narrow.most_specific_compatible_type(tf.TensorSpec([4, 2])) == wide
    assert narrow.most_specific_common_supertype([tf.TensorSpec([3, 2], tf.int32)]) is None
    with pytest.raises(ValueError, match="No TypeSpec is compatible"):
        narrow.most_specific_compatible_type(tf.TensorSpec([3, 2], tf.int32))


def test_equality_hash_and_pickles():
    spec = tf.TensorSpec([None, 2], name="a")

    assert spec == tf.TensorSpec([None, 2], name="a")
    assert hash(spec) == hash(tf.TensorSpec([None, 2], name="a"))
    assert spec != tf.TensorSpec([None, 2])
    assert pickle.loads(pickle.dumps(spec)) == spec
