"""tf.lookup: static and mutable tables, compared with TensorFlow."""

import json
import pathlib
import threading

import numpy as np
import pytest

import retrograde as tf
from retrograde.lookup.mutable import decode_table, encode_table
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_raises

DATA = pathlib.Path(__file__).parents[1] / "data"
RESULTS = json.loads((DATA / "lookup_results.json").read_text())


@pytest.mark.parametrize("call", RESULTS)
def test_result_agrees_with_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, RESULTS[call]), f"got {actual}, expected {RESULTS[call]}"


def words(**entries):
    return tf.lookup.KeyValueTensorInitializer(
        list(entries), tf.constant(list(entries.values()), tf.int64)
    )


def mutable(**entries):
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    if entries:
        table.insert(list(entries), list(entries.values()))
    return table


def test_static_tables_in_functions():
    table = tf.lookup.StaticHashTable(words(a=1, b=2), -1)
    vocabulary = tf.lookup.StaticVocabularyTable(words(a=0, b=1), 2)

    @tf.function
    def f(keys):
        return table.lookup(keys), vocabulary.lookup(keys) + 1

    for keys in (["a", "b"], ["z", "a"]):
        expected = table.lookup(tf.constant(keys)), vocabulary.lookup(tf.constant(keys)) + 1
        for actual, value in zip(f(tf.constant(keys)), expected, strict=True):
            assert actual.numpy().tolist() == value.numpy().tolist()
    assert len(f.recordings()) == 1


def test_mutable_tables_in_functions_change_in_each_call():
    table = mutable(a=1)

    @tf.function
    def add(keys, values):
        table.insert(keys, values)
        return table.lookup(tf.constant(["a", "b", "c"])), table.size()

    @tf.function
    def remove(keys):
        table.remove(keys)
        return table.size()

    @tf.function
    def export():
        return table.export()

    for key, value, expected, size in (("b", 2, [1, 2, -1], 2), ("c", 3, [1, 2, 3], 3)):
        values, count = add(tf.constant([key]), tf.constant([value], tf.int64))
        assert (values.numpy().tolist(), count.numpy()) == (expected, size)
        assert sorted(export()[1].numpy().tolist()) == sorted(v for v in expected if v > 0)
    assert len(add.recordings()) == 1
    assert [remove(tf.constant([key])).numpy() for key in "abc"] == [2, 1, 0]
    assert export()[0].numpy().tolist() == []


def test_tables_in_datasets():
    table = tf.lookup.StaticHashTable(words(a=1, b=2), -1)
    counts = mutable()
    data = tf.data.Dataset.from_tensor_slices(["a", "b", "z"])

    mapped = data.map(table.lookup).batch(2)

    assert [x.tolist() for x in mapped.as_numpy_iterator()] == [[1, 2], [-1]]
    assert mapped.element_spec == tf.TensorSpec([None], tf.int64)
    counts.insert(["a"], [7])
    assert list(data.map(counts.lookup).as_numpy_iterator()) == [7, -1, -1]


def test_static_tables_in_saved_models(tmp_path):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = tf.lookup.StaticHashTable(words(a=1, b=2), -1)
            self.vocabulary = tf.lookup.StaticVocabularyTable(words(a=0), 5)

        @tf.function(input_signature=[tf.TensorSpec([2], tf.string)])
        def __call__(self, keys):
            return self.table.lookup(keys), self.vocabulary.lookup(keys)

    model = Model()
    tf.saved_model.save(model, str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))

    keys = tf.constant(["b", "zebra"])
    for actual, expected in zip(loaded(keys), model(keys), strict=True):
        assert actual.numpy().tolist() == expected.numpy().tolist()


def test_mutable_tables_in_checkpoints(tmp_path):
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, [0.0, 0.0], 0, -1)
    dense.insert(tf.constant([5], tf.int64), [[1.0, 2.0]])
    path = tf.train.Checkpoint(table=mutable(a=1, b=2), dense=dense).write(str(tmp_path / "a"))

    table = mutable(c=3)
    other = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, [0.0, 0.0], 0, -1)
    tf.train.Checkpoint(table=table, dense=other).read(path).assert_consumed()

    assert table.lookup(["a", "b", "c"]).numpy().tolist() == [1, 2, -1]
    assert other.lookup(tf.constant([5], tf.int64)).numpy().tolist() == [[1, 2]]


