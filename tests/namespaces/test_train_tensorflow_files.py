"""Checkpoints that TensorFlow wrote: `tests/data/tensorflow_checkpoints` has the files."""

import json
import pathlib
import shutil
import struct

import numpy as np
import pytest

import retrograde as tf
from retrograde.files.crc32c import masked_crc
from retrograde.protobuf.wire import WireFormatError, encode_varint
from retrograde.tensorflow_files.messages import BundleEntry, BundleHeader
from retrograde.tensorflow_files.slices import slice_key
from retrograde.tensorflow_files.snappy import decompress
from retrograde.tensorflow_files.table import read_table
from tests.namespaces.helpers import assert_raises

FILES = pathlib.Path(__file__).parents[1] / "data" / "tensorflow_checkpoints"
EXPECTED = json.loads((FILES / "expected.json").read_text())
GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"


def plain(value):
    array = np.asarray(value)
    if array.dtype.kind in "OS":
        return array.astype(str).tolist()
    return array.astype(np.float64).tolist() if array.dtype.name == "bfloat16" else array.tolist()


@pytest.mark.parametrize("name", EXPECTED)
def test_all_tensors_agree_with_tensorflow(name):
    reader = tf.train.load_checkpoint(str(FILES / name))
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()

    assert shapes.keys() - {GRAPH_KEY} == EXPECTED[name].keys()
    for key, (dtype, shape, value) in EXPECTED[name].items():
        assert (dtypes[key].name, shapes[key]) == (dtype, shape)
        assert repr(plain(reader.get_tensor(key))) == value
        assert reader.has_tensor(key)


def test_variables_are_listed_and_loaded():
    folder = str(FILES / "state")

    assert tf.train.latest_checkpoint(folder) == f"{folder}/ckpt-1"
    assert dict(tf.train.list_variables(folder)) == {
        GRAPH_KEY: [],
        **{key: shape for key, (_, shape, _) in EXPECTED["state/ckpt-1"].items()},
    }
    key = "net/layers/1/.ATTRIBUTES/VARIABLE_VALUE"
    assert tf.train.load_variable(folder, key).tolist() == [5, 6]
    assert tf.train.load_checkpoint(f"{folder}/ckpt-1.index").get_tensor(key).tolist() == [5, 6]
    with pytest.raises(tf.errors.NotFoundError):
        tf.train.load_variable(folder, "missing")


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.layers = [tf.Variable(tf.zeros([2, 2])), tf.Variable(tf.zeros([2]))]
        self.options = {"rate": tf.Variable(0.0), "other": tf.Variable(0, dtype=tf.int64)}


def test_objects_are_restored():
    net, step = Net(), tf.Variable(0)
    checkpoint = tf.train.Checkpoint(net=net, step=step)

    status = checkpoint.restore(tf.train.latest_checkpoint(str(FILES / "state")))

    status.assert_consumed()
    assert [v.numpy().tolist() for v in net.layers] == [[[1, 2], [3, 4]], [5, 6]]
    assert (net.options["rate"].numpy(), net.options["other"].numpy()) == (0.5, 7)
    assert (step.numpy(), checkpoint.save_counter.numpy()) == (3, 1)


def test_objects_are_restored_when_they_are_created():
    checkpoint = tf.train.Checkpoint()
    checkpoint.read(str(FILES / "state" / "ckpt-1")).expect_partial()

    checkpoint.net = Net()

    assert checkpoint.net.layers[1].numpy().tolist() == [5, 6]


def test_integers_are_converted_if_they_fit():
    step = tf.Variable(0, dtype=tf.int64)
    tf.train.Checkpoint(step=step).read(str(FILES / "state" / "ckpt-1")).expect_partial()

    assert step.numpy() == 3
    with pytest.raises(tf.errors.InvalidArgumentError):
        step = tf.Variable(0.0)
        tf.train.Checkpoint(step=step).read(str(FILES / "state" / "ckpt-1"))


def test_tables_are_restored():
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, -1.0, 0, -1)
    checkpoint = tf.train.Checkpoint(table=table, dense=dense)

    checkpoint.read(str(FILES / "tables")).assert_consumed()

    assert table.lookup(["a", "b", "c"]).numpy().tolist() == [1, 2, -1]
    assert dense.lookup(tf.constant([5, 6, 7], tf.int64)).numpy().tolist() == [0.5, 0.25, -1]
    assert dense.size().numpy() == 2


# Corrupt and hostile files


