"""Compares `keras.ops.math` with NumPy and SciPy, and gradients with finite differences."""

import math

import numpy as np
import pytest
import scipy.signal
import scipy.special

import retrograde as tf
from retrograde.keras_backend.ops import math as backend
from tests.namespaces.helpers import assert_gradients, assert_raises, gradient

RNG = np.random.default_rng(9)
X = RNG.uniform(0.2, 0.9, (3, 4))
ROWS = RNG.permutation(18).reshape(6, 3) / 4.0 - 2
IDS = np.array([0, 2, 0, -1, 2, 5])
SIGNAL = RNG.uniform(-1, 1, (2, 20))
SPECTRUM = RNG.uniform(-1, 1, (2, 4, 5))


def reduce_segments(reduce, empty):
    """Returns a NumPy segment reduction. Rows with ids out of range are ignored."""

    def call(x):
        parts = [x[i == IDS] for i in range(4)]
        return np.array([reduce(part, axis=0) if len(part) else empty + 0 * x[0] for part in parts])

    return call


def frames(x, length, step):
    count = (x.shape[-1] - length) // step + 1
    return np.stack([x[..., i * step : i * step + length] for i in range(count)], -2)


def on_parts(f):
    """Returns `f` as a function of real and imaginary parts, with concatenated results."""

    def call(*parts):
        y = f(parts[0] + 1j * parts[1])
        return np.concatenate([y.real, y.imag], -1)

    return call


def concat_parts(f):
    return lambda *parts: tf.concat(f(parts), -1)


CASES = {
    **{
        f"segment_{name}": (
            lambda x, name=name: getattr(backend, f"segment_{name}")(x, IDS, 4),
            reduce_segments(getattr(np, name), empty),
            [ROWS],
        )
        for name, empty in (("sum", 0), ("prod", 1))
    },
    "top_k": (lambda x: backend.top_k(x, 2)[0], lambda x: np.sort(x)[:, :-3:-1], [ROWS]),
    "logsumexp": (backend.logsumexp, scipy.special.logsumexp, [X]),
    "logsumexp_axes": (
        lambda x: backend.logsumexp(x, (0, -1), keepdims=True),
        lambda x: scipy.special.logsumexp(x, keepdims=True),
        [X],
    ),
    "cdist": (
        backend.cdist,
        lambda x, y: np.linalg.norm(x[:, :, None] - y[:, None], axis=-1),
        [ROWS[None], RNG.uniform(-1, 1, (2, 4, 3))],
    ),
    "rsqrt": (backend.rsqrt, lambda x: x**-0.5, [X]),
    "erf": (backend.erf, scipy.special.erf, [X]),
    "erfc": (backend.erfc, scipy.special.erfc, [X]),
    "erfinv": (backend.erfinv, scipy.special.erfinv, [X]),
    "logdet": (backend.logdet, lambda x: np.linalg.slogdet(x)[1], [np.eye(4) + X.T @ X]),
    "extract_sequences": (
        lambda x: backend.extract_sequences(x, 6, 4), lambda x: frames(x, 6, 4), [SIGNAL]
    ),
    "fft": (concat_parts(backend.fft), on_parts(np.fft.fft), [SPECTRUM, -SPECTRUM / 2]),
    "fft2": (concat_parts(backend.fft2), on_parts(np.fft.fft2), [SPECTRUM, -SPECTRUM / 2]),
    "ifft2": (concat_parts(backend.ifft2), on_parts(np.fft.ifft2), [SPECTRUM, SPECTRUM / 2]),
    **{
        f"rfft_{n}": (
            lambda x, n=n: tf.concat(backend.rfft(x, n), -1),
            lambda x, n=n: on_parts(lambda z: np.fft.rfft(z.real, n))(x, 0),
            [SIGNAL],
        )
        for n in (None, 12, 25)
    },
    **{
        f"irfft_{n}": (
            lambda x, y, n=n: backend.irfft((x, y), n),
            lambda x, y, n=n: np.fft.irfft(x + 1j * y, n),
            [SPECTRUM, SPECTRUM / 3],
        )
        for n in (None, 5, 12)
    },
}  # fmt: skip


@pytest.mark.parametrize("label", CASES)
def test_value_and_gradient(label):
    actual_fn, numpy_fn, inputs = CASES[label]
    y, expected = actual_fn(*map(tf.constant, inputs)), numpy_fn(*inputs)

    assert y.shape == expected.shape
    assert y.dtype == expected.dtype
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-10, atol=1e-12)
    assert_gradients(actual_fn, *inputs)


@pytest.mark.parametrize("name, empty", [("max", -math.inf), ("min", math.inf)])
def test_segment_max_and_min(name, empty):
    actual_fn = getattr(backend, f"segment_{name}")

    expected = reduce_segments(getattr(np, name), empty)(ROWS)
    np.testing.assert_array_equal(actual_fn(ROWS, IDS, 4).numpy(), expected)
    assert_gradients(lambda x: actual_fn(x, [1, 0, 1, 0, 0, 1], 2), ROWS)
    limits = np.iinfo(np.int32)
    assert actual_fn(np.array([3, 7], "int32"), [1, 1]).numpy().tolist() == [
        limits.min if empty < 0 else limits.max, 7 if empty < 0 else 3,
    ]  # fmt: skip


