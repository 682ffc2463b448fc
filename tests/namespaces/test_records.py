"""TFRecord files, examples, and the parsing of features, compared with TensorFlow."""

import contextlib
import copy
import json
import pathlib
import pickle
import struct
import zlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.protobuf.messages import DecodeError
from retrograde.records.files import encode_record
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_raises

DATA = pathlib.Path(__file__).parents[1] / "data"
RESULTS = json.loads((DATA / "record_results.json").read_text())
FILES = {"plain": None, "gzip": "GZIP", "zlib": "ZLIB"}  # written by TensorFlow


@pytest.mark.parametrize("call", RESULTS)
def test_result_agrees_with_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, RESULTS[call]), f"got {actual}, expected {RESULTS[call]}"


def read(path, compression=None):
    return list(tf.data.TFRecordDataset(str(path), compression).as_numpy_iterator())


def write(path, records, options=None):
    with tf.io.TFRecordWriter(str(path), options) as writer:
        for record in records:
            writer.write(record)
    return path


def make_example(**features):
    example = tf.train.Example()
    for name, values in features.items():
        feature = example.features.feature[name]
        if isinstance(values[0], bytes):
            feature.bytes_list.value.extend(values)
        elif isinstance(values[0], float):
            feature.float_list.value.extend(values)
        else:
            feature.int64_list.value.extend(values)
    return example.SerializeToString()


# Files


@pytest.mark.parametrize(("name", "compression"), FILES.items())
def test_files_that_tensorflow_wrote_are_read(name, compression):
    records = read(DATA / "records" / f"{name}.tfrecord", compression)

    assert len(records) == 5
    assert records[3:] == [b"", b"x" * 5000]
    example = tf.train.Example.FromString(records[2])
    assert example.features.feature["id"].int64_list.value == [2, -2]
    assert example.features.feature["x"].float_list.value == [2.5, 2.5]
    assert example.features.feature["text"].bytes_list.value == [b"record \xff 2"]
    assert example.SerializeToString(deterministic=True) == records[2]


def test_files_have_the_same_bytes_as_those_of_tensorflow(tmp_path):
    expected = DATA / "records" / "plain.tfrecord"

    path = write(tmp_path / "file", read(expected))

    assert path.read_bytes() == expected.read_bytes()


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB", "", None])
def test_written_records_are_read(tmp_path, compression):
    records = [b"a", b"", bytes(range(256)) * 50, "é"]

    path = write(tmp_path / "file", records, compression)

    assert read(path, compression) == [b"a", b"", bytes(range(256)) * 50, "é".encode()]


def test_options_set_the_parameters_of_zlib(tmp_path):
    options = tf.io.TFRecordOptions("ZLIB", compression_level=0, window_bits=12, mem_level=3)

    path = write(tmp_path / "file", [b"a" * 1000], options)

    assert read(path, "ZLIB") == [b"a" * 1000]
    assert path.stat().st_size > 1000


def test_flushed_records_can_be_read_before_the_writer_is_closed(tmp_path):
    for compression in (None, "GZIP"):
        writer = tf.io.TFRecordWriter(str(tmp_path / "file"), compression)
        writer.write(b"abc")
        writer.flush()
        dataset = tf.data.TFRecordDataset(str(tmp_path / "file"), compression)

        assert next(iter(dataset)).numpy() == b"abc"
        writer.close()


def test_a_closed_writer_refuses_records(tmp_path):
    writer = tf.io.TFRecordWriter(str(tmp_path / "file"))
    writer.close()
    writer.close()

    for call in (writer.flush, lambda: writer.write(b"a")):
        assert_raises(call, tf.errors.FailedPreconditionError, "Writer is closed.")


def test_records_are_bytes(tmp_path):
    with tf.io.TFRecordWriter(tmp_path / "file") as writer:
        assert_raises(
            lambda: writer.write(3),
            TypeError,
            "TFRecordWriter.write: expected bytes, such as a serialized message. Received: 3 of "
            "type int.",
        )


def test_a_writer_needs_a_folder(tmp_path):
    path = tmp_path / "missing" / "file"
    assert_raises(
        lambda: tf.io.TFRecordWriter(str(path)),
        tf.errors.NotFoundError,
        f"{path}; No such file or directory",
    )
    with pytest.raises(tf.errors.FailedPreconditionError):
        tf.io.TFRecordWriter(str(tmp_path))


