"""tf.signal: results recorded from TensorFlow, gradients, dtypes and errors."""

import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_gradients, assert_raises, gradient

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "signal_results.json").read_text())

X = np.sin(np.arange(6.0) ** 2)
M = np.cos(np.arange(12.0) ** 2).reshape(3, 4)
Z = M + 1j * np.sin(M * 3)
Z3 = Z.reshape(2, 2, 3)


@pytest.mark.parametrize("call", EXPECTED)
def test_result_matches_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, EXPECTED[call]), f"got {actual}, expected {EXPECTED[call]}"


# Functions that TensorFlow does not implement on the CPU


@pytest.mark.parametrize("norm", [None, "backward", "forward", "ortho"])
@pytest.mark.parametrize(
    "axes, lengths",
    [(None, None), ([1], None), ([0], [5]), ([-1, 0], [3, 4]), ([0, 1], [2, 6])],
    ids=str,
)
def test_nd_transforms_match_numpy(axes, lengths, norm):
    attrs = {"axes": axes, "fft_length": lengths, "norm": norm}
    s = lengths if lengths or axes is None else [M.shape[a] for a in axes]
    expected = {"s": s, "axes": axes, "norm": norm or "backward"}

    for name, x in [("fftn", Z), ("ifftn", Z), ("rfftn", M)]:
        actual = getattr(tf.signal, f"{name}d")(tf.constant(x), **attrs)
        np.testing.assert_allclose(actual, getattr(np.fft, name)(x, **expected), atol=1e-12)
    if lengths or axes is None:
        actual = tf.signal.irfftnd(tf.constant(Z), **attrs)
        np.testing.assert_allclose(actual, np.fft.irfftn(Z, **expected), atol=1e-12)


def test_the_last_axis_is_even_by_default():
    assert tf.signal.irfftnd(Z).shape == (3, 6)
    assert tf.signal.irfftnd(Z, axes=[1, 0]).shape == (4, 4)


def test_without_axes_the_input_is_unchanged():
    assert tf.signal.fftnd(tf.constant(Z), axes=[]).numpy().tolist() == Z.tolist()


def test_nd_transforms_at_the_top_level():
    z, m = tf.constant(Z), tf.constant(M)
    np.testing.assert_allclose(tf.fftnd(z, [3, 4], [0, 1]), np.fft.fft2(Z), atol=1e-12)
    np.testing.assert_allclose(tf.ifftnd(z, [3, 4], [0, 1]), np.fft.ifft2(Z), atol=1e-12)
    narrow, wide = tf.rfftnd(m, [3, 4], [0, 1]), tf.rfftnd(m, [3, 4], [0, 1], tf.complex128)
    assert narrow.dtype == tf.complex64
    np.testing.assert_allclose(wide, np.fft.rfft2(M), atol=1e-12)
    narrow, wide = tf.irfftnd(z, [3, 6], [0, 1]), tf.irfftnd(z, [3, 6], [0, 1], tf.float64)
    assert narrow.dtype == tf.float32
    np.testing.assert_allclose(wide, np.fft.irfft2(Z), atol=1e-12)


# Gradients


def _power(y):
    """Returns a real number that also depends on the phases."""
    return tf.abs(y) * (1.3 + tf.math.real(y)) if y.dtype.is_complex else y * y


