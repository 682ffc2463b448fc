"""tf.reshape, tf.gather and other array functions: values, dtypes, errors and gradients."""

import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_raises, gradient

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "array_results.json").read_text())


@pytest.mark.parametrize("call", EXPECTED)
def test_result_matches_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, EXPECTED[call]), f"got {actual}, expected {EXPECTED[call]}"


# Identity of arguments and results


def test_a_tensor_converts_to_itself():
    x = tf.constant([1.0, 2.0])

    assert tf.convert_to_tensor(x) is x
    assert tf.constant(x) is x
    assert tf.cast(x, tf.float32) is x


@pytest.mark.parametrize(
    "f",
    [
        tf.convert_to_tensor,
        tf.constant,
        tf.identity,
        tf.stop_gradient,
        tf.squeeze,
        tf.stack,
        tf.transpose,
        lambda v: tf.cast(v, tf.float32),
        lambda v: tf.reshape(v, [2]),
        lambda v: tf.concat([v], 0),
        lambda v: tf.concat(v, 0),
        lambda v: tf.roll(v, 0, 0),
        lambda v: tf.tile(v, [1]),
        lambda v: tf.repeat(v, 1),
        lambda v: tf.reverse(v, []),
        lambda v: tf.pad(v, [[0, 0]]),
        lambda v: tf.pad(v, [[0, 0]], "REFLECT"),
        lambda v: tf.ensure_shape(v, None),
        lambda v: tf.saturate_cast(v, tf.float32),
        lambda v: tf.identity_n([v])[0],
        lambda v: tf.meshgrid(v)[0],
        lambda v: tf.split(v, 1)[0],
        lambda v: tf.clip_by_value(v, -9.0, 9.0),
    ],
)
def test_results_of_a_variable_are_new_tensors(f):
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        x = f(v)
        y = x * x
    v.assign([5.0, 5.0])

    assert isinstance(x, tf.Tensor)
    assert x._id != v._id
    np.testing.assert_array_equal(x, [1.0, 2.0])
    with tf.GradientTape() as other:
        other.watch(x)
        z = v * v
    assert other.gradient(z, x) is None
    assert (tape.gradient(y, v) is None) == (f is tf.stop_gradient)


def test_numpy_arrays_are_copied():
    a = np.array([1.0, 2.0])
    x = tf.convert_to_tensor(a)
    a[0] = 9.0

    np.testing.assert_array_equal(x, [1.0, 2.0])


def test_zeros_like_a_variable_do_not_read_it():
    v = tf.Variable(np.ones((2, 3)))
    with tf.GradientTape() as tape:
        tf.shape(v), tf.size(v), tf.rank(v)

    assert tape.watched_variables() == ()
    assert tf.zeros_like(v).dtype == tf.float64


# Comparison with NumPy on other shapes

rng = np.random.default_rng(3)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_gather_along_any_axis(axis, shape):
    x = rng.normal(size=(3, 4, 2))
    indices = rng.integers(0, 2, shape)

    np.testing.assert_array_equal(tf.gather(x, indices, axis=axis), np.take(x, indices, axis))


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_batched_gather_matches_a_gather_per_batch_element(axis):
    x = rng.normal(size=(2, 3, 4, 5))
    indices = rng.integers(0, 3, (2, 2, 2))
    expected = [np.take(row, i, axis - 1) for row, i in zip(x, indices, strict=True)]

    actual = tf.gather(x, indices, axis=axis, batch_dims=1)

    np.testing.assert_array_equal(actual, np.stack(expected))


@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sort_and_argsort_agree_with_numpy(direction, axis):
    x = rng.permutation(24).reshape(2, 3, 4).astype(np.float32)
    sign = 1 if direction == "ASCENDING" else -1

    np.testing.assert_array_equal(
        tf.argsort(x, axis, direction), np.argsort(sign * x, axis, kind="stable")
    )
    np.testing.assert_array_equal(tf.sort(x, axis, direction), sign * np.sort(sign * x, axis))


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_mirrored_padding_agrees_with_numpy(mode):
    x = rng.normal(size=(3, 4))
    paddings = [[2, 1], [0, 3]]

    np.testing.assert_array_equal(tf.pad(x, paddings, mode), np.pad(x, paddings, mode.lower()))


def test_strided_slices_agree_with_brackets():
    x = rng.normal(size=(5, 6))
    y = tf.strided_slice(x, [4, 1], [0, 6], [-2, 3])

    np.testing.assert_array_equal(y, x[4:0:-2, 1:6:3])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_boolean_mask_starts_at_axis(axis):
    x = rng.normal(size=(3, 3, 3))
    mask = np.array([True, False, True])

    np.testing.assert_array_equal(tf.boolean_mask(x, mask, axis), np.compress(mask, x, axis))