def test_tables_are_restored_when_they_are_created(tmp_path):
    path = tf.train.Checkpoint(table=mutable(a=1)).write(str(tmp_path / "a"))
    checkpoint = tf.train.Checkpoint()
    checkpoint.read(path)

    checkpoint.table = mutable()

    assert checkpoint.table.lookup("a").numpy() == 1


def test_a_checkpoint_with_other_dtypes_is_refused(tmp_path):
    path = tf.train.Checkpoint(table=mutable(a=1)).write(str(tmp_path / "a"))
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1)
    table.insert(tf.constant([1], tf.int64), tf.constant([2], tf.int64))

    assert_raises(
        lambda: tf.train.Checkpoint(table=table).read(path),
        tf.errors.InvalidArgumentError,
        "The table in the checkpoint has keys of string and values of int64, shape (). Expected "
        "int64 and int64, shape ().",
    )
    assert table.size().numpy() == 1


def test_static_tables_are_ignored_by_checkpoints(tmp_path):
    table = tf.lookup.StaticHashTable(words(a=1), -1)
    checkpoint = tf.train.Checkpoint(table=table, v=tf.Variable(1.0))

    checkpoint.restore(checkpoint.save(str(tmp_path / "a"))).assert_consumed()

    assert table.lookup(tf.constant("a")).numpy() == 1


def test_corrupt_tables_raise_data_loss_errors():
    good = encode_table(np.array([1, 2]), np.array([b"a", b"bcd"], object))
    keys, values = decode_table(good)
    assert (keys.tolist(), values.tolist()) == ([1, 2], [b"a", b"bcd"])
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(300):
        data = bytearray(good)
        data[rng.integers(len(data))] = rng.integers(256)
        try:
            decode_table(bytes(data[: rng.integers(1, len(data) + 1)]))
        except tf.errors.DataLossError:
            refused += 1
    assert refused > 250
    with pytest.raises(tf.errors.DataLossError, match="A lookup table in a checkpoint is corrupt"):
        decode_table(b"[" * 100_000 + b"\n")


