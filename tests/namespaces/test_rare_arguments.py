"""Rare arguments, with TensorFlow's results and exception classes."""

import weakref

import numpy as np
import pytest

import retrograde as tf

Invalid = tf.errors.InvalidArgumentError


def test_matrix_rank_broadcasts_the_tolerance():
    rank = tf.linalg.matrix_rank(np.diag([0.1, 0.2, 0.3]), tol=[[0.09], [0.19], [0.29], [0.31]])

    assert rank.numpy().tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize(
    ("string", "encoding"),
    [
        (b"\x00a\x00b", "UTF-16"),
        (b"\xfe\xff\x00a\x00b", "UTF-16"),
        (b"\xff\xfea\x00b\x00", "UTF-16"),
        (b"\x00\x00\x00a\x00\x00\x00b", "UTF-32"),
    ],
)
def test_text_without_a_byte_order_mark_is_big_endian(string, encoding):
    assert tf.strings.unicode_transcode([string], encoding, "UTF-8").numpy().tolist() == [b"ab"]


def test_offsets_of_text_with_two_bytes_per_character():
    x = tf.strings.unicode_decode_with_offsets([b"\x00a\x00b", b"\xfe\xff\x00a"], "UTF-16")

    assert [part.to_list() for part in x] == [[[97, 98], [65279, 97]], [[0, 2], [0, 2]]]


def test_control_characters_are_removed_if_errors_are_ignored():
    y = tf.strings.unicode_transcode(
        [b"\x01\xffa"], "UTF-8", "UTF-8", errors="ignore", replace_control_characters=True
    )
    assert y.numpy().tolist() == [b"a"]


def test_replacement_characters_are_code_points():
    with pytest.raises(Invalid, match="must be a Unicode code point"):
        tf.strings.unicode_decode("x", "UTF-8", replacement_char=0x110000)


def test_bincount_of_rank_3():
    assert tf.math.bincount([[[0, 1], [1, 1]]]).numpy().tolist() == [1, 3]
    weights = [[[1.0, 2.0], [3.0, 4.0]]]
    assert tf.math.bincount([[[0, 1], [1, 1]]], weights).numpy().tolist() == [1.0, 9.0]
    with pytest.raises(Invalid, match="rank at most 2 with axis=-1"):
        tf.math.bincount([[[0, 1], [1, 1]]], axis=-1)


def test_repeat_of_a_scalar():
    assert tf.repeat(3, 4, axis=0).numpy().tolist() == [3, 3, 3, 3]
    assert tf.repeat(3, [2], axis=-1).numpy().tolist() == [3, 3]
    with pytest.raises(ValueError, match="`axis` = 1 is not in range"):
        tf.repeat(3, 2, axis=1)


def test_gather_without_batch_dims():
    x = [[10, 11, 12], [13, 14, 15]]

    assert tf.gather(x, [1, 0], axis=1, batch_dims=None).numpy().tolist() == [[11, 10], [14, 13]]


def test_reverse_sequence_needs_different_axes():
    with pytest.raises(Invalid, match="seq_axis and batch_axis must differ"):
        tf.reverse_sequence([[1, 2], [3, 4]], [2, 2], seq_axis=0)


def test_split_checks_the_number_of_sizes():
    assert len(tf.split([1, 2, 3, 4], [1, 3], num=2)) == 2
    with pytest.raises(Invalid, match="expected num=4 sizes"):
        tf.split([1, 2, 3, 4], [1, 3], num=4)


def test_clip_by_norm_does_not_broadcast_the_result():
    assert tf.clip_by_norm(tf.ones([2, 3]), [[1.0], [2.0]], axes=[1]).shape == (2, 3)
    with pytest.raises(ValueError, match=r"the result has shape \(2, 3, 2\)"):
        tf.clip_by_norm(tf.ones([2, 3, 1]), [1.0, 2.0])


def test_range_beyond_int32():
    y = tf.range(1136033460, -2110457150, -1849827689)

    assert y.dtype == tf.int32
    assert y.numpy().tolist() == [1136033460, -713794229]


def test_dtypes_do_not_equal_int():
    assert tf.int32 not in (int, None)
    assert tf.float32 in (float,)


def test_segment_ids_of_16_bits():
    ids = np.array([0, 1, 0], np.int16)

    assert tf.math.unsorted_segment_sum([1, 2, 3], ids, 2).numpy().tolist() == [4, 2]
    with pytest.raises(Invalid, match="expected segment_ids of dtype int32 or int64"):
        tf.math.unsorted_segment_max([1, 2, 3], ids, 2)


class Numbers:
    """A sequence that does not derive from `collections.abc.Sequence`."""

    def __len__(self):
        return 3

    def __getitem__(self, i):
        if i > 2:
            raise IndexError
        return i + 1


def test_sequences_become_tensors():
    assert tf.constant(Numbers()).numpy().tolist() == [1, 2, 3]


class Reflected:
    """Implements operators with a tensor on the left."""

    def __radd__(self, other):
        return "radd"

    def __rmul__(self, other):
        return "rmul"

    def __rtruediv__(self, other):
        return "rtruediv"

    def __rmatmul__(self, other):
        return "rmatmul"


@pytest.mark.parametrize("x", [tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0])], ids=type)
def test_classes_can_reflect_operators(x):
    assert x + Reflected() == "radd"
    assert x * Reflected() == "rmul"
    assert x / Reflected() == "rtruediv"
    assert x @ Reflected() == "rmatmul"
    with pytest.raises(ValueError, match="Attempt to convert a value"):
        x - Reflected()


def test_references_have_weak_references():
    x = tf.constant(1.0)
    reference = x.ref()

    assert weakref.ref(reference)() is reference
    assert len(weakref.WeakKeyDictionary({reference: 1})) == 1


def test_conversion_of_a_complex_number_takes_the_real_part():
    x = tf.constant(1.3 + 1j)

    assert (int(x), float(x)) == (1, pytest.approx(1.3))