@pytest.mark.parametrize("f", [tf.sort, tf.argsort])
def test_sorting_requires_a_single_axis(f):
    for axis in (None, [0], np.array([0, 1])):
        message = f"{f.__name__}: `axis` must be a single integer. Received: {axis!r}."
        assert_raises(lambda axis=axis: f([[1.0]], axis=axis), ValueError, message)
    message = f"{f.__name__}: axis must be an integer. Received: 0.5."
    assert_raises(lambda: f([[1.0]], axis=0.5), TypeError, message)


def test_sizes_must_be_integers():
    message = "eye: expected integers. Received: 2.5 of dtype float32."
    assert_raises(lambda: tf.eye(2.5), TypeError, message)


def test_linspace_may_end_at_infinity():
    assert tf.linspace(0.0, np.inf, 4).numpy().tolist() == [0.0, np.inf, np.inf, np.inf]
    assert tf.linspace([1.0], [np.inf, 3.0], 2).numpy().tolist() == [[1.0, 1.0], [np.inf, 3.0]]


def test_range_converts_numbers_to_the_requested_dtype():
    steps = tf.range(0, 1, 0.1, dtype=tf.float64)
    np.testing.assert_array_equal(steps, np.arange(10) * 0.1)
    assert tf.range(True, 3.5, dtype=tf.float16).numpy().tolist() == [1.0, 2.0, 3.0]
    assert tf.range(tf.constant(2.5), dtype=tf.int32).numpy().tolist() == [0, 1]
    assert_raises(
        lambda: tf.range(2.5, dtype=tf.int32),
        TypeError,
        "Cannot convert 2.5 to a tensor of dtype int32.",
    )


@pytest.mark.parametrize(
    ("on", "off", "dtype", "expected"),
    [
        (5, -1, tf.uint8, [5, 255]),
        (5, 0, tf.float32, [5.0, 0.0]),
        (True, -1, tf.int32, [1, -1]),
        (1 + 1j, 0, tf.complex64, [1 + 1j, 0]),
    ],
)
def test_one_hot_values_have_the_requested_dtype(on, off, dtype, expected):
    y = tf.one_hot(0, 2, on_value=on, off_value=off, dtype=dtype)

    assert (y.dtype, y.numpy().tolist()) == (dtype, expected)


LARGEST = np.finfo(np.float32).max


@pytest.mark.parametrize(
    ("x", "dtype", "expected"),
    [
        (np.array([np.inf, -3 + 1j], np.complex64), tf.uint8, [255, 0]),
        (np.array([complex(1e300, -np.inf), -3 + 1j]), tf.complex64,
         [complex(LARGEST, -LARGEST), -3 + 1j]),
        (np.array([1e300, 3.0]), tf.complex64, [complex(LARGEST), 3]),
        (tf.constant([1e30, 3, -1], tf.bfloat16), tf.uint64, [2**64 - 2**56, 3, 0]),
    ],
)  # fmt: skip
def test_saturate_cast_clips_to_the_limits_of_every_dtype(x, dtype, expected):
    y = tf.saturate_cast(x, dtype)

    assert (y.dtype, y.numpy().tolist()) == (dtype, expected)


def test_gradient_of_saturate_cast_matches_cast_within_the_limits():
    x = tf.constant([3.0, 1e30, -np.inf, np.nan])
    (slope,) = gradient(lambda x: tf.saturate_cast(x, tf.float16), x)

    assert slope.tolist() == [1.0, 0.0, 0.0, 1.0]


def test_an_infinite_part_does_not_change_the_other_part():
    z = tf.complex([0.0, np.inf], [np.inf, 1.0])

    assert z.numpy().real.tolist() == [0.0, np.inf]
    assert z.numpy().imag.tolist() == [np.inf, 1.0]


def test_cast_requires_a_dtype():
    with pytest.raises(TypeError, match="Cannot convert None to a dtype"):
        tf.cast([1.0], None)


def test_linspace_includes_the_exact_endpoint():
    x = tf.linspace(0.1, 0.7, 11)

    assert float(x[0]) == np.float32(0.1)
    assert float(x[-1]) == np.float32(0.7)


# Second-order gradients, computed by hand


def test_second_order_through_gathered_rows():
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.gather(x, [0, 2, 2]) ** 3)
        g = tf.convert_to_tensor(inner.gradient(y, x))
    h = outer.gradient(g, x)

    np.testing.assert_array_equal(g, [3.0, 0.0, 54.0])
    np.testing.assert_array_equal(tf.convert_to_tensor(h), [6.0, 0.0, 36.0])