def test_several_files_are_read_in_order_or_interleaved(tmp_path):
    paths = [
        str(write(tmp_path / name, [name.encode() + b"1", name.encode() + b"2"])) for name in "ab"
    ]

    assert read_all(tf.data.TFRecordDataset(paths)) == [b"a1", b"a2", b"b1", b"b2"]
    files = tf.data.Dataset.from_tensor_slices(paths)
    assert read_all(tf.data.TFRecordDataset(files)) == [b"a1", b"a2", b"b1", b"b2"]
    interleaved = tf.data.TFRecordDataset(paths, num_parallel_reads=2)
    assert read_all(interleaved) == [b"a1", b"b1", b"a2", b"b2"]
    assert tf.data.TFRecordDataset(paths).element_spec == tf.TensorSpec([], tf.string)


def read_all(dataset):
    return list(dataset.as_numpy_iterator())


CORRUPT = {
    "length": (lambda data: b"\x01" + data[1:], "corrupted record at 0."),
    "checksum of the length": (lambda data: data[:8] + b"\0" + data[9:], "corrupted record at 0."),
    "data": (lambda data: data[:31] + b"?" + data[32:], "corrupted record at 19."),
    "end": (lambda data: data[:-1], "truncated record at 19."),
    "long record": (
        lambda data: data + encode_record(b"x" * 3_000_000)[:2_000_000],
        "truncated record at 38.",
    ),
    "huge length": (
        lambda data: data[:19] + _header(1 << 62) + data[31:],
        "truncated record at 19.",
    ),
}


def _header(length):
    data = struct.pack("<Q", length)
    return data + encode_record(data)[-4:]


@pytest.mark.parametrize(("damage", "message"), CORRUPT.values(), ids=CORRUPT)
def test_corrupt_records_raise_data_loss_errors(tmp_path, damage, message):
    path = write(tmp_path / "file", [b"abc", b"def"])
    path.write_bytes(damage(path.read_bytes()))

    assert_raises(lambda: read(path), tf.errors.DataLossError, f"{path}: {message}")


def test_a_partial_header_at_the_end_is_ignored(tmp_path):
    path = write(tmp_path / "file", [b"abc", b"def"])
    path.write_bytes(path.read_bytes()[:22])

    assert read(path) == [b"abc"]


def test_corrupt_compressed_files_raise_data_loss_errors(tmp_path):
    path = write(tmp_path / "file", [b"abc"])

    for compression in ("GZIP", "ZLIB"):
        with pytest.raises(tf.errors.DataLossError):
            read(path, compression)
    path.write_bytes(zlib.compress(path.read_bytes())[:-8])
    with pytest.raises(tf.errors.DataLossError):
        read(path, "ZLIB")


def test_good_records_before_a_corrupt_one_are_read(tmp_path):
    path = write(tmp_path / "file", [b"abc", b"def"])
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    dataset = tf.data.TFRecordDataset(str(path))

    assert read_all(dataset.ignore_errors()) == [b"abc"]


def test_random_damage_never_raises_another_error(tmp_path):
    rng = np.random.default_rng(1)
    path = write(tmp_path / "file", [make_example(a=[1, 2], b=[b"x"]), b"y" * 100])
    good = path.read_bytes()
    for _ in range(200):
        data = bytearray(good)
        for place in rng.integers(len(data), size=rng.integers(1, 4)):
            data[place] = rng.integers(256)
        path.write_bytes(bytes(data[: rng.integers(len(data)) + 1]))
        try:
            read(path)
        except tf.errors.DataLossError:
            continue


# Messages


def test_messages_are_copied_and_pickled():
    example = tf.train.Example.FromString(make_example(a=[1], b=[b"x"], c=[0.5]))

    for other in (copy.deepcopy(example), copy.copy(example), pickle.loads(pickle.dumps(example))):
        assert other == example
        other.features.feature["a"].int64_list.value.append(2)
        assert other != example


