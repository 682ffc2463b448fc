"""Unknown dimensions in Keras. The expected shapes come from TensorFlow."""

import subprocess
import sys

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras
from retrograde.keras_backend.symbolic import compute_output_spec
from retrograde.values.sizes import Size

layers, ops = keras.layers, keras.ops


def symbolic(shape):
    """Returns a `KerasTensor`. A dtype may be the last element of the shape."""
    *sizes, last = shape if shape and isinstance(shape[-1], str) else (*shape, "float32")
    return keras.KerasTensor(sizes, last)


class Call(layers.Layer):
    """A layer that calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def call(self, *inputs):
        return self.function(*inputs)


def shapes_of(results):
    return [tuple(y.shape) for y in tf.nest.flatten(results)]


# Each entry lists a function, the shapes of its inputs and the shapes of its results.
FUNCTIONS = {
    "reshape84": (lambda x: tf.reshape(x, [-1, 84]), [(None,)], [(None, 84)]),
    "reshape784": (lambda x: tf.reshape(x, [-1, 784]), [(None, 28, 28)], [(None, 784)]),
    "reshape1000": (lambda x: tf.reshape(x, [-1, 1000]), [(None,)], [(None, 1000)]),
    "reshape_dyn2": (
        lambda x: tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[1], 4, 8]),
        [(None, None, 32)],
        [(None, None, 4, 8)],
    ),
    "reshape_ops": (
        lambda x: ops.reshape(x, (ops.shape(x)[0], ops.shape(x)[1], 4, 8)),
        [(None, None, 32)],
        [(None, None, 4, 8)],
    ),
    "split4": (
        lambda x: tf.split(x, 4, axis=1),
        [(None, None, 32)],
        [(None, None, 32), (None, None, 32), (None, None, 32), (None, None, 32)],
    ),
    "cls": (
        lambda x: tf.concat([tf.zeros([tf.shape(x)[0], 1, x.shape[-1]]), x], 1),
        [(None, None, 16)],
        [(None, None, 16)],
    ),
    "cls_tile": (
        lambda x: tf.concat([tf.tile(tf.ones([1, 1, 16]), [tf.shape(x)[0], 1, 1]), x], 1),
        [(None, 9, 16)],
        [(None, 10, 16)],
    ),
    "bcast": (
        lambda x: tf.broadcast_to(tf.ones([1, 1, 16]), [tf.shape(x)[0], 1, 16]),
        [(None, 9, 16)],
        [(None, 1, 16)],
    ),
    "positions": (lambda x: tf.range(0, tf.shape(x)[-1], 1), [(None, None)], [(None,)]),
    "positions2": (
        lambda x: x + tf.cast(tf.range(tf.shape(x)[1]), tf.float32)[None, :, None],
        [(None, None, 8)],
        [(None, None, 8)],
    ),
    "arange_ops": (lambda x: ops.arange(0, ops.shape(x)[-1]), [(None, None)], [(None,)]),
    "causal": (
        lambda x: tf.range(tf.shape(x)[1])[:, None] >= tf.range(tf.shape(x)[1]),
        [(None, None, 8)],
        [(None, None)],
    ),
    "slice1": (lambda x: x[:, 1:], [(None, None, 8)], [(None, None, 8)]),
    "slice-1": (lambda x: x[:, :-1], [(None, None, 8)], [(None, None, 8)]),
    "slice_last": (lambda x: x[:, -1], [(None, None, 8)], [(None, 8)]),
    "slice_2": (lambda x: x[:, ::2], [(None, None, 8)], [(None, None, 8)]),
    "onehot": (lambda x: tf.one_hot(x, 30000), [(None, None, "int32")], [(None, None, 30000)]),
    "gather": (
        lambda x, i: tf.gather(x, i, axis=1, batch_dims=1),
        [(None, None, 8), (None, 5, "int32")],
        [(None, 5, 8)],
    ),
    "matmul": (
        lambda x: tf.matmul(x, x, transpose_b=True),
        [(None, None, 8)],
        [(None, None, None)],
    ),
    "einsum": (lambda x: tf.einsum("btd,bsd->bts", x, x), [(None, None, 8)], [(None, None, None)]),
    "softmax": (lambda x: tf.nn.softmax(x), [(None, None, 8)], [(None, None, 8)]),
    "reduce": (lambda x: tf.reduce_mean(x, axis=[1, 2]), [(None, None, None, 3)], [(None, 3)]),
    "size": (lambda x: tf.cast(tf.size(x), tf.float32), [(None, None, 8)], [()]),
    "batchsum": (
        lambda x: tf.reduce_sum(x) / tf.cast(tf.shape(x)[0], tf.float32),
        [(None, 8)],
        [()],
    ),
    "noise": (lambda x: x + tf.random.normal(tf.shape(x)), [(None, None, 8)], [(None, None, 8)]),
    "noise2": (
        lambda m, v: m + tf.exp(v) * tf.random.normal(shape=(tf.shape(m)[0], tf.shape(m)[1])),
        [(None, 2), (None, 2)],
        [(None, 2)],
    ),
    "vae_ops": (
        lambda m, v: m + ops.exp(v) * keras.random.normal(shape=(ops.shape(m)[0], ops.shape(m)[1])),
        [(None, 2), (None, 2)],
        [(None, 2)],
    ),
    "patches": (
        lambda x: tf.image.extract_patches(x, [1, 6, 6, 1], [1, 6, 6, 1], [1, 1, 1, 1], "VALID"),
        [(None, 72, 72, 3)],
        [(None, 12, 12, 108)],
    ),
    "resize": (
        lambda x: tf.image.resize(x, [32, 32]),
        [(None, None, None, 3)],
        [(None, 32, 32, 3)],
    ),
    "resize2": (
        lambda x: tf.image.resize(x, [tf.shape(x)[1] * 2, tf.shape(x)[2] * 2]),
        [(None, None, None, 3)],
        [(None, None, None, 3)],
    ),
    "d2s": (
        lambda x: tf.nn.depth_to_space(x, 2),
        [(None, None, None, 12)],
        [(None, None, None, 3)],
    ),
    "pad": (
        lambda x: tf.pad(x, [[0, 0], [1, 1], [2, 2], [0, 0]]),
        [(None, None, None, 3)],
        [(None, None, None, 3)],
    ),
    "where": (lambda x: tf.where(x > 0, x, tf.zeros_like(x)), [(None, None, 3)], [(None, None, 3)]),
    "stack": (lambda x: tf.stack([x, x], axis=1), [(None, 3)], [(None, 2, 3)]),
    "unstack": (lambda x: tf.unstack(x, axis=1), [(None, 3)], [(None,), (None,), (None,)]),
    "transpose": (lambda x: tf.transpose(x, [1, 0, 2]), [(None, None, 3)], [(None, None, 3)]),
    "expand": (lambda x: x[:, tf.newaxis], [(None, 3)], [(None, 1, 3)]),
    "cumsum": (lambda x: tf.cumsum(x, axis=1), [(None, None, 3)], [(None, None, 3)]),
    "topk": (lambda x: tf.math.top_k(x, 3)[0], [(None, 10)], [(None, 3)]),
    "argmax": (lambda x: tf.argmax(x, -1), [(None, None, 10)], [(None, None)]),
    "linspace": (lambda x: tf.linspace(0.0, 1.0, 5) * x[:, :1], [(None, 10)], [(None, 5)]),
    "meshgrid": (
        lambda x: tf.meshgrid(tf.range(tf.shape(x)[1]), tf.range(tf.shape(x)[2])),
        [(None, None, None, 3)],
        [(None, None), (None, None)],
    ),
    "seqmask": (
        lambda n, x: tf.sequence_mask(n, tf.shape(x)[1]),
        [(None, "int32"), (None, None)],
        [(None, None)],
    ),
    "known_meets": (lambda x: x + tf.ones([10, 8]), [(None, None, 8)], [(None, 10, 8)]),
    "mean_var": (lambda x: tf.nn.moments(x, [0])[0], [(None, 8)], [(8,)]),
    "fill": (lambda x: tf.fill([tf.shape(x)[0], 1], 2.0), [(None, 8)], [(None, 1)]),
    "eye": (lambda x: tf.eye(tf.shape(x)[0]), [(None, 8)], [(None, None)]),
    "whileloop": (
        lambda x: tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * 2), (0, x))[1],
        [(None, 8)],
        [(None, 8)],
    ),
    "mapfn": (lambda x: tf.map_fn(lambda r: r * 2, x), [(None, 8)], [(None, 8)]),
    "mapfn_sum": (lambda x: tf.map_fn(lambda r: tf.reduce_sum(r), x), [(None, 8)], [(None,)]),
    "scan": (lambda x: tf.scan(lambda a, r: a + r, x), [(None, 8)], [(None, 8)]),
    "cond": (
        lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: -x),
        [(None, 8)],
        [(None, 8)],
    ),
    "ensure": (lambda x: tf.ensure_shape(x, [None, 8]), [(None, None)], [(None, 8)]),
    "bmask": (lambda x: tf.boolean_mask(x, x[:, 0] > 0), [(None, 8)], [(None, 8)]),
    "vecmap": (lambda x: tf.vectorized_map(lambda r: r * 2, x), [(None, 8)], [(None, 8)]),
    "conv": (
        lambda x: tf.nn.conv2d(x, tf.ones([3, 3, 3, 8]), 2, "SAME"),
        [(None, None, None, 3)],
        [(None, None, None, 8)],
    ),
    "roll": (lambda x: tf.roll(x, 1, axis=1), [(None, None, 3)], [(None, None, 3)]),
    "rev": (lambda x: tf.reverse(x, [1]), [(None, None, 3)], [(None, None, 3)]),
    "repeat": (lambda x: tf.repeat(x, 2, axis=0), [(None, 3)], [(None, 3)]),
    "tile": (lambda x: tf.tile(x, [1, tf.shape(x)[1]]), [(None, None)], [(None, None)]),
    "identity": (lambda x: tf.identity(x), [(None, None)], [(None, None)]),
    "norm": (lambda x: tf.norm(x, axis=-1), [(None, None)], [(None,)]),
    "l2n": (lambda x: tf.math.l2_normalize(x, -1), [(None, None)], [(None, None)]),
    "tensordot": (
        lambda x: tf.tensordot(x, tf.ones([8, 4]), axes=1),
        [(None, None, 8)],
        [(None, None, 4)],
    ),
    "permute": (lambda x: ops.transpose(x, (0, 2, 1)), [(None, None, 8)], [(None, 8, None)]),
    "ops_pad": (
        lambda x: ops.pad(x, ((0, 0), (1, 1), (0, 0))),
        [(None, None, 8)],
        [(None, None, 8)],
    ),
    "ops_take": (
        lambda x, i: ops.take_along_axis(x, i, axis=1),
        [(None, None), (None, 3, "int32")],
        [(None, 3)],
    ),
    "ops_while": (
        lambda x: ops.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * 2), (0, x))[1],
        [(None, 8)],
        [(None, 8)],
    ),
    "ops_fori": (
        lambda x: ops.fori_loop(0, ops.shape(x)[0], lambda _, a: a * 2, x),
        [(None, 8)],
        [(None, 8)],
    ),
    "ops_scan": (
        lambda x: ops.scan(lambda c, r: (c + r, c), x[:, 0], ops.transpose(x, (1, 0, 2))),
        [(None, None, 8)],
        [(None, 8), (None, None, 8)],
    ),
    "ops_map": (lambda x: ops.map(lambda r: r * 2, x), [(None, 8)], [(None, 8)]),
    "ops_ones": (lambda x: ops.ones((ops.shape(x)[0], 4)), [(None, 8)], [(None, 4)]),
    "ops_resize": (
        lambda x: ops.image.resize(x, (8, 8)),
        [(None, None, None, 3)],
        [(None, 8, 8, 3)],
    ),
    "ops_split": (
        lambda x: ops.split(x, 3, axis=-1),
        [(None, None, 12)],
        [(None, None, 4), (None, None, 4), (None, None, 4)],
    ),
    "ops_topk": (lambda x: ops.top_k(x, 2), [(None, 8)], [(None, 2), (None, 2)]),
    "ops_slice": (lambda x: ops.slice(x, (0, 1), (2, 3)), [(None, 8)], [(2, 3)]),
    "ops_logsumexp": (lambda x: ops.logsumexp(x, axis=1), [(None, None, 8)], [(None, 8)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_unknown_dimensions(name):
    function, shapes, expected = FUNCTIONS[name]

    assert shapes_of(Call(function)(*map(symbolic, shapes))) == expected


# Name: function that creates a layer, shapes of its inputs, shapes of its results
LAYERS = {
    "bilstm": (lambda: layers.Bidirectional(layers.LSTM(32)), [(None, None, 30000)], [(None, 64)]),
    "bigru": (
        lambda: layers.Bidirectional(layers.GRU(32, return_sequences=True)),
        [(None, None, 8)],
        [(None, None, 64)],
    ),
    "lstm_state": (
        lambda: layers.LSTM(8, return_state=True, return_sequences=True),
        [(None, None, 8)],
        [(None, None, 8), (None, 8), (None, 8)],
    ),
    "convlstm": (lambda: layers.ConvLSTM2D(8, 3), [(None, None, 16, 16, 3)], [(None, 14, 14, 8)]),
    "att": (lambda: layers.Attention(), [(None, None, 8), (None, None, 8)], [(None, None, 8)]),
    "conv1d": (lambda: layers.Conv1D(8, 3, padding="causal"), [(None, None, 8)], [(None, None, 8)]),
    "convT": (
        lambda: layers.Conv2DTranspose(8, 3, 2, padding="same"),
        [(None, None, None, 8)],
        [(None, None, None, 8)],
    ),
    "gap": (lambda: layers.GlobalAveragePooling2D(), [(None, None, None, 8)], [(None, 8)]),
    "td": (lambda: layers.TimeDistributed(layers.Dense(4)), [(None, None, 8)], [(None, None, 4)]),
    "td2": (
        lambda: layers.TimeDistributed(layers.Conv2D(4, 3)),
        [(None, None, 16, 16, 3)],
        [(None, None, 14, 14, 4)],
    ),
    "flatten": (lambda: layers.Flatten(), [(None, None, 8)], [(None, None)]),
    "reshape": (lambda: layers.Reshape((-1, 4)), [(None, None, 8)], [(None, None, 4)]),
    "repeat": (lambda: layers.RepeatVector(4), [(None, 8)], [(None, 4, 8)]),
    "permute": (lambda: layers.Permute((2, 1)), [(None, None, 8)], [(None, 8, None)]),
    "up": (lambda: layers.UpSampling2D(2), [(None, None, None, 8)], [(None, None, None, 8)]),
    "crop": (lambda: layers.Cropping2D(2), [(None, None, None, 8)], [(None, None, None, 8)]),
    "ln": (lambda: layers.LayerNormalization(), [(None, None, 8)], [(None, None, 8)]),
    "gn": (lambda: layers.GroupNormalization(4), [(None, None, None, 8)], [(None, None, None, 8)]),
    "bn": (lambda: layers.BatchNormalization(), [(None, None, 8)], [(None, None, 8)]),
    "resize": (lambda: layers.Resizing(8, 8), [(None, None, None, 3)], [(None, 8, 8, 3)]),
    "rflip": (lambda: layers.RandomFlip(), [(None, None, None, 3)], [(None, None, None, 3)]),
    "rrot": (lambda: layers.RandomRotation(0.1), [(None, 32, 32, 3)], [(None, 32, 32, 3)]),
    "rzoom": (lambda: layers.RandomZoom(0.1), [(None, 32, 32, 3)], [(None, 32, 32, 3)]),
    "dot": (lambda: layers.Dot(axes=2), [(None, None, 8), (None, None, 8)], [(None, None, None)]),
    "concat": (
        lambda: layers.Concatenate(axis=1),
        [(None, None, 8), (None, 5, 8)],
        [(None, None, 8)],
    ),
    "add": (lambda: layers.Add(), [(None, None, 8), (None, None, 8)], [(None, None, 8)]),
    "lambda": (
        lambda: layers.Lambda(lambda x: tf.reduce_sum(x, 1)),
        [(None, None, 8)],
        [(None, 8)],
    ),
    "stack_rnn": (
        lambda: layers.RNN([layers.LSTMCell(4), layers.GRUCell(5)]),
        [(None, None, 8)],
        [(None, 5)],
    ),
    "einsum": (
        lambda: layers.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d"),
        [(None, None, 8)],
        [(None, None, 4)],
    ),
    "emb": (
        lambda: layers.Embedding(30000, 64, mask_zero=True),
        [(None, None, "int32")],
        [(None, None, 64)],
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_unknown_dimensions(name):
    create, shapes, expected = LAYERS[name]
    inputs = list(map(symbolic, shapes))

    assert shapes_of(create()(inputs if len(inputs) > 1 else inputs[0])) == expected


def test_programs_see_none():
    seen = []

    def f(x):
        y = (x * 2)[:, 1:]
        seen.append((x.shape.as_list(), y.shape[1], str(y), str(tf.shape(x)), str(ops.shape(x))))
        return y

    assert Call(f)(symbolic((None, None, 8))).shape == (None, None, 8)
    assert seen == [
        (
            [None, None, 8],
            None,
            'Tensor("Placeholder:0", shape=(None, None, 8), dtype=float32)',
            'Tensor("Placeholder:0", shape=(3,), dtype=int32)',
            "(None, None, 8)",
        )
    ]


def test_errors_show_none():
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"incompatible shapes \(None, 3\) and \(None, 4\)",
    ):
        compute_output_spec(keras.ops.add, symbolic((None, 3)), symbolic((None, 4)))


def test_known_dimensions_that_are_large_stay_known():
    assert Call(lambda x: tf.one_hot(x, 30_000))(symbolic((None, "int32"))).shape == (None, 30_000)
    assert Call(lambda x: tf.ones([tf.shape(x)[0], 5040]))(symbolic((None, 3))).shape == (
        None,
        5040,
    )


def test_sizes_that_python_converts_stay_unknown():
    def f(x):
        return tf.zeros([int(ops.shape(x)[0]), 2])

    assert Call(f)(symbolic((None, 3))).shape == (None, 2)


def test_functions_that_need_values_have_unknown_results():
    assert Call(lambda x: tf.unique(x)[0])(symbolic((None,))).shape == (None,)


def test_iteration_over_an_unknown_dimension_raises():
    tensor = []

    def f(x):
        try:
            list(x)
        except TypeError as error:
            tensor.append(str(error))
        return x

    Call(f)(symbolic((None, 3)))

    assert tensor == ["Cannot iterate over a tensor with an unknown first dimension."]


def test_shape_inference_computes_nothing():
    width = 1 << 40  # an array of this size cannot be allocated
    layer = layers.Bidirectional(layers.LSTM(2, use_bias=False))

    y = Call(lambda x: ops.sum(x @ ops.transpose(x, (0, 2, 1)), 1))(symbolic((None, 7, width)))

    assert y.shape == (None, 7)
    assert layer.compute_output_shape((None, None, width)) == (None, 4)


def test_shape_inference_without_jax():
    program = """