def copy_to(folder, name="dtypes"):
    for path in FILES.glob(f"{name}.*"):
        shutil.copy(path, folder)
    return folder / name


def read_all(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    return {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}


@pytest.mark.parametrize("kind", ["index", "data-00000-of-00001"])
def test_every_changed_byte_is_detected(tmp_path, kind):
    prefix = copy_to(tmp_path, "tables")
    path = pathlib.Path(f"{prefix}.{kind}")
    good = path.read_bytes()
    places = range(len(good) - 48) if kind == "index" else range(len(good))
    for place in places:
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x55]) + good[place + 1 :])
        with pytest.raises(tf.errors.DataLossError):
            read_all(prefix)


@pytest.mark.parametrize("kind", ["index", "data-00000-of-00001"])
def test_truncated_files_are_detected(tmp_path, kind):
    prefix = copy_to(tmp_path)
    path = pathlib.Path(f"{prefix}.{kind}")
    good = path.read_bytes()
    for size in range(0, len(good), 37):
        path.write_bytes(good[:size])
        with pytest.raises(tf.errors.DataLossError):
            read_all(prefix)


def test_a_missing_data_file_is_reported(tmp_path):
    prefix = copy_to(tmp_path)
    data = pathlib.Path(f"{prefix}.data-00000-of-00001")
    data.unlink()

    assert_raises(
        lambda: read_all(prefix),
        tf.errors.DataLossError,
        f"Cannot read {prefix} as a TensorFlow checkpoint: the file {data} does not exist.",
    )


def make_table(entries):
    """Returns a table with one block. It does not share prefixes."""
    block = b"".join(
        b"\0" + encode_varint(len(key)) + encode_varint(len(value)) + key + value
        for key, value in entries
    )
    data = with_trailer(block + struct.pack("<II", 0, 1))
    handle = encode_varint(0) + encode_varint(len(data) - 5)
    index = (
        b"\0"
        + encode_varint(1)
        + encode_varint(len(handle))
        + b"\xff"
        + handle
        + struct.pack("<II", 0, 1)
    )
    footer = handle + encode_varint(len(data)) + encode_varint(len(index))
    return data + with_trailer(index) + footer.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db")


def with_trailer(block, kind=b"\0"):
    return block + kind + struct.pack("<I", masked_crc(block + kind))


def write_checkpoint(folder, data=b"", shards=1, **entries):
    header = BundleHeader(num_shards=shards).SerializeToString()
    pairs = [(b"", header), *((k.encode(), v.SerializeToString()) for k, v in entries.items())]
    (folder / "c.index").write_bytes(make_table(pairs))
    (folder / "c.data-00000-of-00001").write_bytes(data)
    return folder / "c"


def entry(sizes=(), **fields):
    shape = {"dim": [{"size": size} for size in sizes]}
    return BundleEntry(shape=shape, **fields)


def test_a_checkpoint_with_names_of_variables_is_read(tmp_path):
    data = np.array([1.5, 2.5], np.float32).tobytes()
    good = entry([2], dtype=1, size=8, crc32c=masked_crc(data))
    prefix = write_checkpoint(tmp_path, data, weights=good)

    assert tf.train.load_variable(str(prefix), "weights").tolist() == [1.5, 2.5]


HOSTILE = {
    "negative size": (
        entry([-1], dtype=1, size=8),
        "the entry of b'x' has a negative size or too many axes",
    ),
    "many axes": (
        entry([1] * 100, dtype=1, size=8),
        "the entry of b'x' has a negative size or too many axes",
    ),
    "huge shape": (
        entry([1 << 40, 1 << 40], dtype=1, size=8),
        "the entry of b'x' has a size that does not match its shape",
    ),
    "huge strings": (
        entry([1 << 60], dtype=7, size=8),
        "the entry of b'x' has fewer bytes than strings",
    ),
    "shard": (
        entry([1], dtype=1, size=4, shard_id=1),
        "the entry of b'x' is in the missing file 1",
    ),
    "outside": (entry([1], dtype=1, size=4, offset=1 << 40), "{data} is truncated"),
    "checksum": (entry([1], dtype=1, size=4), "the checksum of 'x' is wrong"),
    "bool": (
        entry([1], dtype=10, size=1, crc32c=masked_crc(b"\x02")),
        "'x' has a bool that is neither 0 nor 1",
    ),
    "strings": (
        entry([1], dtype=7, size=4, crc32c=1),
        "the lengths of the strings of 'x' are corrupt",
    ),
    "slices": (
        entry([1], dtype=1, slices=[{"extent": [{"start": 0, "length": 1}]}]),
        "a slice of 'x' is missing",
    ),
}