def test_a_submessage_that_is_cleared_is_independent_of_its_parent():
    example = tf.train.Example.FromString(make_example(a=[1]))
    features = example.features
    example.ClearField("features")
    features.feature["b"].int64_list.value.append(1)

    assert not example.HasField("features")
    assert str(example) == ""


def test_unknown_fields_are_kept():
    data = make_example(a=[1]) + bytes.fromhex("12036162631d01020304210102030405060708")

    assert tf.train.Example.FromString(data).SerializeToString() == data
    assert tf.train.Int64List.FromString(b"\x0b\x08\x01\x0c\x08\x02").value == [2]  # a group


def test_deeply_nested_and_truncated_groups_are_refused():
    for data in (b"\x0b" * 100_000, b"\x0b\x08", b"\x0b\x14", b"\x0c", b"\x00\x01"):
        with pytest.raises(DecodeError):
            tf.train.Int64List.FromString(data)


def test_containers_behave_like_lists_and_dicts():
    values = tf.train.Int64List(value=[3, 1, 2]).value
    values.sort()
    values[0] = 7
    values.insert(1, 5)
    del values[-1]
    assert list(values) == [7, 5, 2]
    values[:] = [1]
    assert repr(values) == "[1]"
    assert values.pop() == 1
    assert not values

    features = tf.train.Features()
    features.feature["a"].int64_list.value.append(1)
    assert {**features.feature}.keys() == {"a"}
    assert features.feature.pop("a").int64_list.value == [1]
    assert not features.feature
    with pytest.raises(KeyError):
        del features.feature["a"]


def test_random_bytes_never_raise_another_error():
    rng = np.random.default_rng(2)
    good = make_example(a=[1, 2], b=[b"x"], c=[0.5])
    for _ in range(500):
        data = bytearray(good)
        for place in rng.integers(len(data), size=3):
            data[place] = rng.integers(256)
        data = bytes(data)
        with contextlib.suppress(DecodeError):
            tf.train.Example.FromString(data)
        try:
            tf.io.parse_example([data], {"a": tf.io.VarLenFeature(tf.int64)})
        except tf.errors.InvalidArgumentError:
            continue


@pytest.mark.parametrize("count", [1, 10, 100])
def test_packed_integers_of_any_length(count):
    values = [(-1) ** k * (1 << k % 63) - k for k in range(count)]
    message = tf.train.Int64List(value=values)

    assert tf.train.Int64List.FromString(message.SerializeToString()).value == values


# Parsing in functions, datasets and saved models

FEATURES = {
    "id": tf.io.FixedLenFeature([2], tf.int64),
    "x": tf.io.VarLenFeature(tf.float32),
    "text": tf.io.FixedLenFeature([], tf.string),
    "missing": tf.io.FixedLenFeature([], tf.float32, -1.0),
}


def test_parsing_in_a_dataset():
    records = tf.data.TFRecordDataset(str(DATA / "records" / "plain.tfrecord")).take(3)

    parsed = records.map(lambda r: tf.io.parse_single_example(r, FEATURES))
    batch = next(iter(records.batch(3).map(lambda r: tf.io.parse_example(r, FEATURES))))

    assert [x["id"].numpy().tolist() for x in parsed] == [[0, 0], [1, -1], [2, -2]]
    assert parsed.element_spec == {
        "id": tf.TensorSpec([2], tf.int64),
        "missing": tf.TensorSpec([], tf.float32),
        "text": tf.TensorSpec([], tf.string),
        "x": tf.SparseTensorSpec([None], tf.float32),
    }
    assert batch["id"].numpy().tolist() == [[0, 0], [1, -1], [2, -2]]
    assert tf.sparse.to_dense(batch["x"]).numpy().tolist() == [[0, 0], [1.5, 0], [2.5, 2.5]]
    assert batch["missing"].numpy().tolist() == [-1, -1, -1]