REAL = {
    "rfft": lambda x: tf.signal.rfft(x),
    "rfft_cut": lambda x: tf.signal.rfft(x, [3]),
    "rfft_padded": lambda x: tf.signal.rfft(x, [7]),
    "rfft2d_resized": lambda x: tf.signal.rfft2d(x, [2, 5]),
    "rfft3d": lambda x: tf.signal.rfft3d(x[None]),
    "rfft3d_resized": lambda x: tf.signal.rfft3d(x[None], [2, 2, 5]),
    "rfftnd": lambda x: tf.signal.rfftnd(x, axes=[1, 0], norm="ortho"),
    "fftshift": tf.signal.fftshift,
    "ifftshift": lambda x: tf.signal.ifftshift(x, 0),
    "dct_1": lambda x: tf.signal.dct(x, 1),
    "dct_2": lambda x: tf.signal.dct(x, n=3),
    "idct_2": lambda x: tf.signal.idct(x, norm="ortho"),
    "idct_3": lambda x: tf.signal.idct(x, 3),
    "dct_4": lambda x: tf.signal.dct(x, 4, norm="ortho"),
    "frame": lambda x: tf.signal.frame(x, 3, 1, pad_end=True, pad_value=2.0),
    "frame_columns": lambda x: tf.signal.frame(x, 2, 1, axis=0),
    "overlap_and_add": lambda x: tf.signal.overlap_and_add(x, 3),
    "side_by_side": lambda x: tf.signal.overlap_and_add(x, 4),
    "stft": lambda x: tf.signal.stft(tf.reshape(x, [2, 6]), 4, 2, fft_length=5),
    "mdct": lambda x: tf.signal.mdct(tf.reshape(x, [12]), 4),
    "inverse_mdct": tf.signal.inverse_mdct,
    "mfccs": tf.signal.mfccs_from_log_mel_spectrograms,
}
COMPLEX = {
    "fft": tf.signal.fft,
    "ifft2d": tf.signal.ifft2d,
    "ifft3d": lambda z: tf.signal.ifft3d(z[None]),
    "fftnd": lambda z: tf.signal.fftnd(z, [4, 3], [0, 1], "forward"),
    "irfft": tf.signal.irfft,
    "irfft_cut": lambda z: tf.signal.irfft(z, [3]),
    "irfft_padded": lambda z: tf.signal.irfft(z, [9]),
    "irfft2d_resized": lambda z: tf.signal.irfft2d(z, [4, 5]),
    "irfft3d": lambda z: tf.signal.irfft3d(z[None]),
    "irfftnd": lambda z: tf.signal.irfftnd(z, axes=[1, 0], norm="forward"),
    "inverse_stft": lambda z: tf.signal.inverse_stft(z, 7, 3),
}


@pytest.mark.parametrize("name", REAL)
def test_gradient_matches_differences(name):
    assert_gradients(lambda x: _power(REAL[name](x)), M)


@pytest.mark.parametrize("name", COMPLEX)
def test_gradient_of_complex_numbers_matches_differences(name):
    assert_gradients(lambda a, b: _power(COMPLEX[name](tf.complex(a, b))), M, np.sin(M * 3))


