"""tf.audio, tf.sets, tf.quantization, serialized sparse tensors and TensorProto."""

import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_raises

DATA = pathlib.Path(__file__).parents[1] / "data"
RESULTS = json.loads((DATA / "conversion_results.json").read_text())


@pytest.mark.parametrize("call", RESULTS)
def test_result_agrees_with_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, RESULTS[call]), f"got {actual}, expected {RESULTS[call]}"


# Audio


def test_audio_in_functions_and_datasets():
    files = [tf.audio.encode_wav([[0.5]] * n, 8000).numpy() for n in (2, 3)]

    @tf.function
    def decode(contents):
        return tf.audio.decode_wav(contents).audio

    assert [decode(tf.constant(file)).shape[0] for file in files] == [2, 3]
    data = tf.data.Dataset.from_tensor_slices(files)
    decoded = data.map(lambda x: tf.audio.decode_wav(x, desired_samples=4).audio).batch(2)
    assert next(iter(decoded)).numpy()[:, :, 0].tolist() == [[0.5, 0.5, 0, 0], [0.5, 0.5, 0.5, 0]]


def test_corrupt_audio_never_raises_another_error():
    rng = np.random.default_rng(1)
    good = tf.audio.encode_wav(rng.uniform(-1, 1, [5, 2]).astype(np.float32), 8000).numpy()
    refused = 0
    for _ in range(300):
        data = bytearray(good)
        data[rng.integers(44)] = rng.integers(256)
        try:
            tf.audio.decode_wav(bytes(data))
        except tf.errors.InvalidArgumentError:
            refused += 1
    assert refused > 200


MESSAGES = {
    "not a file": (
        lambda: tf.audio.decode_wav(b"x"),
        tf.errors.InvalidArgumentError,
        "decode_wav: the data is not a valid WAV file: it does not start with RIFF and WAVE.",
    ),
    "audio shape": (
        lambda: tf.audio.encode_wav([0.5], 8000),
        tf.errors.InvalidArgumentError,
        "encode_wav: audio must be 2-dimensional. Received: shape (1,).",
    ),
    "sample rate": (
        lambda: tf.audio.encode_wav([[0.5]], 0),
        tf.errors.InvalidArgumentError,
        "encode_wav: expected a positive scalar for sample_rate.",
    ),
    "set dtype": (
        lambda: tf.sets.union([[1.5]], [[1.5]]),
        TypeError,
        "tf.sets: sets of dtype float32 are not supported. Expected integers or strings.",
    ),
    "set dtypes": (
        lambda: tf.sets.union([["a"]], [[1]]),
        TypeError,
        "Types of inputs differ: tf.string vs tf.int32.",
    ),
    "set shapes": (
        lambda: tf.sets.union([[1], [2]], [[1]]),
        tf.errors.InvalidArgumentError,
        "tf.sets: the shapes of the inputs must agree except for the last axis. Received: (2,) and "
        "(1,) without it.",
    ),
    "set rank": (
        lambda: tf.sets.union([1], [1]),
        tf.errors.InvalidArgumentError,
        "tf.sets: expected inputs with at least 2 axes. Received: 1.",
    ),
    "sparse rank": (
        lambda: tf.io.serialize_many_sparse(tf.SparseTensor([[0]], [1], [4])),
        tf.errors.InvalidArgumentError,
        "serialize_many_sparse: expected a sparse tensor of at least 2 axes. Received: 1.",
    ),
    "columns": (
        lambda: tf.io.deserialize_many_sparse(["a"], tf.int32),
        tf.errors.InvalidArgumentError,
        "deserialize_many_sparse: serialized_sparse should have 3 columns, got shape [1]",
    ),
    "proto shape": (
        lambda: tf.make_tensor_proto([1, 2], shape=[1]),
        ValueError,
        "2 values do not fit the shape (1,).",
    ),
    "verified shape": (
        lambda: tf.make_tensor_proto([1, 2], shape=[3], verify_shape=True),
        TypeError,
        "Expected Tensor's shape: (3,), but got (2,).",
    ),
    "bits": (
        lambda: tf.quantization.fake_quant_with_min_max_args([1.0], num_bits=1),
        tf.errors.InvalidArgumentError,
        "num_bits must be between 2 and 16, inclusive. Received: 1.",
    ),
    "range": (
        lambda: tf.quantization.fake_quant_with_min_max_args([1.0], 2, 1),
        tf.errors.InvalidArgumentError,
        "min has to be smaller than max, was: 2 >= 1",
    ),
    "scalar range": (
        lambda: tf.quantization.fake_quant_with_min_max_vars([1.0], [2.0], 3.0),
        tf.errors.InvalidArgumentError,
        "`min` and `max` must be rank 0. Received: shape (1,).",
    ),
    "channels": (
        lambda: tf.quantization.fake_quant_with_min_max_vars_per_channel([1.0, 2.0], [1.0], [2.0]),
        tf.errors.InvalidArgumentError,
        "`min` and `max` must have a value for each channel, the last axis of shape (2,). "
        "Received: shape (1,).",
    ),
    "rounding": (
        lambda: tf.quantization.quantize_and_dequantize_v2([1.0], 0.0, 1.0, round_mode="UP"),
        tf.errors.InvalidArgumentError,
        "round_mode must be 'HALF_TO_EVEN' or 'HALF_UP'. Received: 'UP'.",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), MESSAGES.values(), ids=MESSAGES)