def test_element_specs_of_all_kinds_of_features():
    features = {
        "fixed": tf.io.FixedLenFeature([3, 2], tf.float32),
        "var": tf.io.VarLenFeature(tf.int64),
        "sparse": tf.io.SparseFeature("i", "v", tf.float32, 10),
        "ragged": tf.io.RaggedFeature(tf.string),
        "rows": tf.io.RaggedFeature(
            tf.int64,
            "v",
            [tf.io.RaggedFeature.RowLengths("n"), tf.io.RaggedFeature.UniformRowLength(2)],
        ),
        "sequence": tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True),
    }
    strings = tf.data.Dataset.from_tensors(tf.constant([b""]))

    assert strings.map(lambda s: tf.io.parse_example(s, features)).element_spec == {
        "fixed": tf.TensorSpec([1, 3, 2], tf.float32),
        "var": tf.SparseTensorSpec([1, None], tf.int64),
        "sparse": tf.SparseTensorSpec([1, 10], tf.float32),
        "ragged": tf.RaggedTensorSpec([1, None], tf.string, 1, tf.int32),
        "rows": tf.RaggedTensorSpec([1, None, None, 2], tf.int64, 2, tf.int32),
        "sequence": tf.TensorSpec([1, None, 2], tf.int64),
    }
    context = {"k": tf.io.FixedLenFeature([], tf.int64)}
    lists = {
        "w": tf.io.VarLenFeature(tf.string),
        "x": tf.io.FixedLenSequenceFeature([2], tf.float32),
        "r": tf.io.RaggedFeature(tf.int64),
    }
    one = tf.data.Dataset.from_tensors(b"")
    parsed = one.map(lambda s: tf.io.parse_single_sequence_example(s, context, lists))
    assert parsed.element_spec == (
        {"k": tf.TensorSpec([], tf.int64)},
        {
            "w": tf.SparseTensorSpec([None, None], tf.string),
            "x": tf.TensorSpec([None, 2], tf.float32),
            "r": tf.RaggedTensorSpec([None, None], tf.int64, 1, tf.int32),
        },
    )


def test_parsing_in_functions_is_repeated_in_each_call():
    @tf.function
    def total(serialized):
        parsed = tf.io.parse_example(serialized, {"a": tf.io.FixedLenFeature([2], tf.int64)})
        return tf.reduce_sum(parsed["a"])

    @tf.function
    def lengths(serialized):
        x = tf.io.parse_single_example(serialized, {"a": tf.io.VarLenFeature(tf.int64)})["a"]
        return tf.size(x.values)

    assert total(tf.constant([make_example(a=[1, 2])])).numpy() == 3
    assert total(tf.constant([make_example(a=[5, 6])])).numpy() == 11
    assert [lengths(tf.constant(make_example(a=[1] * n))).numpy() for n in (1, 3, 1)] == [1, 3, 1]


def test_parsing_in_a_saved_model(tmp_path):
    class Parser(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([2], tf.string)])
        def parse(self, serialized):
            features = {"a": tf.io.FixedLenFeature([2], tf.float32, [0.5, 1.5])}
            return 2.0 * tf.io.parse_example(serialized, features)["a"]

    tf.saved_model.save(Parser(), str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))

    serialized = tf.constant([make_example(a=[1.0, 2.0]), make_example(b=[1])])
    assert loaded.parse(serialized).numpy().tolist() == [[2, 4], [1, 3]]


MESSAGES = {
    "required": (
        {"b": tf.io.FixedLenFeature([], tf.float32)},
        "Name: <unknown>, Feature: b (data type: float) is required but could not be found.",
    ),
    "count": (
        {"a": tf.io.FixedLenFeature([3], tf.int64)},
        "Name: <unknown>, Key: a, Index: 0.  Number of int64 values != expected.  Values size: 2 "
        "but output shape: [3] has 3.",
    ),
    "dtype": (
        {"a": tf.io.VarLenFeature(tf.string)},
        "Name: <unknown>, Key: a.  Data types don't match. Expected type: string, Actual type: "
        "int64",
    ),
    "unsupported dtype": (
        {"a": tf.io.VarLenFeature(tf.int32)},
        "Feature a has the dtype int32. Expected float32, int64 or string.",
    ),
    "multiple": (
        {"a": tf.io.FixedLenSequenceFeature([3], tf.int64, allow_missing=True)},
        "Name: <unknown>, Key: a, Index: 0.  Number of int64 values is not a multiple of stride "
        "length. Saw 2 values but output shape is: [3]",
    ),
    "default": (
        {"a": tf.io.FixedLenFeature([3], tf.int64, 0)},
        "The default of feature a has shape (). Expected shape (3,).",
    ),
    "default of a sequence": (
        {"a": tf.io.FixedLenSequenceFeature([], tf.int64, True, [1, 2])},
        "The default of feature a has shape (2,). Expected a scalar.",
    ),
    "partition": (
        {"r": tf.io.RaggedFeature(tf.int64, "a", [tf.io.RaggedFeature.RowLengths("n")])},
        "RaggedFeature: the partition RowLengths of 'n' has rows of lengths [1], which do not "
        "match 2 values.",
    ),
    "row splits": (
        {"r": tf.io.RaggedFeature(tf.int64, "a", [tf.io.RaggedFeature.RowSplits("a")])},
        "RaggedFeature: row splits must start with 0. Received: 4.",
    ),
    "row ids": (
        {"r": tf.io.RaggedFeature(tf.int64, "a", [tf.io.RaggedFeature.ValueRowIds("n")])},
        "RaggedFeature: row ids must be nonnegative and sorted, one for each of 2 values.",
    ),
}