@pytest.mark.parametrize("name", [*REAL, *COMPLEX])
def test_second_order_gradient_matches_differences(name):
    f = REAL.get(name) or (lambda x: COMPLEX[name](tf.complex(x, x * x)))

    def derivative(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(_power(f(x)) ** 2)
        return tape.gradient(y, x)

    assert_gradients(derivative, M, rtol=1e-6)


def test_gradient_flows_to_parameters_of_a_window_function():
    def f(x, decay):
        def window(length, dtype):
            return tf.exp(-decay * tf.range(tf.cast(length, dtype)))

        return _power(tf.signal.stft(x, 4, 2, window_fn=window))

    assert_gradients(f, X, 0.3)


@pytest.mark.parametrize("length", [2, 5, 6])
def test_gradient_flows_to_beta_of_kaiser_windows(length):
    for window_fn in (tf.signal.kaiser_window, tf.signal.kaiser_bessel_derived_window):
        assert_gradients(lambda beta, window_fn=window_fn: window_fn(length, beta, tf.float64), 3.0)


def test_gradient_flows_through_the_inverse_window():
    def f(width):
        def window(length, dtype):
            return tf.exp(-width * tf.range(tf.cast(length, dtype)))

        return tf.signal.inverse_stft_window_fn(2, window)(5, tf.float64)

    assert_gradients(f, 0.3)


def test_pad_value_has_no_gradient():
    f = lambda x, v: tf.signal.frame(x, 2, 1, pad_end=True, pad_value=v)  # noqa: E731

    assert gradient(f, X, np.float64(1.0))[1] is None


# Round trips


@pytest.mark.parametrize("length, step", [(8, 2), (8, 3), (6, 6), (5, 4)])
def test_inverse_stft_reconstructs_the_signal(length, step):
    x = np.sin(np.arange(40.0) ** 1.5)
    window = tf.signal.hamming_window
    inverse_window = tf.signal.inverse_stft_window_fn(step, window)

    y = tf.signal.stft(x, length, step, window_fn=window)
    z = tf.signal.inverse_stft(y, length, step, window_fn=inverse_window).numpy()

    interior = slice(length, z.size - length)  # where all windows overlap
    np.testing.assert_allclose(z[interior], x[: z.size][interior], atol=1e-12)


@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize(
    "window", [None, tf.signal.vorbis_window, tf.signal.kaiser_bessel_derived_window]
)
def test_inverse_mdct_reconstructs_the_signal(window, norm):
    x = np.sin(np.arange(32.0) ** 1.5)

    y = tf.signal.mdct(x, 8, window_fn=window, norm=norm)
    z = tf.signal.inverse_mdct(y, window_fn=window, norm=norm).numpy()

    np.testing.assert_allclose(z[4:-4], x[4:-4], atol=1e-12)


@pytest.mark.parametrize("axes", [None, 0, [1], (0, 1)])
def test_ifftshift_inverts_fftshift(axes):
    x = tf.constant(M)

    assert (tf.signal.ifftshift(tf.signal.fftshift(x, axes), axes).numpy() == M).all()


# Dtypes and sizes


@pytest.mark.parametrize(
    "real, complex_dtype", [("float32", "complex64"), ("float64", "complex128")]
)
def test_precision_is_kept(real, complex_dtype):
    x, z = tf.constant(M, real), tf.constant(Z, complex_dtype)

    assert {f(x).dtype.name for f in (tf.signal.rfft, tf.signal.rfft2d)} == {complex_dtype}
    assert {f(z).dtype.name for f in (tf.signal.fft, tf.signal.ifft2d)} == {complex_dtype}
    assert {f(z).dtype.name for f in (tf.signal.irfft, tf.signal.irfft2d)} == {real}
    assert tf.signal.dct(x, 4).dtype == real
    assert tf.signal.stft(x, 4, 2).dtype == complex_dtype
    assert tf.signal.mdct(x, 4).dtype == real
    assert gradient(lambda x: tf.abs(tf.signal.rfft(x)), x)[0].dtype == real


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "window_fn", [tf.signal.hann_window, tf.signal.vorbis_window, tf.signal.kaiser_window]
)
def test_windows_in_half_precision_are_rounded_once(window_fn, dtype):
    exact = window_fn(7, dtype=tf.float64)

    assert (window_fn(7, dtype=dtype).numpy() == tf.cast(exact, dtype).numpy()).all()


def test_frames_of_half_precision_are_summed_in_float32():
    frames = tf.constant(np.full((300, 300), 1.0), tf.float16)

    assert tf.signal.overlap_and_add(frames, 1).numpy().max() == 300.0
    small = tf.constant(np.r_[2048.0, np.ones(99)].reshape(100, 1) * np.ones((1, 100)), "float16")
    assert tf.signal.overlap_and_add(small, 1).numpy()[99] == 2148.0


def test_large_lengths_do_not_allocate_large_matrices():
    x = np.sin(np.arange(2.0**17))
    y = tf.signal.dct(x, norm="ortho").numpy()
    np.testing.assert_allclose(np.linalg.norm(y), np.linalg.norm(x))
    assert tf.signal.frame(x, 2**16, 1).shape == (2**16 + 1, 2**16)  # 32 GB, if it were copied


@pytest.mark.parametrize("rate", [8000, 8000.0, tf.constant(8000), np.float32(8000)])
def test_mel_bands_are_triangles(rate):
    weights = tf.signal.linear_to_mel_weight_matrix(4, 65, rate, dtype="float64").numpy()

    assert (weights[0] == 0).all()
    assert weights.min() == 0
    assert weights.max() <= 1
    interior = weights[(weights > 0).sum(1) == 2]
    np.testing.assert_allclose(interior.sum(1), 1)  # neighbors add up to 1


