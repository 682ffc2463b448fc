"""tf.summary: event files, read with TensorBoard."""

import functools
import gc
import pathlib
import struct
import time

import numpy as np
import pytest
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.util import tensor_util

import retrograde as tf
from retrograde.files.crc32c import crc32c
from tests.namespaces.helpers import assert_raises
from tests.threads import run_concurrently


@pytest.fixture(autouse=True)
def reset_summary_state():
    """Resets the active writer and the step after each test."""
    yield
    tf.summary.create_noop_writer().set_as_default()
    tf.summary.experimental.set_step(None)


def read_events(path):
    """Returns step, tag, plugin and value of all summaries in the only file of a directory."""
    (file,) = pathlib.Path(path).glob("events.out.tfevents.*")
    return [
        (
            event.step,
            value.tag,
            value.metadata.plugin_data.plugin_name,
            tensor_util.make_ndarray(value.tensor),
        )
        for event in EventFileLoader(str(file)).Load()
        for value in event.summary.value
    ]


def read_scalars(path):
    return [(step, tag, float(value)) for step, tag, _, value in read_events(path)]


# Reading with TensorBoard


def test_tensorboard_reads_all_kinds(tmp_path):
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (2, 5, 4, 3)).astype(np.uint8)
    sound = rng.uniform(-1, 1, (1, 50, 2))
    writer = tf.summary.create_file_writer(tmp_path)
    with writer.as_default():
        for step in range(3):
            tf.summary.scalar("loss", 1.0 / (step + 1), step=step, description="how wrong")
        tf.summary.histogram("weights", rng.normal(size=100), step=1)
        tf.summary.image("pictures", pixels, step=2)
        tf.summary.text("notes", "**bold**", step=1)
        tf.summary.audio("sounds", sound, 8000, step=1)
    loaded = event_accumulator.EventAccumulator(str(tmp_path))
    loaded.Reload()
    assert sorted(loaded.Tags()["tensors"]) == ["loss", "notes", "pictures", "sounds", "weights"]
    losses = [
        (e.step, float(tensor_util.make_ndarray(e.tensor_proto))) for e in loaded.Tensors("loss")
    ]
    np.testing.assert_allclose(losses, [(0, 1.0), (1, 0.5), (2, 1 / 3)], rtol=1e-6)
    assert loaded.SummaryMetadata("loss").summary_description == "how wrong"
    plugins = {"loss": "scalars", "weights": "histograms", "pictures": "images", "notes": "text"}
    for tag, plugin in plugins.items():
        assert loaded.SummaryMetadata(tag).plugin_data.plugin_name == plugin
    width, height, *files = tensor_util.make_ndarray(loaded.Tensors("pictures")[0].tensor_proto)
    assert (width, height) == (b"4", b"5")
    for file, image in zip(files, pixels, strict=True):
        np.testing.assert_array_equal(tf.io.decode_png(file).numpy(), image)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:tensorboard")
def test_tensorboard_server(tmp_path):
    """Sends the requests of TensorBoard's pages to its server."""
    from tensorboard import default, program
    from tensorboard.backend import application
    from tensorboard.backend.event_processing import data_ingester
    from werkzeug.test import Client

    with tf.summary.create_file_writer(tmp_path / "run").as_default():
        tf.summary.scalar("loss", 0.25, step=7)
        tf.summary.histogram("weights", [1.0, 2.0, 2.0], step=7, buckets=2)
    board = program.TensorBoard(plugins=default.get_plugins())
    board.configure(["tensorboard", f"--logdir={tmp_path}", "--reload_interval=0"])
    ingester = data_ingester.LocalDataIngester(board.flags)
    ingester.start()
    client = Client(
        application.TensorBoardWSGIApp(
            board.flags, board.plugin_loaders, ingester.data_provider, board.assets_zip_provider
        )
    )

    tags = client.get("/data/plugin/scalars/tags").json
    assert list(tags["run"]) == ["loss"]
    ((_, step, value),) = client.get("/data/plugin/scalars/scalars?run=run&tag=loss").json
    assert (step, value) == (7, 0.25)
    ((_, step, bars),) = client.get("/data/plugin/histograms/histograms?run=run&tag=weights").json
    assert (step, bars) == (7, [[1.0, 1.5, 1.0], [1.5, 2.0, 2.0]])


# Values