import sys
sys.modules["jax"] = None
import retrograde as tf
x = tf.keras.KerasTensor((None, None, 8))
layer = tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(3, return_sequences=True))
class Pairs(tf.keras.layers.Layer):
    def call(self, x):
        return tf.reduce_max(tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, 12]), 0)
print(layer(x).shape, Pairs()(x).shape)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout == "(None, None, 6) (12,)\n", done.stderr


def test_model_with_unknown_length_trains_and_has_no_sizes_in_its_config():
    inputs = keras.Input((None, 4))
    x = Call(lambda x: tf.concat([tf.zeros([tf.shape(x)[0], 1, 4]), x], 1))(inputs)
    model = keras.Model(inputs, layers.Dense(1)(layers.GRU(3)(x)))
    lines = []
    model.summary(print_fn=lines.append)
    model.compile("sgd", "mse")

    for length in (2, 5):
        model.fit(np.ones((6, length, 4)), np.ones((6, 1)), verbose=0)

    assert x.shape == (None, None, 4)
    assert "5040" not in str(lines) and "10080" not in str(lines)


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda n: n + 1, (5, 9)),
        (lambda n: 20 - n, (16, 12)),
        (lambda n: -(-n // 3), (2, 3)),
        (lambda n: 3 * n % 5, (2, 4)),
        (lambda n: n % 4, 0),
        (lambda n: n - n, 0),
        (lambda n: -n, (-4, -8)),
    ],
)
def test_arithmetic_of_sizes(compute, expected):
    result = compute(Size(4, 8))

    assert (
        (int(result), result.other) == expected
        if isinstance(expected, tuple)
        else (type(result) is int and result == expected)
    )


def test_sizes_equal_numbers_only_in_both_cases():
    size = Size(4, 8)

    assert size == Size(4, 8) and size != Size(4, 9) and size != 4 and size != "4"
    assert (repr(size), str(size), f"{size:>3}") == ("None", "None", "None")