def test_messages(call, error, message):
    assert_raises(call, error, message)


# Sets, sparse tensors and protocol buffers


def test_sets_in_functions():
    @tf.function
    def f(a, b):
        return tf.sparse.to_dense(tf.sets.intersection(a, b))

    assert f(tf.constant([[1, 2, 3]]), tf.constant([[2, 3]])).numpy().tolist() == [[2, 3]]
    assert f(tf.constant([[1, 2, 3]]), tf.constant([[7, 3]])).numpy().tolist() == [[3]]


def test_corrupt_sparse_tensors_are_refused():
    good = tf.io.serialize_sparse(tf.SparseTensor([[0, 1]], [1], [4, 5])).numpy()
    shape = tf.io.serialize_tensor(tf.constant([-4, 5], tf.int64)).numpy()
    matrix = tf.io.serialize_tensor(tf.constant([[4, 5]], tf.int64)).numpy()
    for parts in ([good[0], good[1], shape], [good[0], good[1], matrix], [good[2], *good[1:]]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.io.deserialize_many_sparse([parts], tf.int32)


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "complex128", "uint32", "int8"]
)
@pytest.mark.parametrize("values", [3, [1, 2], [[1], [2]]])
def test_arrays_survive_protocol_buffers(dtype, values):
    array = tf.cast(tf.constant(values), dtype).numpy()
    data = tf.make_tensor_proto(array).SerializeToString()

    result = tf.make_ndarray(type(tf.make_tensor_proto(1)).FromString(data))

    assert (result.dtype, result.tolist()) == (array.dtype, array.tolist())


def test_corrupt_protocol_buffers_are_refused():
    kind = type(tf.make_tensor_proto(1))
    for proto in (
        kind(dtype=1, tensor_shape={"dim": [{"size": -1}]}),
        kind(dtype=1, tensor_shape={"dim": [{"size": 1 << 62}]}, float_val=[1.0]),
        kind(dtype=1, tensor_shape={"dim": [{"size": 3}]}, tensor_content=b"1234"),
    ):
        with pytest.raises(ValueError, match=r"shape|size"):
            tf.make_ndarray(proto)
    with pytest.raises(TypeError, match="Unsupported tensor type: 99"):
        tf.make_ndarray(kind(dtype=99))


# Quantization


def test_fake_quantization_in_functions():
    x = np.linspace(-8, 8, 17, dtype=np.float32)
    expected = tf.quantization.fake_quant_with_min_max_vars(x, -3.0, 5.0).numpy()

    for compiled in (False, True):

        @tf.function(jit_compile=compiled)
        def f(x, low):
            with tf.GradientTape() as tape:
                tape.watch(low)
                y = tf.quantization.fake_quant_with_min_max_vars(x, low, 5.0)
            return y, tape.gradient(y, low)

        y, g = f(tf.constant(x), tf.constant(-3.0))
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)
        assert g.numpy() == 5


def test_ranges_along_an_axis():
    x = tf.constant([[-1.0, 10.0], [0.3, 5.1]])

    y = tf.quantization.quantize_and_dequantize_v2(x, 0.0, 0.0, num_bits=3, axis=1)

    columns = [
        tf.quantization.quantize_and_dequantize_v2(x[:, n], 0.0, 0.0, num_bits=3) for n in (0, 1)
    ]
    np.testing.assert_array_equal(y.numpy(), tf.stack(columns, 1).numpy())


def test_the_older_function_passes_all_gradients():
    x = tf.constant([-9.0, 0.3])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.quantization.quantize_and_dequantize(x, -1.0, 1.0, range_given=True)

    assert tape.gradient(y, x).numpy().tolist() == [1, 1]


def test_make_ndarray_refuses_other_values():
    message = (
        r"make_ndarray: expected a TensorProto\. Received: list\. Create one with "
        r"tf\.make_tensor_proto\."
    )
    with pytest.raises(AttributeError, match=message):
        tf.make_ndarray([1.0])