def test_threads_change_a_table_without_losing_keys():
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1)

    def insert(first):
        for number in range(first, first + 50):
            table.insert(tf.constant([number], tf.int64), tf.constant([number], tf.int64))

    threads = [threading.Thread(target=insert, args=(100 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert table.size().numpy() == 200


MESSAGES = {
    "keys": (
        lambda: mutable().insert(tf.constant([1]), tf.constant([1], tf.int64)),
        ValueError,
        "Dtype of argument `keys` must be string, received: int32.",
    ),
    "shape": (
        lambda: mutable().insert(["a"], [1, 2]),
        tf.errors.InvalidArgumentError,
        "Expected shape [1] for value, got [2]",
    ),
    "static default": (
        lambda: tf.lookup.StaticHashTable(words(a=1), [1]),
        ValueError,
        "`default_value` must be a scalar of int64. Received: [1].",
    ),
    "defaults": (
        lambda: mutable().lookup(["a", "b"], tf.constant([1, 2, 3], tf.int64)),
        tf.errors.InvalidArgumentError,
        "Expected dynamic default values of shape (2,) or (). Received: shape (3,).",
    ),
    "repeated key": (
        lambda: tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a", "a"], [1, 2]), 0
        ),
        tf.errors.FailedPreconditionError,
        "HashTable has different value for same key. Key b'a' has 1 and trying to add value 2",
    ),
    "number of values": (
        lambda: tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1, 2]), 0),
        tf.errors.InvalidArgumentError,
        "Keys and values must have the same shape. Received: keys of shape (1,) and values "
        "of shape (2,).",
    ),
    "key dtype": (
        lambda: tf.lookup.experimental.MutableHashTable(tf.float32, tf.int64, 0),
        tf.errors.NotFoundError,
        "MutableHashTable: keys of dtype float32 are not supported. Expected string, int32 or "
        "int64.",
    ),
    "value dtype": (
        lambda: tf.lookup.experimental.MutableHashTable(tf.int64, tf.complex64, 0),
        tf.errors.NotFoundError,
        "MutableHashTable: values of dtype complex64 are not supported.",
    ),
    "buckets": (
        lambda: tf.lookup.StaticVocabularyTable(None, 0),
        ValueError,
        "The `num_oov_buckets` argument must be greater than zero. Received num_oov_buckets=0.",
    ),
    "ids": (
        lambda: tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), 1),
        TypeError,
        "Invalid `value_dtype`, expected int64 but got tf.int32.",
    ),
    "lookup dtype": (
        lambda: tf.lookup.StaticVocabularyTable(words(a=0), 1, tf.int64),
        TypeError,
        "Invalid key dtype, expected tf.string but got tf.int64.",
    ),
    "dense table": (
        lambda: tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, 0, 1, 1),
        tf.errors.InvalidArgumentError,
        "Empty and deleted keys must not be equal.",
    ),
    "dense buckets": (
        lambda: tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, 0, 1, 2, 3),
        tf.errors.InvalidArgumentError,
        "The number of buckets must be a power of 2. Received: 3.",
    ),
    "reserved key": (
        lambda: tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, 0, 1, 2).lookup(
            tf.constant([2], tf.int64)
        ),
        tf.errors.InvalidArgumentError,
        "Using the deleted_key as a table key is not allowed",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), MESSAGES.values(), ids=MESSAGES)
def test_messages(call, error, message):
    assert_raises(call, error, message)


def file_messages(path):
    whole_line, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    init = tf.lookup.TextFileInitializer
    return [
        ("", (whole_line, number), tf.errors.OutOfRangeError, f"{path} has no lines."),
        (
            "a\n\nb\n",
            (whole_line, number),
            tf.errors.InvalidArgumentError,
            f"Invalid content in {path}: line 1 is empty.",
        ),
        (
            "a\n",
            (0, 1),
            tf.errors.InvalidArgumentError,
            f"Invalid number of columns in {path} line 0 (a): expected at least 2, got 1",
        ),
        (
            "a\tx\n",
            (0, 1),
            tf.errors.InvalidArgumentError,
            "Field x in line 0 is not a valid int64.",
        ),
    ], init


def test_messages_about_files(tmp_path):
    path = tmp_path / "words.txt"
    cases, init = file_messages(path)
    for text, (key, value), error, message in cases:
        path.write_text(text)
        initializer = init(str(path), tf.string, key, tf.int64, value)
        assert_raises(lambda i=initializer: tf.lookup.StaticHashTable(i, 0), error, message)
    path.write_text("a\n")
    for arguments, message in (
        (
            (tf.string, -3, tf.int64, 0),
            "Invalid key_index -3 or value_index 0. Expected the number of a column, or an "
            "attribute of tf.lookup.TextFileIndex.",
        ),
        (
            (tf.string, 0, tf.int64, 0),
            "Key index and value index must be different. Received: 0 for both.",
        ),
        ((tf.string, 0, tf.int64, 1, 0), "Invalid vocab_size 0, should be > 0"),
        (
            (tf.string, -1, tf.int64, 1),
            "Key index for line number requires dtype int64. Received: tf.string.",
        ),
        (
            (tf.float32, -2, tf.int64, 1),
            "Key index for whole line requires string or integer dtype. Received: tf.float32.",
        ),
    ):
        assert_raises(lambda a=arguments: init(str(path), *a), ValueError, message)
    index = tf.lookup.TextFileIndex
    initializer = init(str(path), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER, 2)
    assert_raises(
        lambda: tf.lookup.StaticHashTable(initializer, 0),
        tf.errors.InvalidArgumentError,
        f"Invalid vocab_size in {path}: expected 2 but got 1",
    )
