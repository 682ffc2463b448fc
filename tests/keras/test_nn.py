"""Compares `keras.ops.nn` with NumPy, SciPy and JAX, and gradients with finite differences."""

import itertools
import math
import warnings

import jax
import numpy as np
import pytest
import scipy.special
from jax import lax

import retrograde as tf
from retrograde import keras
from retrograde.keras_backend.ops import nn
from tests.namespaces.helpers import assert_gradients, assert_raises, gradient

ops = keras.ops
rng = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def _float64_in_jax():
    with jax.enable_x64(True):
        yield


def assert_close(actual, expected, rtol=1e-12, atol=1e-12):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def values_away_from(*points, shape=(3, 4)):
    """Returns numbers in [-7, 7] that are not close to `points`."""
    x = rng.uniform(-7, 7, shape)
    for point in points:
        x = np.where(abs(x - point) < 0.05, x + 0.2, x)
    return x


def logistic(x):
    return 1 / (1 + np.exp(-x))


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(x))


def gelu_tanh(x):
    return x * logistic(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))


def sparse_plus(x):
    return np.where(x <= -1, 0, np.where(x < 1, (x + 1) ** 2 / 4, x))


ACTIVATIONS = {
    "celu": (
        values_away_from(0),
        {"alpha": 0.7},
        lambda x: np.where(x > 0, x, 0.7 * np.expm1(x / 0.7)),
    ),
    "elu": (values_away_from(0), {"alpha": 1.5}, lambda x: elu(x, 1.5)),
    "exponential_linear": (values_away_from(0), {}, elu),
    "gelu": (values_away_from(), {"approximate": False}, lambda x: x * scipy.special.ndtr(x)),
    "gelu_tanh": (values_away_from(), {}, gelu_tanh),
    "glu": (values_away_from(), {"axis": -1}, lambda x: x[:, :2] * logistic(x[:, 2:])),
    "hard_shrink": (values_away_from(-0.5, 0.5), {}, lambda x: x * (abs(x) > 0.5)),
    "hard_sigmoid": (values_away_from(-3, 3), {}, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hard_silu": (values_away_from(-3, 3), {}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "hard_tanh": (values_away_from(-1, 1), {}, lambda x: np.clip(x, -1, 1)),
    "leaky_relu": (
        values_away_from(0),
        {"negative_slope": 0.3},
        lambda x: np.where(x > 0, x, 0.3 * x),
    ),
    "log_sigmoid": (values_away_from(), {}, lambda x: np.log(logistic(x))),
    "log_softmax": (values_away_from(), {"axis": 0}, lambda x: scipy.special.log_softmax(x, 0)),
    "relu": (values_away_from(0), {}, lambda x: np.maximum(x, 0)),
    "relu6": (values_away_from(0, 6), {}, lambda x: np.clip(x, 0, 6)),
    "selu": (values_away_from(0), {}, lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772)),
    "sigmoid": (values_away_from(), {}, logistic),
    "silu": (values_away_from(), {}, lambda x: x * logistic(x)),
    "soft_shrink": (
        values_away_from(-0.5, 0.5),
        {},
        lambda x: np.sign(x) * np.maximum(abs(x) - 0.5, 0),
    ),
    "softmax": (values_away_from(), {}, lambda x: scipy.special.softmax(x, -1)),
    "softmax_of_all": (values_away_from(), {"axis": None}, scipy.special.softmax),
    "softplus": (values_away_from(), {}, lambda x: np.log1p(np.exp(x))),
    "softsign": (values_away_from(0), {}, lambda x: x / (1 + abs(x))),
    "sparse_plus": (values_away_from(-1, 1), {}, sparse_plus),
    "sparse_sigmoid": (values_away_from(-1, 1), {}, lambda x: np.clip((x + 1) / 2, 0, 1)),
    "squareplus": (values_away_from(), {"b": 3}, lambda x: (x + np.sqrt(x * x + 3)) / 2),
    "tanh": (values_away_from(), {}, np.tanh),
    "tanh_shrink": (values_away_from(), {}, lambda x: x - np.tanh(x)),
    "threshold": (
        values_away_from(0.5),
        {"threshold": 0.5, "default_value": -2.0},
        lambda x: np.where(x > 0.5, x, -2.0),
    ),
}
NAMES = {"exponential_linear": "elu", "gelu_tanh": "gelu", "softmax_of_all": "softmax"}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    x, options, reference = ACTIVATIONS[name]
    function = getattr(nn, NAMES.get(name, name))

    assert_close(function(x, **options), reference(x))
    assert_gradients(lambda x: function(x, **options), x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_keep_the_dtype_of_floats(name, dtype):
    x, options, _ = ACTIVATIONS[name]
    y = getattr(nn, NAMES.get(name, name))(ops.cast(x, dtype), **options)

    assert y.dtype == dtype


NON_DIFFERENTIABLE_POINTS = {
    "relu": ([0.0], [0.0]),
    "relu6": ([0.0, 6.0], [0.0, 0.0]),
    "leaky_relu": ([0.0], [0.2]),
    "hard_tanh": ([-1.0, 1.0], [1.0, 1.0]),
    "hard_sigmoid": ([-3.0, 3.0], [0.0, 0.0]),
    "celu": ([0.0], [1.0]),
    "elu": ([0.0], [1.0]),
    "sparse_plus": ([-1.0, 1.0], [0.0, 1.0]),
}


@pytest.mark.parametrize("name", NON_DIFFERENTIABLE_POINTS)
def test_gradients_at_nondifferentiable_points(name):
    x, expected = NON_DIFFERENTIABLE_POINTS[name]

    assert gradient(getattr(ops, name), x)[0].tolist() == pytest.approx(expected)


def test_sparsemax_projects_onto_the_simplex():
    x = np.array([[0.3, 1.1, 0.9, -1.0], [2.0, 0.1, 0.2, 0.4], [0.1, 0.13, 0.18, 0.04]])
    y = np.asarray(ops.sparsemax(x))

    np.testing.assert_allclose(y.sum(1), 1)
    assert (y >= 0).all() and (y == 0).any()
    for other in rng.dirichlet(np.ones(4), 50):
        assert (((y - x) ** 2).sum(1) <= ((other - x) ** 2).sum(1)).all()
    assert_gradients(ops.sparsemax, x)
    assert_gradients(lambda x: ops.sparsemax(x, axis=0), x.T)


def test_glu_of_an_odd_axis_raises():
    with pytest.raises(ValueError, match="axis size must be divisible by 2"):
        ops.glu(np.ones((2, 3)))


# Convolutions


def dimension_numbers(ndim, channels_first):
    space = "DHW"[3 - ndim :]
    x = f"NC{space}" if channels_first else f"N{space}C"
    return x, f"{space}IO", x


def to_format(x, data_format):
    return np.moveaxis(x, -1, 1) if data_format == "channels_first" else x


FORMATS = ("channels_last", "channels_first")
CONVOLUTIONS = [
    *itertools.product([2], ("valid", "same"), FORMATS, ((1, 1), (2, 1), (1, 2))),
    (1, "valid", "channels_first", (1, 2)),
    (1, "same", "channels_last", (2, 1)),
    (3, "valid", "channels_last", (1, 1)),
    (3, "same", "channels_first", (2, 1)),
]


@pytest.mark.parametrize(("ndim", "padding", "data_format", "steps"), CONVOLUTIONS)
def test_conv(ndim, padding, data_format, steps):
    stride, dilation = steps
    x = to_format(rng.normal(size=(2, *(6, 5, 7)[:ndim], 4)), data_format)
    w = rng.normal(size=(*(3, 2, 2)[:ndim], 2, 6))  # two groups of channels
    strides, dilations = (stride,) * ndim, (dilation,) * ndim

    def call(x, w):
        return ops.conv(x, w, stride, padding, data_format, dilation)

    expected = lax.conv_general_dilated(
        x, w, strides, padding.upper(), rhs_dilation=dilations, feature_group_count=2,
        dimension_numbers=dimension_numbers(ndim, data_format == "channels_first"),
    )  # fmt: skip
    assert_close(call(x, w), expected)
    assert_gradients(call, x, w)


@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize("ndim", [1, 2])
def test_depthwise_and_separable_conv(ndim, data_format):
    x = to_format(rng.normal(size=(2, *(6, 5)[:ndim], 3)), data_format)
    w = rng.normal(size=(*(3, 2)[:ndim], 3, 2))
    pointwise = rng.normal(size=(*(1,) * ndim, 6, 4))
    dims = dimension_numbers(ndim, data_format == "channels_first")
    depthwise = lax.conv_general_dilated(
        x, w.reshape(*w.shape[:-2], 1, 6), (2,) * ndim, "SAME", feature_group_count=3,
        dimension_numbers=dims,
    )  # fmt: skip
    separable = lax.conv_general_dilated(
        depthwise, pointwise, (1,) * ndim, "VALID", dimension_numbers=dims
    )

    assert_close(ops.depthwise_conv(x, w, 2, "same", data_format), depthwise)
    assert_close(ops.separable_conv(x, w, pointwise, 2, "same", data_format), separable)
    assert_gradients(lambda x, w: ops.depthwise_conv(x, w, 2, "same", data_format), x, w)
    assert_gradients(
        lambda x, w, m: ops.separable_conv(x, w, m, 2, "same", data_format), x, w, pointwise
    )


TRANSPOSED = [
    case
    for case in [
        *itertools.product([1], ("valid", "same"), (1, 2, 3), (None, 0, 1), (1, 2), (2, 3)),
        *itertools.product([2], ("valid", "same"), (1, 3), (None,), (1, 2), (3,)),
    ]
    if not (case[2] > 1 and case[4] > 1) and (case[3] or 0) < case[2]  # supported by Keras
]


@pytest.mark.parametrize(
    ("ndim", "padding", "stride", "output_padding", "dilation", "kernel_size"), TRANSPOSED
)
def test_conv_transpose(ndim, padding, stride, output_padding, dilation, kernel_size):
    """Compares with JAX, with the paddings that Keras computes for it."""
    from keras.src.backend.common.backend_utils import compute_conv_transpose_padding_args_for_jax

    x, w = (
        rng.normal(size=(2, *(4, 3)[:ndim], 3)),
        rng.normal(size=(*(kernel_size, 2)[:ndim], 5, 3)),
    )
    paddings = compute_conv_transpose_padding_args_for_jax(
        x.shape, w.shape, stride, padding, output_padding, dilation
    )

    def call(x, w):
        return ops.conv_transpose(x, w, stride, padding, output_padding, "channels_last", dilation)

    expected = lax.conv_transpose(
        x, w, (stride,) * ndim, paddings, rhs_dilation=(dilation,) * ndim,
        dimension_numbers=dimension_numbers(ndim, False), transpose_kernel=True,
    )  # fmt: skip
    assert_close(call(x, w), expected)
    assert_gradients(call, x, w)
    first = ops.conv_transpose(
        np.moveaxis(x, -1, 1), w, stride, padding, output_padding, "channels_first", dilation
    )
    assert_close(first, np.moveaxis(expected, -1, 1))


def test_conv_dtype_promotion():
    x, w = np.ones((1, 4, 1), "float16"), np.ones((2, 1, 1), "float32")

    assert ops.conv(x, w).dtype == "float32"
    assert ops.conv(x, ops.cast(w, "bfloat16")).dtype == "float32"


def test_invalid_convolutions_raise():
    with pytest.raises(ValueError, match="evenly divisible by kernel's in_channels"):
        ops.conv(np.ones((1, 4, 3)), np.ones((2, 2, 4)))
    with pytest.raises(ValueError, match="resulted in an empty output"):
        ops.conv(np.ones((1, 4, 3)), np.ones((5, 3, 4)))
    with pytest.raises(ValueError, match="Invalid padding 'full', must be 'same' or 'valid'"):
        ops.max_pool(np.ones((1, 4, 3)), 2, padding="full")


# Pooling


POOLS = [
    *itertools.product([2], ("valid", "same"), FORMATS, (1, 2)),
    (1, "same", "channels_last", 2),
    (1, "valid", "channels_first", 1),
    (3, "same", "channels_first", 2),
    (3, "valid", "channels_last", 1),
]


@pytest.mark.parametrize(("ndim", "padding", "data_format", "stride"), POOLS)
def test_pooling(ndim, padding, data_format, stride):
    shape = (2, *(6, 5, 3)[:ndim], 4)
    x = to_format(rng.permutation(math.prod(shape)).reshape(shape) / 7.0, data_format)
    first = data_format == "channels_first"

    def full_shape(size):
        return (1, 1, *size) if first else (1, *size, 1)

    window, strides = full_shape((3, 2, 2)[:ndim]), full_shape((stride,) * ndim)

    def reduce_window(x, start, combine):
        return lax.reduce_window(x, start, combine, window, strides, padding.upper())

    counts = reduce_window(np.ones_like(x), 0.0, lax.add)
    arguments = ((3, 2, 2)[:ndim], stride, padding, data_format)
    assert_close(ops.max_pool(x, *arguments), reduce_window(x, -np.inf, lax.max))
    assert_close(ops.average_pool(x, *arguments), reduce_window(x, 0.0, lax.add) / counts)
    assert_gradients(lambda x: ops.max_pool(x, *arguments), x)
    assert_gradients(lambda x: ops.average_pool(x, *arguments), x)


@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize("size", [(3, 4), 1, (5, 7), 2])
def test_adaptive_pooling(size, data_format):
    channels_last = rng.permutation(2 * 5 * 7 * 3).reshape(2, 5, 7, 3) / 3.0
    x = to_format(channels_last, data_format)
    rows, columns = (size, size) if isinstance(size, int) else size

    def expected(combine):
        def window_slice(i, count, n):
            return slice(i * n // count, -(-(i + 1) * n // count))

        y = np.empty((2, rows, columns, 3))
        for i, j in np.ndindex(rows, columns):
            window_values = channels_last[:, window_slice(i, rows, 5), window_slice(j, columns, 7)]
            y[:, i, j] = combine(window_values, (1, 2))
        return to_format(y, data_format)

    for function, combine in (
        (ops.adaptive_max_pool, np.max),
        (ops.adaptive_average_pool, np.mean),
    ):
        assert_close(function(x, size, data_format=data_format), expected(combine))
        assert_gradients(lambda x, function=function: function(x, size, data_format=data_format), x)


# Losses


PROBABILITIES = scipy.special.softmax(rng.normal(size=(4, 3)), -1)
LOGITS = rng.normal(size=(4, 3))
TARGETS = scipy.special.softmax(rng.normal(size=(4, 3)), -1)
CLASSES = np.array([0, 2, 1, 2])


def test_categorical_crossentropy():
    expected = -(TARGETS * np.log(PROBABILITIES)).sum(-1)
    from_logits = -(TARGETS * scipy.special.log_softmax(LOGITS, -1)).sum(-1)

    assert_close(ops.categorical_crossentropy(TARGETS, PROBABILITIES), expected)
    assert_close(ops.categorical_crossentropy(TARGETS, 3 * PROBABILITIES), expected)
    assert_close(ops.categorical_crossentropy(TARGETS, LOGITS, from_logits=True), from_logits)
    assert_close(
        ops.categorical_crossentropy(TARGETS.T, LOGITS.T, from_logits=True, axis=0), from_logits
    )
    assert_gradients(ops.categorical_crossentropy, TARGETS, PROBABILITIES)
    assert_gradients(lambda t, x: ops.categorical_crossentropy(t, x, True), TARGETS, LOGITS)


def test_sparse_categorical_crossentropy():
    rows = np.arange(4)
    expected = -np.log(PROBABILITIES)[rows, CLASSES]
    from_logits = -scipy.special.log_softmax(LOGITS, -1)[rows, CLASSES]

    for classes in (CLASSES, CLASSES[:, None], CLASSES.astype("float32")):
        assert_close(ops.sparse_categorical_crossentropy(classes, PROBABILITIES), expected)
        assert_close(
            ops.sparse_categorical_crossentropy(classes, LOGITS, from_logits=True), from_logits
        )
    assert_gradients(lambda x: ops.sparse_categorical_crossentropy(CLASSES, x), PROBABILITIES)
    assert_gradients(lambda x: ops.sparse_categorical_crossentropy(CLASSES, x, True), LOGITS)


def test_binary_crossentropy():
    p = PROBABILITIES
    expected = -(TARGETS * np.log(p) + (1 - TARGETS) * np.log(1 - p))
    from_logits = np.log1p(np.exp(LOGITS)) - LOGITS * TARGETS

    assert_close(ops.binary_crossentropy(TARGETS, p), expected)
    assert_close(ops.binary_crossentropy(TARGETS, LOGITS, from_logits=True), from_logits)
    assert_gradients(ops.binary_crossentropy, TARGETS, p)
    assert_gradients(lambda t, x: ops.binary_crossentropy(t, x, True), TARGETS, LOGITS)


def test_probabilities_of_zero_are_clipped():
    loss = ops.categorical_crossentropy([[0.0, 1.0]], [[1.0, 0.0]])

    assert float(loss[0]) == pytest.approx(-math.log(keras.config.epsilon()), rel=1e-5)


LOSSES = {
    "categorical_crossentropy": ("softmax", TARGETS),
    "sparse_categorical_crossentropy": ("softmax", CLASSES),
    "binary_crossentropy": ("sigmoid", TARGETS),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_use_the_logits_of_activations(name):
    """Losses of logits neither clip nor lose precision."""
    activation, target = LOSSES[name]
    activation = getattr(keras.activations, activation)
    loss = getattr(ops, name)
    large_logits = 100 * LOGITS

    def through_activation(x):
        return loss(target, activation(x))

    assert_close(through_activation(large_logits), loss(target, large_logits, from_logits=True))
    assert_close(
        gradient(through_activation, large_logits)[0],
        gradient(lambda x: loss(target, x, from_logits=True), large_logits)[0],
    )


@pytest.mark.parametrize("name", LOSSES)
def test_from_logits_with_probabilities_warns(name):
    activation, target = LOSSES[name]
    output = getattr(keras.activations, activation)(ops.convert_to_tensor(LOGITS))

    with pytest.warns(UserWarning, match=f"`{name}` received `from_logits=True`, but the `output`"):
        getattr(ops, name)(target, output, from_logits=True)


def test_shape_mismatch_in_losses_raises():
    with pytest.raises(ValueError, match="must have the same shape"):
        ops.binary_crossentropy(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="must have the same shape"):
        ops.categorical_crossentropy(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ValueError, match="up until the last dimension"):
        ops.sparse_categorical_crossentropy(np.ones(3), np.ones((2, 4)))


def test_one_hot_and_multi_hot():
    classes = np.array([[0, 2], [-1, 1]])
    expected = np.stack([classes == k for k in range(3)], -1)

    assert_close(ops.one_hot(classes, 3), expected.astype("float32"))
    assert_close(ops.one_hot(classes, 3, axis=1, dtype="bool"), np.moveaxis(expected, -1, 1))
    first = np.moveaxis(expected, -1, 0).astype("int32")
    assert_close(ops.one_hot(classes, 3, axis=0, dtype="int32"), first)
    assert_close(ops.multi_hot(classes, 3), expected.any(1).astype("float32"))
    assert_close(ops.multi_hot(classes[0], 3, dtype="bool"), expected[0].any(0))


def test_psnr():
    x, y = rng.uniform(size=(2, 3, 4, 2))
    expected = 20 * np.log10(2.0) - 10 * np.log10(np.mean((x - y) ** 2))

    assert_close(ops.psnr(x, y, 2.0), expected)
    assert_gradients(lambda x, y: ops.psnr(x, y, 2.0), x, y)


# Normalization


@pytest.mark.parametrize("axes", [0, (0,), (0, 2), (-1,), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_moments(axes, keepdims):
    x = rng.normal(size=(3, 4, 2))
    mean, variance = ops.moments(x, axes, keepdims)

    assert_close(mean, x.mean(axes, keepdims=keepdims))
    assert_close(variance, x.var(axes, keepdims=keepdims))
    for part in range(2):
        assert_gradients(lambda x, part=part: ops.moments(x, axes, keepdims)[part], x)


def test_moments_of_half_precision_do_not_overflow():
    mean, variance = ops.moments(np.full((8, 8), 3e4, "float16"), (0, 1))

    assert float(mean) == 3e4 and float(variance) == 0
    _, variance = ops.moments(np.array([-6e4, 6e4], "float16"), (0,))
    assert variance.dtype == "float16" and float(variance) == 65504


@pytest.mark.parametrize("axis", [-1, 1])
def test_batch_normalization(axis):
    x = rng.normal(size=(4, 3, 3))
    mean, offset, scale = rng.normal(size=(3, 3))
    variance = rng.uniform(0.5, 2, 3)
    shape = (3,) if axis == -1 else (3, 1)
    m, v, o, s = (part.reshape(shape) for part in (mean, variance, offset, scale))

    def call(x, m, v, o, s):
        return ops.batch_normalization(x, m, v, axis, o, s, 0.01)

    assert_close(call(x, mean, variance, offset, scale), (x - m) / np.sqrt(v + 0.01) * s + o)
    assert_close(ops.batch_normalization(x, mean, variance, axis), (x - m) / np.sqrt(v + 1e-3))
    assert_gradients(call, x, mean, variance, offset, scale)


# Attention


@pytest.mark.parametrize("heads", [4, 2], ids=["multi_head", "grouped_query"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_dot_product_attention(heads, is_causal, masked):
    query = rng.normal(size=(2, 5, 4, 3))
    key, value = rng.normal(size=(2, 2, 6, heads, 3))
    bias = rng.normal(size=(2, 4, 5, 6))
    mask = rng.uniform(size=(2, 1, 5, 6)) < 0.7 if masked else None
    if masked:
        mask[..., 0] = True

    def call(query, key, value, bias):
        return ops.dot_product_attention(
            query, key, value, bias=bias, mask=mask, is_causal=is_causal, scale=0.6
        )

    repeated_key, repeated_value = (np.repeat(x, 4 // heads, axis=2) for x in (key, value))
    logits = np.einsum("btnh,bsnh->bnts", query, repeated_key) * 0.6 + bias
    combined_mask = np.ones((2, 1, 5, 6), bool) if mask is None else mask
    combined_mask = combined_mask & np.tri(5, 6, dtype=bool) if is_causal else combined_mask
    weights = scipy.special.softmax(np.where(combined_mask, logits, -np.inf), -1)

    expected = np.einsum("bnts,bsnh->btnh", weights, repeated_value)
    assert_close(call(query, key, value, bias), expected)
    assert_gradients(call, query, key, value, bias)


def test_attention_of_half_precision_is_computed_in_float32():
    query = ops.cast(rng.normal(size=(1, 4, 2, 8)), "bfloat16")
    y = ops.dot_product_attention(query, query, query)
    expected = ops.dot_product_attention(*(ops.cast(query, "float32"),) * 3)

    assert y.dtype == "bfloat16"
    np.testing.assert_allclose(np.asarray(y, "float32"), expected, rtol=0.02, atol=0.01)


# Patches


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2}, {"padding": (1, 0), "dilation": (1, 2)}], ids=str
)
def test_fold_is_the_transpose_of_unfold(options):
    x = rng.normal(size=(2, 3, 5, 6))
    y = ops.unfold(x, (2, 3), **options)
    w = rng.normal(size=y.shape)
    folded = ops.fold(w, (5, 6), (2, 3), **options)

    np.testing.assert_allclose(np.sum(w * np.asarray(y)), np.sum(np.asarray(folded) * x))
    assert_gradients(lambda x: ops.unfold(x, (2, 3), **options), x)
    assert_gradients(lambda w: ops.fold(w, (5, 6), (2, 3), **options), w)


def test_unfold_returns_windows_as_columns():
    x = np.arange(2 * 9.0).reshape(1, 2, 3, 3)
    y = np.asarray(ops.unfold(x, 2))

    assert y.shape == (1, 8, 4)
    assert y[0, :, 0].tolist() == [0, 1, 3, 4, 9, 10, 12, 13]
    assert y[0, 0].tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize("data_format", FORMATS)
def test_space_to_depth_and_depth_to_space(data_format):
    channels_last = np.arange(2 * 4 * 6 * 3.0).reshape(2, 4, 6, 3)
    x = to_format(channels_last, data_format)
    y = ops.space_to_depth(x, 2, data_format)

    assert_close(ops.depth_to_space(y, 2, data_format), x)
    first = np.moveaxis(np.asarray(y), 1, -1) if data_format == "channels_first" else y
    corner = set(np.asarray(first)[0, 0, 0].tolist())
    assert corner == set(channels_last[0, :2, :2].ravel().tolist())
    assert_gradients(lambda x: ops.space_to_depth(x, 2, data_format), x)
    assert_gradients(lambda y: ops.depth_to_space(y, 2, data_format), np.asarray(y))


# CTC


def alignments(labels, time, blank):
    """Yields the paths of `time` classes that collapse to `labels`."""
    for path in itertools.product(range(3), repeat=time):
        merged = [c for c, _ in itertools.groupby(path)]
        if [c for c in merged if c != blank] == list(labels):
            yield path


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_loss_sums_over_all_alignments(blank):
    labels = [[1, 1], [1, 0]] if blank == 2 else [[2, 2], [1, 0]]
    lengths, times = [2, 1], [4, 3]
    logits = rng.normal(size=(2, 4, 3))

    def probability(row):
        logs = scipy.special.log_softmax(logits[row, : times[row]], -1)
        paths = alignments(labels[row][: lengths[row]], times[row], blank)
        return sum(np.exp(sum(at[c] for at, c in zip(logs, path, strict=True))) for path in paths)

    def call(x):
        return ops.ctc_loss(labels, x, lengths, times, mask_index=blank)

    assert_close(call(logits), -np.log([probability(0), probability(1)]))
    assert_gradients(call, logits)


def test_ctc_decode():
    best = np.array([[1, 1, 0, 1, 2], [2, 0, 0, 1, 1]])
    logits = 5 * np.eye(3)[best]
    labels, scores = ops.ctc_decode(logits, [5, 4])
    beam, beam_scores = ops.ctc_decode(
        logits, [5, 4], strategy="beam_search", beam_width=6, top_paths=2
    )

    assert np.asarray(labels).tolist() == [[[1, 1, 2, -1, -1], [2, 1, -1, -1, -1]]]
    assert_close(scores, [[-25.0], [-20.0]])
    assert np.asarray(beam)[0].tolist() == np.asarray(labels)[0].tolist()
    assert (np.asarray(beam_scores)[:, 0] > np.asarray(beam_scores)[:, 1]).all()
    unmerged, _ = ops.ctc_decode(logits, [5, 4], merge_repeated=False)
    assert np.asarray(unmerged)[0].tolist() == [[1, 1, 1, 2, -1], [2, 1, -1, -1, -1]]


def test_synchronized_moments_of_one_replica_are_its_moments():
    x = rng.normal(size=(5, 3))
    for actual, expected in zip(
        ops.moments(x, 0, synchronized=True), ops.moments(x, 0), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)


def test_unsupported_options_raise():
    x = np.ones((1, 2, 1, 2))
    for call, error, message in (
        (lambda: ops.dot_product_attention(x, x, x, flash_attention=True), ValueError,
         "Flash attention is not supported with the retrograde backend."),
        (lambda: ops.one_hot([1], 2, sparse=True), ValueError,
         "Unsupported value `sparse=True` with the retrograde backend"),
    ):  # fmt: skip
        assert_raises(call, error, message)


def test_gradients_flow_through_keras_variables():
    kernel = keras.Variable(rng.normal(size=(3, 2, 4)))
    x = tf.constant(rng.normal(size=(1, 5, 2)), tf.float32)
    with tf.GradientTape() as tape, warnings.catch_warnings():
        y = ops.relu(ops.conv(x, kernel))

    assert tape.gradient(y, kernel).shape == (3, 2, 4)
