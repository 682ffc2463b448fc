"""Property tests with random shapes, keys and axes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import retrograde as tf
from retrograde.core.apply import PRIMITIVES, apply

many = settings(max_examples=100, deadline=None, derandomize=True)
some = settings(max_examples=30, deadline=None, derandomize=True)


def numbers(shape, seed, low=0.3, high=1.7):
    return np.random.default_rng(seed).uniform(low, high, shape)


def gradients_of(f, arrays, g):
    """Returns the result of `f`, the cotangent `g(y)`, and the gradients of `arrays`."""
    xs = [tf.constant(x) for x in arrays]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    weights = g(y.numpy())
    gradients = tape.gradient(y, xs, weights)
    return y.numpy(), weights, [tf.convert_to_tensor(x).numpy() for x in gradients]


def cotangent(y):
    return numbers(np.shape(y), 99, -1, 1)


def assert_finite_differences(f, arrays, weights, gradients, step=1e-6):
    """Asserts that gradients agree with finite differences of the weighted sum of `f`."""
    for i, (x, gradient) in enumerate(zip(arrays, gradients, strict=True)):
        assert gradient.shape == x.shape
        direction = numbers(x.shape, i, -1, 1)
        plus, minus = (
            np.sum(weights * f(*arrays[:i], x + h * direction, *arrays[i + 1 :]))
            for h in (step, -step)
        )
        difference = (plus - minus) / (2 * step)
        np.testing.assert_allclose(np.sum(gradient * direction), difference, rtol=1e-7, atol=1e-7)


BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "atan2": np.arctan2,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "squared_difference": lambda a, b: (a - b) ** 2,
}


@pytest.mark.parametrize(("name", "f"), BINARY.items(), ids=BINARY)
@some
@given(
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=2, min_dims=0, max_dims=4, max_side=3),
    seed=st.integers(0, 1000),
)
def test_gradients_through_any_broadcast(name, f, shapes, seed):
    arrays = [numbers(shape, seed + i) for i, shape in enumerate(shapes.input_shapes)]

    y, weights, gradients = gradients_of(
        lambda a, b: apply(PRIMITIVES[name], (a, b)), arrays, cotangent
    )

    np.testing.assert_allclose(y, f(*arrays), rtol=1e-14)
    assert_finite_differences(f, arrays, weights, gradients)


@many
@given(
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_dims=3, max_side=3),
    seed=st.integers(0, 1000),
)
def test_where_broadcasts_condition_and_both_branches(shapes, seed):
    c, a, b = shapes.input_shapes
    condition = numbers(c, seed) > 1
    arrays = [numbers(a, seed + 1), numbers(b, seed + 2)]

    y, weights, gradients = gradients_of(lambda a, b: tf.where(condition, a, b), arrays, cotangent)

    np.testing.assert_array_equal(y, np.where(condition, *arrays))
    assert_finite_differences(lambda a, b: np.where(condition, a, b), arrays, weights, gradients)


@many
@given(
    batches=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3),
    sizes=st.tuples(*[st.integers(0, 3)] * 3),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_matmul_broadcasts_its_batch_axes(batches, sizes, flags):
    n, k, m = sizes
    shapes = [(k, n) if flags[0] else (n, k), (m, k) if flags[1] else (k, m)]
    arrays = [
        numbers((*batch, *shape), i)
        for i, (batch, shape) in enumerate(zip(batches.input_shapes, shapes, strict=True))
    ]

    def product(a, b):
        return np.matmul(a.mT if flags[0] else a, b.mT if flags[1] else b)

    y, weights, gradients = gradients_of(
        lambda a, b: tf.matmul(a, b, transpose_a=flags[0], transpose_b=flags[1]), arrays, cotangent
    )

    np.testing.assert_allclose(y, product(*arrays), rtol=1e-13)
    assert_finite_differences(product, arrays, weights, gradients)


# Indexing


@st.composite
def arrays_and_keys(draw):
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, max_side=4))
    key = draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    return numbers(shape, draw(st.integers(0, 1000))), key


@many
@given(arrays_and_keys())
def test_basic_indexing_agrees_with_numpy(array_and_key):
    x, key = array_and_key

    y, weights, (gradient,) = gradients_of(lambda x: x[key], [x], cotangent)

    np.testing.assert_array_equal(y, x[key])
    expected = np.zeros_like(x)
    expected[key] = weights
    np.testing.assert_array_equal(gradient, expected)


@many
@given(
    shape=hnp.array_shapes(min_dims=1, max_dims=3, max_side=4),
    rank=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_boolean_masks_agree_with_numpy(shape, rank, seed):
    x = numbers(shape, seed)
    mask = numbers(shape[:rank], seed + 1) > 0.8

    y, weights, (gradient,) = gradients_of(lambda x: x[mask], [x], cotangent)

    np.testing.assert_array_equal(y, x[mask])
    expected = np.zeros_like(x)
    expected[mask] = weights
    np.testing.assert_array_equal(gradient, expected)


@many
@given(
    shape=hnp.array_shapes(min_dims=1, max_dims=4, max_side=4),
    indices=hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3),
    data=st.data(),
)
def test_gather_agrees_with_numpy(shape, indices, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    positions = data.draw(hnp.arrays(np.int64, indices, elements=st.integers(0, shape[axis] - 1)))
    x = numbers(shape, 5)

    y, weights, (gradient,) = gradients_of(
        lambda x: tf.gather(x, positions, axis=axis), [x], cotangent
    )

    np.testing.assert_array_equal(y, np.take(x, positions, axis))
    assert_finite_differences(lambda x: np.take(x, positions, axis), [x], weights, [gradient])


# Reductions

REDUCTIONS = {
    "sum": (tf.reduce_sum, np.sum),
    "mean": (tf.reduce_mean, np.mean),
    "prod": (tf.reduce_prod, np.prod),
    "max": (tf.reduce_max, np.max),
    "min": (tf.reduce_min, np.min),
    "logsumexp": (tf.reduce_logsumexp, lambda x, **kw: np.log(np.sum(np.exp(x), **kw))),
    "variance": (tf.math.reduce_variance, np.var),
}


@pytest.mark.parametrize(("reduce", "on_numpy"), REDUCTIONS.values(), ids=REDUCTIONS)
@some
@given(
    shape=hnp.array_shapes(min_dims=0, max_dims=4, max_side=3),
    keepdims=st.booleans(),
    data=st.data(),
)
def test_reductions_over_any_axes(reduce, on_numpy, shape, keepdims, data):
    axis = data.draw(st.none() | hnp.valid_tuple_axes(len(shape)))
    x = numbers(shape, 3)

    y, weights, (gradient,) = gradients_of(
        lambda x: reduce(x, axis=axis, keepdims=keepdims), [x], cotangent
    )

    np.testing.assert_allclose(y, on_numpy(x, axis=axis, keepdims=keepdims), rtol=1e-13, atol=1e-15)
    assert_finite_differences(
        lambda x: on_numpy(x, axis=axis, keepdims=keepdims), [x], weights, [gradient]
    )


# Chains of shape operations


@st.composite
def shape_operations(draw, shape):
    """Draws an operation on a tensor of `shape`, as functions of tensors and of arrays."""
    ndim = len(shape)
    kind = draw(
        st.sampled_from(["reshape", "transpose", "reverse", "concat", "split", "stack", "pad"])
    )
    if kind == "reshape" or not ndim:
        size = int(np.prod(shape))
        side = draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
        new = draw(st.permutations([side, size // side, 1]))
        return lambda x: tf.reshape(x, new), lambda x: x.reshape(new)
    axis = draw(st.integers(0, ndim - 1))
    if kind == "transpose":
        perm = draw(st.permutations(range(ndim)))
        return lambda x: tf.transpose(x, perm), lambda x: x.transpose(perm)
    if kind == "reverse":
        return lambda x: tf.reverse(x, [axis]), lambda x: np.flip(x, axis)
    if kind == "concat":
        return lambda x: tf.concat([x, 2 * x], axis), lambda x: np.concatenate([x, 2 * x], axis)
    if kind == "stack":
        return lambda x: tf.stack([x, -x], axis), lambda x: np.stack([x, -x], axis)
    if kind == "pad":
        widths = [(int(i == axis), 2 * int(i == axis)) for i in range(ndim)]
        return lambda x: tf.pad(x, widths), lambda x: np.pad(x, widths)
    first = draw(st.integers(1, shape[axis]))
    sizes = [first, shape[axis] - first]
    return (
        lambda x: tf.split(x, sizes, axis)[0] * 3,
        lambda x: np.split(x, [first], axis)[0] * 3,
    )


@many
@given(shape=hnp.array_shapes(min_dims=0, max_dims=3, max_side=3), data=st.data())
def test_chains_of_shape_operations(shape, data):
    x = numbers(shape, 11)
    steps, y = [], x
    for _ in range(data.draw(st.integers(1, 4))):
        steps.append(data.draw(shape_operations(y.shape)))
        y = steps[-1][1](y)

    def chain(x, index):
        for step in steps:
            x = step[index](x)
        return x

    result, weights, (gradient,) = gradients_of(lambda x: chain(x, 0), [x], cotangent)

    np.testing.assert_array_equal(result, y)
    assert_finite_differences(lambda x: chain(x, 1), [x], weights, [gradient])