HISTOGRAMS = {
    "spread": ([1.0, 2.0, 3.0], 2, [[1, 2, 1], [2, 3, 2]]),
    "integers": ([1, 1, 2], 3, [[1, 4 / 3, 2], [4 / 3, 5 / 3, 0], [5 / 3, 2, 1]]),
    "one_value": ([2.0, 2.0], 2, [[2, 2, 0], [2, 2, 2]]),
    "empty": ([], 2, [[0, 0, 0], [0, 0, 0]]),
    "no_buckets": ([1.0], 0, np.zeros((0, 3))),
    "nan": ([2.0, np.nan], 2, [[np.nan, np.nan, 0], [np.nan, np.nan, 0]]),
    "infinity": ([2.0, np.inf, 1.0], 2, [[1, np.inf, 2], [np.inf, np.inf, 0]]),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histogram_buckets(name, tmp_path):
    data, buckets, expected = HISTOGRAMS[name]
    with tf.summary.create_file_writer(tmp_path).as_default(step=1):
        tf.summary.histogram("h", data, buckets=buckets)
    ((_, _, _, value),) = read_events(tmp_path)
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, np.reshape(expected, (buckets, 3)), rtol=1e-15)


def test_histogram_default_buckets(tmp_path):
    with tf.summary.create_file_writer(tmp_path).as_default(step=1):
        tf.summary.histogram("h", np.arange(60.0))
    ((_, _, _, value),) = read_events(tmp_path)
    assert value.shape == (30, 3)
    assert value[:, 2].tolist() == [2.0] * 30


def test_images_are_clipped_and_limited(tmp_path):
    gray = np.array([[[[-0.5], [0.0], [0.5], [1.5]]]] * 5, np.float32)
    with tf.summary.create_file_writer(tmp_path).as_default(step=1):
        tf.summary.image("i", gray)
        tf.summary.image("i", gray, max_outputs=1)
    (_, _, _, three), (_, _, _, one) = read_events(tmp_path)
    assert (len(three), len(one)) == (5, 3)
    assert tf.io.decode_png(one[2]).numpy().tolist() == [[[0], [0], [127], [255]]]


def test_audio_is_wav(tmp_path):
    with tf.summary.create_file_writer(tmp_path).as_default(step=1):
        tf.summary.audio("s", [[[0.0], [0.5], [-1.0], [1.0], [2.0]]], 8000)
    ((_, _, plugin, value),) = read_events(tmp_path)
    assert plugin == "audio"
    (file,) = value
    assert file[:4] == b"RIFF"
    assert struct.unpack("<5h", file[44:]) == (0, 16384, -32768, 32767, 32767)


@pytest.mark.parametrize("words", ["a", ["a", "ü"], [["a"], ["b"]]])
def test_text_keeps_its_shape(words, tmp_path):
    with tf.summary.create_file_writer(tmp_path).as_default(step=1):
        tf.summary.text("t", words)
    ((_, _, _, value),) = read_events(tmp_path)
    np.testing.assert_array_equal(value, tf.constant(words).numpy())


@pytest.mark.parametrize(
    "dtype", ["float16", "float64", "int8", "int64", "uint8", "uint16", "bool", "complex64"]
)
def test_write_all_dtypes(dtype, tmp_path):
    tensor = tf.cast([[0, 1]], dtype)
    with tf.summary.create_file_writer(tmp_path).as_default():
        tf.summary.write("w", tensor, step=-3, metadata=None)
        tf.summary.write("w", lambda: tensor, step=2)
    first, second = read_events(tmp_path)
    assert first[:3] == (-3, "w", "")
    for _, _, _, value in (first, second):
        assert value.dtype == tensor.numpy().dtype
        np.testing.assert_array_equal(value, tensor.numpy())


def test_tensorboard_metadata(tmp_path):
    from tensorboard.compat.proto import summary_pb2

    metadata = summary_pb2.SummaryMetadata(
        plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="mine")
    )
    raw = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="raw", simple_value=2.0)])
    with tf.summary.create_file_writer(tmp_path).as_default(step=1):
        tf.summary.write("w", 1, metadata=metadata)
        tf.summary.experimental.write_raw_pb(raw.SerializeToString())
    (_, _, plugin, _), second = read_events(tmp_path)
    assert plugin == "mine"
    assert second[1:3] == ("raw", "scalars")  # TensorBoard converts legacy summaries
    assert float(second[3]) == 2.0


# Names, steps and conditions


def test_scopes_are_part_of_the_tag(tmp_path):
    with tf.summary.create_file_writer(tmp_path).as_default(step=1):
        with tf.name_scope("a"), tf.name_scope("b"):
            tf.summary.scalar("loss / x", 1.0)
        with tf.summary.experimental.summary_scope("q ü") as (tag, scope):
            assert (tag, scope) == ("q ü", "q/")
    assert read_scalars(tmp_path) == [(1, "a/b/loss / x", 1.0)]


