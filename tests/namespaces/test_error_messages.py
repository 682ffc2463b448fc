"""Error messages for invalid input found by random calls to every function."""

import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

Invalid = tf.errors.InvalidArgumentError
CLASSES = tf.constant([[1]], tf.int64)
EYE = tf.eye(4)


def sampled_loss(weights, inputs, values):
    return tf.nn.sampled_softmax_loss(
        weights, tf.zeros([5]), CLASSES, inputs, 2, 5, sampled_values=values
    )


VALUES = (tf.constant([2, 3], tf.int64), tf.constant([[0.1]]), tf.constant([0.1, 0.1]))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: tf.random.poisson([2], "text"),
            Invalid,
            "poisson: expected a real dtype. Received: string.",
        ),
        (
            lambda: tf.random.stateless_binomial([1], [1, 2], tf.constant(1j), 0.5),
            Invalid,
            "stateless_binomial: expected a real dtype. Received: complex128.",
        ),
        (
            lambda: tf.random.categorical(tf.constant([[1j]]), 1),
            Invalid,
            "categorical: expected a real dtype. Received: complex128.",
        ),
        (
            lambda: tf.random.uniform([2], [0, 0, 0], 5, tf.int32),
            Invalid,
            "uniform: minval and maxval of shapes (3,) and () do not broadcast to (2,).",
        ),
        (
            lambda: tf.random.uniform_candidate_sampler(CLASSES, 1, 1.5, True, 5),
            TypeError,
            "uniform_candidate_sampler: num_sampled must be an int. Received: 1.5.",
        ),
        (
            lambda: tf.random.fixed_unigram_candidate_sampler(
                CLASSES, 1, 1, True, 1, unigrams=[[1.0]]
            ),
            Invalid,
            "fixed_unigram_candidate_sampler: unigrams must be a list of numbers. Received: "
            "[[1.0]].",
        ),
        (
            lambda: sampled_loss(tf.zeros([5, 3]), 1.0, VALUES),
            Invalid,
            "expected `inputs` to be a matrix. Received: shape ().",
        ),
        (
            lambda: sampled_loss(tf.zeros([5]), tf.zeros([1, 3]), VALUES),
            Invalid,
            "expected `weights` to be a matrix. Received: rows of shape ().",
        ),
        (
            lambda: sampled_loss(tf.zeros([5, 3]), tf.zeros([1, 3]), ()),
            ValueError,
            "expected sampled_values to be three tensors: the classes and two expected counts. "
            "Received: ().",
        ),
        (
            lambda: tf.nn.collapse_repeated([[1, 1, 2]], 3),
            Invalid,
            "collapse_repeated: expected seq_length to have shape (1,). Received: ().",
        ),
        (
            lambda: tf.nn.ctc_beam_search_decoder(tf.zeros([3, 1, 0]), [3]),
            Invalid,
            "ctc_beam_search_decoder: expected at least one class. Received: shape (3, 1, 0).",
        ),
        (
            lambda: tf.nn.with_space_to_batch(
                tf.zeros([4]), [2], "VALID", tf.identity, filter_shape=[1]
            ),
            ValueError,
            "with_space_to_batch: spatial_dims [1] are beyond the axes of shape (4,).",
        ),
        (
            lambda: tf.nn.conv2d(tf.zeros([1, 2]), tf.zeros([2, 2, 1, 1]), 1, "SAME"),
            Invalid,
            "conv2d: the input must have 4 axes or more. Received: shape (1, 2).",
        ),
        (
            lambda: tf.nn.weighted_moments("text", [0], tf.constant(["text"])),
            Invalid,
            "weighted_moments: expected a numeric dtype. Received: string.",
        ),
        (
            lambda: tf.nn.weighted_moments([1.0, 2.0], [3], [1.0, 1.0]),
            Invalid,
            "weighted_moments: axis 3 is out of range for a tensor of rank 1. Expected "
            "-1 <= axis < 1.",
        ),
        (
            lambda: tf.ragged_fill_empty_rows_grad(tf.constant([0], tf.int64), 1.0),
            Invalid,
            "ragged_fill_empty_rows_grad: grad_values must have at least 1 axis. Received: "
            "a scalar.",
        ),
        (
            lambda: tf.nn.dilation2d(
                tf.zeros([1, 4, 4, 1]), tf.zeros([0, 2, 1]), [1] * 4, "SAME", "NHWC", [1] * 4
            ),
            Invalid,
            "dilation2d: filters must have 3 axes and must not be empty. Received: shape (0, 2, "
            "1).",
        ),
        (
            lambda: tf.image.psnr("a", "b", 1.0),
            TypeError,
            "Expected images with a numeric dtype. Received: dtype string.",
        ),
        (
            lambda: tf.image.non_max_suppression_padded(
                tf.constant([[0j, 0, 1, 1]]), tf.constant([1.0]), 1
            ),
            Invalid,
            "non_max_suppression_padded: expected real numbers. Received: complex128, float32.",
        ),
        (
            lambda: tf.linalg.tridiagonal_matmul((1.0, 1.0, 1.0), EYE, "sequence"),
            ValueError,
            "tridiagonal_matmul: the main diagonal must be a vector. Received: a scalar.",
        ),
        (
            lambda: tf.linalg.band_part(EYE, [], 0),
            Invalid,
            "band_part: expected a single integer. Received: shape (0,).",
        ),
        (
            lambda: tf.linalg.lu_solve(EYE, [0, 1], EYE),
            Invalid,
            "lu_solve: `perm` must be integers, one for each row. Received: shape (2,) of dtype "
            "int32.",
        ),
        (
            lambda: tf.einsum(-9, EYE),
            TypeError,
            "einsum: expected a string for the equation. Received: -9.",
        ),
        (
            lambda: tf.sparse.to_indicator(tf.SparseTensor([[-9, 0]], [1], [3, 4]), 4),
            Invalid,
            "to_indicator: an index is out of bounds for shape (3, 4).",
        ),
        (
            lambda: tf.sparse.sampled_addmm([[0, 0]], [1.0], [1, 1], 1.0, EYE),
            ValueError,
            "sampled_addmm: expected integer indices, and matrices. Received: indices of dtype "
            "int32, shapes () and (4, 4).",
        ),
    ],
)
def test_error_message(call, error, message):
    assert_raises(call, error, message)


def test_boxes_with_nonfinite_coordinates_are_not_drawn():
    images = tf.zeros([1, 4, 4, 1])
    for coordinate in (float("nan"), float("inf")):
        drawn = tf.image.draw_bounding_boxes(images, [[[coordinate] * 4]], [[1.0]])
        assert not drawn.numpy().any()


def test_non_max_suppression_of_infinite_boxes_does_not_warn():
    boxes = tf.constant([[0.0, 0.0, float("inf"), 1.0], [0.0, 0.0, 1.0, 1.0]])
    kept = tf.image.non_max_suppression(boxes, [0.9, 0.8], 2)

    assert kept.numpy()[0] == 0


def test_negative_seeds_are_valid():
    x = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    first, second = (tf.nn.fractional_max_pool(x, 1.44, seed=-9).output for _ in range(2))

    assert first.numpy().tolist() == second.numpy().tolist()


def test_conjugate_gradient_requires_a_vector():
    names = ("matvec", "is_self_adjoint", "is_positive_definite")
    operator = type("Operator", (), dict.fromkeys(names, True))
    assert_raises(
        lambda: tf.linalg.experimental.conjugate_gradient(operator, 1.0),
        Invalid,
        "conjugate_gradient: expected vectors of floating-point or complex numbers. Received: "
        "shape (), dtype float32.",
    )