@pytest.mark.parametrize(("features", "message"), MESSAGES.values(), ids=MESSAGES)
def test_messages_about_examples(features, message):
    serialized = [make_example(a=[4, 5], n=[1])]

    assert_raises(
        lambda: tf.io.parse_example(serialized, features), tf.errors.InvalidArgumentError, message
    )


VALUE_ERRORS = {
    "unknown size": (
        {"a": tf.io.FixedLenFeature([None], tf.int64)},
        "Feature a has the shape (None,). All dimensions must be known. Use "
        "tf.io.FixedLenSequenceFeature or tf.io.VarLenFeature for an unknown number of values.",
    ),
    "missing shape": (
        {"a": tf.io.FixedLenFeature(None, tf.int64)},
        "Missing shape for feature a. Received feature=FixedLenFeature(shape=None, "
        "dtype=tf.int64, default_value=None).",
    ),
    "missing dtype": (
        {"a": tf.io.VarLenFeature(None)},
        "Missing type for feature a. Received feature=VarLenFeature(dtype=None).",
    ),
    "missing key": (
        {"a": tf.io.SparseFeature(None, "v", tf.int64, 3)},
        "Missing index_key in SparseFeature. Received feature=SparseFeature(index_key=None, "
        "value_key='v', dtype=tf.int64, size=3, already_sorted=False).",
    ),
    "sizes": (
        {"a": tf.io.SparseFeature(["i", "j"], "v", tf.int64, 3)},
        "SparseFeature a has 2 index keys and 1 sizes. Expected one size for each index key.",
    ),
    "indices": (
        {"s": tf.io.SparseFeature("n", "a", tf.int64, 3)},
        "The indices and values of a SparseFeature have different lengths: [1] and [2].",
    ),
    "kind": (
        {"a": 3},
        "Unsupported int 3 for key 'a' of `features`. Expected one of: FixedLenFeature, "
        "FixedLenSequenceFeature, RaggedFeature, SparseFeature, VarLenFeature.",
    ),
}


@pytest.mark.parametrize(("features", "message"), VALUE_ERRORS.values(), ids=VALUE_ERRORS)
def test_messages_about_features(features, message):
    serialized = [make_example(a=[4, 5], n=[1])]

    assert_raises(lambda: tf.io.parse_example(serialized, features), ValueError, message)


def test_messages_about_sequence_examples():
    example = tf.train.SequenceExample()
    for values in ([1], [2, 3]):
        steps = example.feature_lists.feature_list["x"]
        steps.feature.add().int64_list.value.extend(values)
    serialized = example.SerializeToString()
    dense = {"x": tf.io.FixedLenSequenceFeature([], tf.int64)}
    ragged = {"r": tf.io.RaggedFeature(tf.int64, "x", [tf.io.RaggedFeature.RowLengths("n")])}

    for features, message in (
        (
            dense,
            "Key: x, Index: 1.  Number of values != expected.  Values size: 2 but output shape: "
            "[] has 1.",
        ),
        (ragged, "RaggedFeature r: the feature list 'n' has 0 steps, but 'x' has 2."),
    ):
        assert_raises(
            lambda f=features: tf.io.parse_single_sequence_example(serialized, None, f),
            tf.errors.InvalidArgumentError,
            message,
        )