def test_steps(tmp_path):
    step = tf.Variable(4, dtype=tf.int64)
    writer = tf.summary.create_file_writer(tmp_path)
    with writer.as_default(step=1):
        tf.summary.scalar("a", 0.0)
        tf.summary.scalar("a", 1.0, step=2)
        tf.summary.experimental.set_step(step)
        tf.summary.scalar("a", 2.0)
        step.assign_add(1)
        tf.summary.scalar("a", 3.0)
    assert tf.summary.experimental.get_step() is None
    assert read_scalars(tmp_path) == [(1, "a", 0.0), (2, "a", 1.0), (4, "a", 2.0), (5, "a", 3.0)]


def test_record_if(tmp_path):
    writer = tf.summary.create_file_writer(tmp_path)
    assert not tf.summary.should_record_summaries()
    assert not tf.summary.scalar("a", 0.0)  # no step is required
    with writer.as_default(step=1):
        assert tf.summary.should_record_summaries()
        for condition in (False, tf.constant(False), lambda: False):
            with tf.summary.record_if(condition):
                assert not tf.summary.should_record_summaries()
                assert not tf.summary.scalar("a", 0.0)
                assert not tf.summary.write("a", lambda: 1 / 0)
                assert not tf.summary.image("a", "no image")  # the value is not checked
                assert not tf.summary.experimental.write_raw_pb(b"")
        with tf.summary.record_if(lambda: tf.constant(True)):
            assert tf.summary.scalar("a", 1.0)
    with tf.summary.create_noop_writer().as_default():
        assert not tf.summary.scalar("a", 2.0)
    assert read_scalars(tmp_path) == [(1, "a", 1.0)]


def test_nested_writers(tmp_path):
    outer, inner = (tf.summary.create_file_writer(tmp_path / name) for name in ("a", "b"))
    with outer.as_default(step=1):
        with inner.as_default(step=2):
            tf.summary.scalar("x", 1.0)
        tf.summary.scalar("x", 2.0)
    assert read_scalars(tmp_path / "a") == [(1, "x", 2.0)]
    assert read_scalars(tmp_path / "b") == [(2, "x", 1.0)]


def test_writers_are_thread_local(tmp_path):
    def work(number):
        writer = tf.summary.create_file_writer(tmp_path / str(number))
        with writer.as_default():
            for step in range(5):
                tf.summary.scalar("n", number, step=step)

    run_concurrently(*[functools.partial(work, i) for i in range(3)])
    for number in range(3):
        assert read_scalars(tmp_path / str(number)) == [(s, "n", float(number)) for s in range(5)]


def test_threads_can_share_a_writer(tmp_path):
    writer = tf.summary.create_file_writer(tmp_path, max_queue=3)

    def work(number):
        writer.set_as_default()
        for step in range(50):
            tf.summary.scalar(str(number), step, step=step)

    run_concurrently(*[functools.partial(work, i) for i in range(4)])
    writer.close()
    assert sorted(read_scalars(tmp_path)) == sorted(
        (s, str(n), float(s)) for n in range(4) for s in range(50)
    )


def test_functions_write_on_each_call(tmp_path):
    step = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def train(x):
        step.assign_add(1)
        tf.summary.scalar("twice", 2.0 * x, step=step)
        return x

    with tf.summary.create_file_writer(tmp_path).as_default():
        for x in (1.0, 2.0, 3.0):
            train(tf.constant(x))
    assert read_scalars(tmp_path) == [(1, "twice", 2.0), (2, "twice", 4.0), (3, "twice", 6.0)]


def test_summaries_do_not_affect_gradients(tmp_path):
    x = tf.Variable(3.0)
    with tf.summary.create_file_writer(tmp_path).as_default(step=1), tf.GradientTape() as tape:
        y = x * x
        tf.summary.scalar("y", y)
    assert float(tape.gradient(y, x)) == 6.0
    assert read_scalars(tmp_path) == [(1, "y", 9.0)]


# Files


def size(path):
    return sum(file.stat().st_size for file in pathlib.Path(path).iterdir())


def test_file_is_created_immediately_and_flushed_by_queue_size(tmp_path):
    writer = tf.summary.create_file_writer(tmp_path, max_queue=2, filename_suffix=".mine")
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("events.out.tfevents.")
    assert file.name.endswith(".mine")
    assert read_events(tmp_path) == []
    writer.set_as_default(step=1)
    for value in range(2):
        tf.summary.scalar("a", value)
    assert read_scalars(tmp_path) == []
    tf.summary.scalar("a", 2)
    assert len(read_scalars(tmp_path)) == 3
    tf.summary.scalar("a", 3)
    tf.summary.flush()
    assert len(read_scalars(tmp_path)) == 4
    tf.summary.scalar("a", 4)
    tf.summary.flush(writer)
    assert len(read_scalars(tmp_path)) == 5