@pytest.mark.parametrize(("hostile", "message"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_entries_raise_data_loss_errors(tmp_path, hostile, message):
    prefix = write_checkpoint(tmp_path, b"\x02\x02\x02\x02\x02", x=hostile)
    message = message.format(data=f"{prefix}.data-00000-of-00001")

    assert_raises(
        lambda: tf.train.load_variable(str(prefix), "x"),
        tf.errors.DataLossError,
        f"Cannot read {prefix} as a TensorFlow checkpoint: {message}.",
    )


def test_unknown_dtypes_are_listed_but_not_read(tmp_path):
    prefix = write_checkpoint(tmp_path, x=entry([2], dtype=21, size=4))

    assert tf.train.list_variables(str(prefix)) == [(GRAPH_KEY, []), ("x", [2])]
    assert_raises(
        lambda: tf.train.load_variable(str(prefix), "x"),
        tf.errors.UnimplementedError,
        f"The tensor 'x' of {prefix} has the unknown type 21.",
    )


def test_hostile_object_graphs_raise_data_loss_errors(tmp_path):
    for graph in (b"\x0a\x04\x0a\x02\x08\x05", b"\xff", b"\x0a\x02\x0a\x00" * 3 + b"\x0a\x7f"):
        sizes = struct.pack("<I", len(graph))
        middle = struct.pack("<I", masked_crc(sizes))
        data = encode_varint(len(graph)) + middle + graph
        crc = masked_crc(sizes + middle + graph)
        described = entry(dtype=7, size=len(data), crc32c=crc)
        prefix = write_checkpoint(tmp_path, data, **{GRAPH_KEY: described})
        with pytest.raises(tf.errors.DataLossError):
            tf.train.load_checkpoint(str(prefix))


def test_a_state_file_without_a_checksum_needs_a_checkpoint_of_tensorflow(tmp_path):
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "a-1"\n')

    with pytest.raises(tf.errors.DataLossError):
        tf.train.latest_checkpoint(str(tmp_path))


# Tables and compression


def test_blocks_can_be_compressed():
    good = make_table([(b"a", b"1"), (b"b", b"2")])
    block = good[:18]
    literal = encode_varint(len(block)) + bytes([(len(block) - 1) << 2]) + block
    data = with_trailer(literal, b"\x01")
    handle = encode_varint(0) + encode_varint(len(literal))
    index = (
        b"\0"
        + encode_varint(1)
        + encode_varint(len(handle))
        + b"\xff"
        + handle
        + struct.pack("<II", 0, 1)
    )
    footer = handle + encode_varint(len(data)) + encode_varint(len(index))
    table = data + with_trailer(index) + footer.ljust(40, b"\0") + good[-8:]

    assert read_table(good) == read_table(table) == {b"a": b"1", b"b": b"2"}


SNAPPY = {  # in Snappy's format: a length, then literals and copies
    "0568656c6c6f": None,
    "051068656c6c6f": b"hello",
    "0a006122 0100": b"a" * 10,
    "0a00611501": b"a" * 10,
    "0a006123 01000000": b"a" * 10,
    "08 0c61626364 0104": b"abcdabcd",
    "08 f003 61626364 0104": b"abcdabcd",
    "05 10 6865": None,
    "05 0061 0102": None,
    "04 0061 0100": None,
    "ffffffff7f": None,
    "": None,
}


@pytest.mark.parametrize(("data", "expected"), SNAPPY.items())
def test_snappy(data, expected):
    if expected is None:
        with pytest.raises(WireFormatError):
            decompress(bytes.fromhex(data))
    else:
        assert decompress(bytes.fromhex(data)) == expected


def test_random_tables_never_raise_another_error():
    rng = np.random.default_rng(3)
    good = make_table([(b"a", b"1"), (b"b", b"2" * 50)])
    for _ in range(300):
        data = bytearray(good)
        data[-48 + rng.integers(48)] = rng.integers(256)
        try:
            read_table(bytes(data))
        except WireFormatError:
            continue


def test_keys_of_slices():
    assert slice_key("a", [(0, -1)]).hex() == "006100010101807f"
    assert slice_key("\x00", [(63, 64), (-64, 8191)]).hex() == "0000ff00010102bfc04040dfff"