def test_second_order_through_coordinates_and_updates():
    x, u = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([5.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.tensor_scatter_nd_update(x, [[1]], u) ** 3)
        gx, gu = inner.gradient(y, [x, u])
        total = tf.reduce_sum(gx) + tf.reduce_sum(gu)
    hx, hu = outer.gradient(total, [x, u])

    np.testing.assert_array_equal(gx, [3.0, 0.0, 27.0])
    np.testing.assert_array_equal(gu, [75.0])
    np.testing.assert_array_equal(hx, [6.0, 0.0, 18.0])
    np.testing.assert_array_equal(hu, [30.0])


@pytest.mark.parametrize("decorator", [lambda f: f, tf.function])
def test_ignored_out_of_bounds_indices_get_no_gradient(decorator):
    indices = tf.constant([[0], [5], [-1], [0]])
    x, u = tf.Variable([2.0, 3.0]), tf.Variable([1.0, 2.0, 3.0, 4.0])

    @decorator
    def gradients(indices):
        with tf.GradientTape() as tape:
            y = tf.gather_nd(x, indices, bad_indices_policy="IGNORE") ** 2
            z = tf.tensor_scatter_nd_add(x, indices, u, bad_indices_policy="IGNORE") ** 2
        return tape.gradient([y, z], [x, u])

    gx, gu = gradients(indices)

    np.testing.assert_array_equal(gx, [8.0 + 14.0, 6.0])
    np.testing.assert_array_equal(gu, [14.0, 0.0, 0.0, 14.0])


# Messages

MESSAGES = {
    "tf.reshape([1, 2, 3], [2, 2])": (
        "reshape: a tensor of shape (3,) has 3 values, but the requested shape (2, 2) has 4. "
        "Expected the same number."
    ),
    "tf.gather([1, 2, 3], [0, 3])": "indices[1] = 3 is not in [0, 3).",
    "tf.gather_nd([[1, 2]], [[0, 2]])": (
        "indices[0] = [0, 2] does not index into shape (1, 2). Expected 0 <= index < size along "
        "each axis."
    ),
    "tf.split([1, 2, 3], 2)": ("split: cannot split 3 elements into 2 equal parts."),
    "tf.concat([1, 2], 0)": "concat: can't concatenate scalars. Use tf.stack instead.",
    "tf.where([True, False], [1, 2, 3], 0)": (
        "where: condition (2,), x (3,) and y () must be broadcastable."
    ),
    "tf.zeros([2, -1])": "zeros: dimension -1 must be >= 0. Received: shape (2, -1).",
    "tf.transpose([[1, 2]], [0, 0])": ("transpose: (0, 0) is not a permutation of the 2 axes."),
    "tf.pad([1, 2], [[3, 0]], 'REFLECT')": (
        "pad: paddings (3, 0) are too large to mirror 2 elements. Expected at most 1."
    ),
}


@pytest.mark.parametrize("call", MESSAGES)
def test_message_states_received_and_expected_values(call):
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        eval(call, {"tf": tf})

    assert str(error.value) == MESSAGES[call]


# Clipping


def test_clip_by_global_norm_uses_the_norm_argument():
    clipped, norm = tf.clip_by_global_norm([[3.0], None], 1.0, use_norm=tf.constant(6.0))

    assert float(norm) == 6.0
    assert clipped[1] is None
    np.testing.assert_allclose(clipped[0], [0.5])


def test_clipping_leaves_indexed_slices_sparse():
    slices = tf.IndexedSlices([[3.0], [4.0]], [0, 2], [3, 1])
    clipped, norm = tf.clip_by_global_norm([slices], 1.0)

    assert float(norm) == 5.0
    assert isinstance(clipped[0], tf.IndexedSlices)
    np.testing.assert_allclose(clipped[0].values, [[0.6], [0.8]], rtol=1e-6)
    np.testing.assert_array_equal(clipped[0].indices, [0, 2])


def test_clipped_tensors_keep_their_dtypes_with_a_norm_of_another_dtype():
    tensors = [tf.constant([1.0, 2.0]), tf.constant([3.0], tf.float64)]
    clipped, norm = tf.clip_by_global_norm(tensors, 1.0, use_norm=tf.constant(2.0, tf.float64))

    assert [x.dtype for x in (*clipped, norm)] == [tf.float32, tf.float64, tf.float64]
    assert [x.numpy().tolist() for x in clipped] == [[0.5, 1.0], [1.5]]


@pytest.mark.parametrize("axes", [[[0, 1]], tf.constant([0, 1]), None])
def test_axes_of_a_norm_accept_several_types(axes):
    y = tf.clip_by_norm(tf.constant([[3.0, 4.0]]), 1.0, axes=axes)

    np.testing.assert_allclose(y, [[0.6, 0.8]], rtol=1e-6)


def test_clipping_by_norm_at_zero_has_a_finite_gradient():
    x = tf.Variable([0.0, 0.0])
    with tf.GradientTape() as tape:
        y = tf.clip_by_norm(x, 1.0)

    np.testing.assert_array_equal(tape.gradient(y, x), [1.0, 1.0])


@pytest.mark.parametrize(("shape", "axis"), [((2,), 5), ((2,), 2), ((2,), -3), ((), 1)])
def test_expand_dims_reports_the_valid_axes(shape, axis):
    ndim = len(shape)
    assert_raises(
        lambda: tf.expand_dims(tf.zeros(shape), axis),
        tf.errors.InvalidArgumentError,
        f"expand_dims: cannot insert axis {axis} into a tensor of {ndim} axes. Expected "
        f"{-ndim - 1} <= axis <= {ndim}.",
    )