def test_file_is_flushed_after_flush_millis(tmp_path):
    writer = tf.summary.create_file_writer(tmp_path, flush_millis=20)
    writer.set_as_default(step=1)
    time.sleep(0.03)
    tf.summary.scalar("a", 0)
    assert len(read_scalars(tmp_path)) == 1


def test_deleted_writer_flushes(tmp_path):
    writer = tf.summary.create_file_writer(tmp_path)
    writer.set_as_default(step=1)
    tf.summary.scalar("a", 0)
    assert read_scalars(tmp_path) == []
    tf.summary.create_noop_writer().set_as_default()
    del writer
    gc.collect()
    assert len(read_scalars(tmp_path)) == 1


def test_closed_writer_ignores_summaries(tmp_path):
    writer = tf.summary.create_file_writer(tmp_path)
    with writer.as_default(step=1):
        tf.summary.scalar("a", 0)
        writer.close()
        writer.close()
        writer.flush()
        assert not tf.summary.scalar("a", 1)
    assert len(read_scalars(tmp_path)) == 1
    for enter in (writer.set_as_default, lambda: writer.as_default().__enter__()):
        assert_raises(enter, RuntimeError, f"SummaryWriter {writer!r} is already closed")


def test_crc32c_reference_values():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"\x00" * 32) == 0x8A9136AA
    assert crc32c(b"") == 0


@pytest.mark.parametrize("length", [47, 48, 49, 50, 1023, 1024, 1025, 1072, 1073, 100_003])
def test_crc32c_of_long_inputs_matches_bitwise(length):
    data = np.random.default_rng(length).bytes(length)
    expected = 0xFFFFFFFF
    for byte in data:
        expected ^= byte
        for _ in range(8):
            expected = expected >> 1 ^ (0x82F63B78 if expected & 1 else 0)

    assert crc32c(data) == expected ^ 0xFFFFFFFF


# Errors and traces


ERRORS = {
    "step": (
        lambda: tf.summary.scalar("a", 1.0),
        ValueError,
        "No step set. Please specify one either through the `step` argument or through "
        "tf.summary.experimental.set_step()",
    ),
    "scalar": (
        lambda: tf.summary.scalar("a", [1.0], step=1),
        ValueError,
        "Expected scalar shape, saw shape: (1,).",
    ),
    "image_rank": (
        lambda: tf.summary.image("a", tf.ones([4, 3, 3]), step=1),
        ValueError,
        "image: expected a batch of images, of rank 4. Received: rank 3, shape (4, 3, 3).",
    ),
    "image_channels": (
        lambda: tf.summary.image("a", tf.ones([1, 4, 3, 5]), step=1),
        tf.errors.InvalidArgumentError,
        "image must have 1, 2, 3, or 4 channels, got 5",
    ),
    "audio_rank": (
        lambda: tf.summary.audio("a", tf.ones([4, 3]), 8000, step=1),
        ValueError,
        "audio: expected a batch of audio clips, of rank 3. Received: rank 2, shape (4, 3).",
    ),
    "audio_encoding": (
        lambda: tf.summary.audio("a", tf.ones([1, 4, 1]), 8000, step=1, encoding="mp3"),
        ValueError,
        "Unknown encoding: 'mp3'. Expected 'wav'.",
    ),
    "text": (
        lambda: tf.summary.text("a", 3, step=1),
        TypeError,
        "tensor must be of type tf.string; got tf.int32",
    ),
    "name": (
        lambda: tf.summary.scalar(3, 1.0, step=1),
        TypeError,
        "The name of a summary must be a string. Received: 3.",
    ),
    "logdir": (
        lambda: tf.summary.create_file_writer(None),
        ValueError,
        "Argument `logdir` cannot be None",
    ),
    "trace": (
        lambda: tf.summary.trace_export("a", step=1),
        ValueError,
        "Must enable trace before export through tf.summary.trace_on.",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error_messages(name, tmp_path):
    with tf.summary.create_file_writer(tmp_path).as_default():
        assert_raises(*ERRORS[name])


def test_trace_functions(tmp_path):
    with tf.summary.create_file_writer(tmp_path).as_default():
        tf.summary.trace_on(graph=True)
        tf.summary.trace_export("a", step=1)
        tf.summary.trace_on()
        tf.summary.trace_off()
        assert_raises(*ERRORS["trace"])
    assert read_events(tmp_path) == []