# Errors

MESSAGES = {
    "fft of float32": (
        lambda: tf.signal.fft(tf.constant([1.0])),
        tf.errors.InvalidArgumentError,
        "fft: dtype float32 is not supported. Expected one of complex64, complex128.",
    ),
    "fft of a scalar": (
        lambda: tf.signal.fft(1j),
        tf.errors.InvalidArgumentError,
        "fft: the input must have at least 1 axis. Received: shape ().",
    ),
    "fft3d of a matrix": (
        lambda: tf.signal.fft3d(Z),
        tf.errors.InvalidArgumentError,
        "fft3d: the input must have at least 3 axes. Received: shape (3, 4).",
    ),
    "rfft of integers": (
        lambda: tf.signal.rfft(tf.constant([1])),
        ValueError,
        "rfft: the input has dtype int32. Expected float32 or float64.",
    ),
    "irfft of real numbers": (
        lambda: tf.signal.irfft(tf.constant([1.0])),
        ValueError,
        "irfft: the input has dtype float32. Expected complex64 or complex128.",
    ),
    "a length too many": (
        lambda: tf.signal.rfft([1.0], [2, 3]),
        tf.errors.InvalidArgumentError,
        "rfft: `fft_length` has 2 sizes. Expected 1, one for each axis.",
    ),
    "a length of 0": (
        lambda: tf.signal.rfft([1.0], [0]),
        tf.errors.InvalidArgumentError,
        "rfft: the length must be at least 1. Received: [0].",
    ),
    "a length of 0 by default": (
        lambda: tf.signal.irfft([1j]),
        tf.errors.InvalidArgumentError,
        "irfft: the length must be at least 1. Received: [0].",
    ),
    "a length that is not a list": (
        lambda: tf.signal.rfft([1.0], tf.constant(4)),
        tf.errors.InvalidArgumentError,
        "rfft: `fft_length`: expected a list of integers. Received: shape ().",
    ),
    "an unknown norm": (
        lambda: tf.signal.fftnd(Z, norm="both"),
        ValueError,
        "fftnd: `norm` must be None or one of backward, forward, ortho. Received: 'both'.",
    ),
    "too many axes": (
        lambda: tf.signal.fftnd(Z, axes=[0, 1, 2]),
        ValueError,
        "fftnd: 3 axes for an input of shape (3, 4). Expected at least 0 and at most 2.",
    ),
    "no axis": (
        lambda: tf.signal.rfftnd(M, axes=[]),
        ValueError,
        "rfftnd: 0 axes for an input of shape (3, 4). Expected at least 1 and at most 2.",
    ),
    "an axis twice": (
        lambda: tf.signal.fftnd(Z, axes=[0, -2]),
        tf.errors.InvalidArgumentError,
        "fftnd: `axes` must be distinct. Received: [0, -2].",
    ),
    "another axis": (
        lambda: tf.signal.dct(M, axis=0),
        NotImplementedError,
        "dct: `axis` must be -1, the last axis. Received: 0. Use tf.transpose for other axes.",
    ),
    "an unknown type": (
        lambda: tf.signal.idct(M, 5),
        ValueError,
        "idct: `type` must be 1, 2, 3 or 4. Received: 5.",
    ),
    "an unknown norm of dct": (
        lambda: tf.signal.dct(M, norm="forward"),
        ValueError,
        "dct: `norm` must be None or 'ortho'. Received: 'forward'.",
    ),
    "dct of integers": (
        lambda: tf.signal.dct([1, 2]),
        TypeError,
        "dct: the input has dtype int32. Expected float32 or float64.",
    ),
    "an orthonormal transform of type 1": (
        lambda: tf.signal.dct(M, 1, norm="ortho"),
        ValueError,
        "dct: type 1 does not support norm='ortho'. Use norm=None.",
    ),
    "too few elements for type 1": (
        lambda: tf.signal.dct([1.0], 1),
        ValueError,
        "dct: type 1 requires at least 2 elements along the last axis. Received: shape (1,).",
    ),
    "dct of no elements": (
        lambda: tf.signal.dct(X, n=0),
        ValueError,
        "dct: `n` must be None or at least 1. Received: 0.",
    ),
    "a frame length of 6": (
        lambda: tf.signal.mdct(X, 6),
        ValueError,
        "mdct: `frame_length` must be a multiple of 4. Received: 6.",
    ),
    "an odd number of coefficients": (
        lambda: tf.signal.inverse_mdct(M[:, :3]),
        tf.errors.InvalidArgumentError,
        "inverse_mdct: the last axis must have an even size. Received: shape (3, 3).",
    ),
    "a step of 0": (
        lambda: tf.signal.frame(X, 2, 0),
        tf.errors.InvalidArgumentError,
        "frame: `frame_step` must be at least 1. Received: 0.",
    ),
    "a length that is not an integer": (
        lambda: tf.signal.frame(X, 2.0, 1),
        tf.errors.InvalidArgumentError,
        "frame: `frame_length`: expected integers. Received: 2.0 of dtype float32.",
    ),
    "several lengths": (
        lambda: tf.signal.frame(X, [2], 1),
        ValueError,
        "frame: `frame_length` must be one integer. Received: shape (1,).",
    ),
    "an axis out of range": (
        lambda: tf.signal.frame(X, 2, 1, axis=1),
        IndexError,
        "frame: axis 1 is out of range for shape (6,). Expected -1 to 0.",
    ),
    "several values to pad with": (
        lambda: tf.signal.frame(X, 2, 1, pad_end=True, pad_value=[1.0]),
        ValueError,
        "frame: `pad_value` must be a scalar. Received: shape (1,).",
    ),
    "frames without frames": (
        lambda: tf.signal.overlap_and_add(X, 2),
        ValueError,
        "overlap_and_add: the input must have at least 2 axes. Received: shape (6,).",
    ),
    "a window of integers": (
        lambda: tf.signal.hann_window(4, dtype=tf.int32),
        ValueError,
        "hann_window: `dtype` must be a float dtype. Received: int32.",
    ),
    "no bands": (
        lambda: tf.signal.linear_to_mel_weight_matrix(0),
        ValueError,
        "linear_to_mel_weight_matrix: `num_mel_bins` must be at least 1. Received: 0.",
    ),
    "no bins": (
        lambda: tf.signal.linear_to_mel_weight_matrix(num_spectrogram_bins=0),
        ValueError,
        "linear_to_mel_weight_matrix: `num_spectrogram_bins` must be at least 1. Received: 0.",
    ),
    "edges in the wrong order": (
        lambda: tf.signal.linear_to_mel_weight_matrix(lower_edge_hertz=4000.0),
        ValueError,
        "linear_to_mel_weight_matrix: expected 0 <= `lower_edge_hertz` < `upper_edge_hertz`. "
        "Received: 4000.0 and 3800.0.",
    ),
    "edges out of range": (
        lambda: tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=5000.0),
        ValueError,
        "linear_to_mel_weight_matrix: `upper_edge_hertz` must not exceed half of `sample_rate`. "
        "Received: 5000.0 and 8000.0.",
    ),
    "a matrix of integers": (
        lambda: tf.signal.linear_to_mel_weight_matrix(dtype=tf.int32),
        ValueError,
        "linear_to_mel_weight_matrix: `dtype` must be a float dtype. Received: int32.",
    ),
    "coefficients of nothing": (
        lambda: tf.signal.mfccs_from_log_mel_spectrograms(tf.zeros([3, 0])),
        ValueError,
        "mfccs_from_log_mel_spectrograms: expected at least 1 band. Received: shape (3, 0).",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_errors(name):
    assert_raises(*MESSAGES[name])