def test_number_of_segments_is_inferred():
    assert backend.segment_sum(ROWS, [0, 0, 3, 1, 1, 1]).shape == (4, 3)


def test_cdist_gradient_is_zero_for_equal_points():
    x = tf.constant([[1.0, 2.0], [4.0, 6.0]])
    (g,) = gradient(lambda x: backend.cdist(x, tf.stop_gradient(x)), x)

    assert np.isfinite(g).all()
    np.testing.assert_allclose(g, [[-0.6, -0.8], [0.6, 0.8]], rtol=1e-6)


def test_in_top_k():
    predictions = np.array([[0.1, 0.9, 0.5], [0.2, 0.2, 0.1], [np.nan, 1.0, 2.0]])

    assert backend.in_top_k([2, 0, 0], predictions, 2).numpy().tolist() == [True, True, False]
    assert backend.in_top_k([2, 1, 1], predictions, 1).numpy().tolist() == [False, True, False]


@pytest.mark.parametrize("window", ["hann", "hamming", None, np.linspace(0.1, 1, 6)])
@pytest.mark.parametrize("center", [True, False])
def test_short_time_fourier_transform(window, center):
    def reference(x):
        w = scipy.signal.get_window(window, 6) if isinstance(window, str) else window
        w = np.ones(8) if w is None else np.pad(w, 1)
        x = np.pad(x, ((0, 0), (4, 4)), mode="reflect") if center else x
        y = np.fft.rfft(frames(x, 8, 3) * w)
        return np.concatenate([y.real, y.imag], -1)

    def actual_fn(x):
        return tf.concat(backend.stft(x, 6, 3, 8, window, center), -1)

    np.testing.assert_allclose(actual_fn(SIGNAL).numpy(), reference(SIGNAL), atol=1e-12)
    assert_gradients(actual_fn, SIGNAL)


@pytest.mark.parametrize("window", ["hann", np.ones(8)])
def test_istft_inverts_stft(window):
    spectrum = backend.stft(SIGNAL, 8, 2, 8, window)
    y = backend.istft(spectrum, 8, 2, 8, window=window)

    assert y.shape == SIGNAL.shape
    interior = slice(4, -4)  # at the ends fewer frames overlap
    np.testing.assert_allclose(y.numpy()[:, interior], SIGNAL[:, interior], atol=1e-12)
    assert backend.istft(spectrum, 8, 2, 8, length=11, window=window).shape == (2, 11)
    assert_gradients(
        lambda x, y: backend.istft((x, y), 8, 2, 8, window=window),
        *(part.numpy() for part in spectrum),
    )


def test_half_precision_fft_is_computed_in_float32():
    x = tf.cast(SIGNAL, "float16")
    y = backend.rfft(x)[0]

    assert y.dtype == "float16"
    np.testing.assert_allclose(y.numpy(), np.fft.rfft(SIGNAL).real, rtol=0.01, atol=0.01)


def test_errors():
    assert_raises(
        lambda: backend.fft(np.ones(3)),
        ValueError,
        "Input `x` should be a tuple of two tensors - real and imaginary. Received: x=[1. 1. 1.]",
    )
    assert_raises(
        lambda: backend.fft((np.ones(3), np.ones(2))),
        ValueError,
        "Input `x` should be a tuple of two tensors - real and imaginary. Both the real and "
        "imaginary parts should have the same shape. Received: "
        "x[0].shape = (3,), x[1].shape = (2,)",
    )
    assert_raises(
        lambda: backend.irfft((1, 2)),
        ValueError,
        "At least one tensor in input `x` is not of type float. Received: x=(1, 2).",
    )
    assert_raises(
        lambda: backend.stft(np.ones(9, "int32"), 4, 2, 4),
        TypeError,
        "Invalid input type. Expected `float32` or `float64`. Received: input type=int32",
    )
    assert_raises(
        lambda: backend.stft(SIGNAL, 8, 2, 4),
        ValueError,
        "`fft_length` must equal or larger than `sequence_length`. Received: "
        "sequence_length=8, fft_length=4",
    )
    assert_raises(
        lambda: backend.stft(SIGNAL, 4, 2, 4, window="round"),
        ValueError,
        'If a string is passed to `window`, it must be one of `"hann"`, `"hamming"`. '
        "Received: window=round",
    )
    assert_raises(
        lambda: backend.stft(SIGNAL, 4, 2, 4, window=np.ones(3)),
        ValueError,
        "The shape of `window` must be equal to [sequence_length]. Received: window shape=(3,)",
    )
    assert_raises(
        lambda: backend.istft((np.ones(3), np.ones(3)), 4, 2, 4),
        ValueError,
        "Input `x` must have at least 2 dimensions. Received shape: (3,)",
    )
    for x, y, message in (
        (np.ones(3), np.ones((1, 3)), "`cdist` inputs must have rank >= 2"),
        (np.ones((1, 2)), np.ones((1, 3)), "Last dimension of inputs to `cdist` must match"),
    ):
        assert_raises(lambda x=x, y=y: backend.cdist(x, y), ValueError, message)
