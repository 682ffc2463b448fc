"""tf.data: saving, caching and reading files."""

import gzip
import json
import pathlib
import subprocess
import sys
import tracemalloc
import types
import zlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.files.atomic import STAGING, Staging
from retrograde.files.checked_json import dump_with_checksum
from retrograde.files.tensors import write_tensors_in_place
from tests.namespaces.datasets import INT64, Dataset, to_list
from tests.namespaces.helpers import assert_raises


def counting_dataset(n, calls):
    return Dataset.range(n).map(lambda x: calls.append(int(x)) or x)


# Saving and loading


def structured_dataset(n):
    return Dataset.range(n).map(
        lambda x: {"a": x, "b": (tf.fill([x], 0.5), tf.strings.as_string(x), None)}
    )


@pytest.mark.parametrize("n", [0, 1, 5])
def test_save_and_load(n, tmp_path):
    structured_dataset(n).save(tmp_path / "data")
    loaded = Dataset.load(tmp_path / "data")
    assert to_list(loaded) == to_list(loaded) == to_list(structured_dataset(n))
    assert len(loaded) == n


def test_save_all_kinds_of_tensors(tmp_path):
    element = (
        tf.constant([[1.5]], tf.bfloat16),
        tf.ragged.constant([[[1], []], [[2, 3]]]),
        tf.sparse.eye(2),
        tf.constant(["a", "ü"]),
        tf.constant(1j),
    )
    Dataset.from_tensors(element).save(tmp_path / "data")
    loaded = Dataset.load(tmp_path / "data")
    assert loaded.element_spec == Dataset.from_tensors(element).element_spec
    (actual,) = loaded
    assert actual[1].to_list() == element[1].to_list()
    for index in (0, 3, 4):
        np.testing.assert_array_equal(actual[index].numpy(), element[index].numpy())
    np.testing.assert_array_equal(
        tf.sparse.to_dense(actual[2]).numpy(), tf.sparse.to_dense(element[2]).numpy()
    )


def test_the_spec_is_saved(tmp_path):
    spec = {"x": tf.TensorSpec([None], tf.float32)}
    dataset = Dataset.from_generator(lambda: iter([{"x": [1.0]}]), output_signature=spec)
    dataset.save(tmp_path / "data")
    assert Dataset.load(tmp_path / "data").element_spec == spec
    wider_spec = {"x": tf.TensorSpec(None, tf.float32)}
    assert to_list(Dataset.load(tmp_path / "data", element_spec=wider_spec)) == [{"x": [1.0]}]
    wrong = {"x": tf.TensorSpec([None], tf.int32)}
    assert_raises(
        lambda: Dataset.load(tmp_path / "data", element_spec=wrong),
        tf.errors.InvalidArgumentError,
        f"The elements in {tmp_path / 'data'} have the spec {spec}, which is not compatible with "
        f"the given element_spec {wrong}.",
    )


def test_save_calls_functions_once_per_element(tmp_path):
    calls = []
    counting_dataset(3, calls).save(tmp_path / "data")
    assert calls == [0, 1, 2]
    assert Dataset.load(tmp_path / "data").element_spec == INT64


def test_large_datasets_are_split_into_files(tmp_path, monkeypatch):
    monkeypatch.setattr("retrograde.data._saving._CHUNK", 100)
    Dataset.range(40).save(tmp_path / "data")
    assert len(list((tmp_path / "data").glob("data-*/00000000/*"))) == 4
    assert to_list(Dataset.load(tmp_path / "data")) == list(range(40))


def test_shards_are_interleaved_by_default(tmp_path):
    Dataset.range(6).save(tmp_path / "data", shard_func=lambda x: x // 3)
    assert to_list(Dataset.load(tmp_path / "data")) == [0, 3, 1, 4, 2, 5]
    sequential = Dataset.load(
        tmp_path / "data", reader_func=lambda shards: shards.flat_map(lambda shard: shard)
    )
    assert to_list(sequential) == [0, 1, 2, 3, 4, 5]


def test_saving_again_is_atomic(tmp_path):
    path = tmp_path / "data"
    Dataset.range(5).save(path)
    with pytest.raises(ZeroDivisionError):
        Dataset.range(3).map(lambda x: 1 // (int(x) - 2)).save(path)
    assert to_list(Dataset.load(path)) == [0, 1, 2, 3, 4]
    Dataset.range(2).save(path)
    assert to_list(Dataset.load(path)) == [0, 1]
    assert [p.name for p in tmp_path.iterdir()] == ["data"]


def test_corrupt_files_raise(tmp_path):
    Dataset.range(3).save(tmp_path / "data")
    index = tmp_path / "data" / "dataset.json"
    (file,) = (tmp_path / "data").glob("data-*/00000000/*")
    loaded = Dataset.load(tmp_path / "data")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(tf.errors.DataLossError, match="part of a saved dataset: it is corrupt"):
        list(loaded)
    for text in ("", "[]", "{}", json.dumps({"element_spec": {"other": {}}, "shards": {}})):
        index.write_text(text)
        assert_raises(
            lambda: Dataset.load(tmp_path / "data"),
            tf.errors.DataLossError,
            f"Cannot read {index}: it is corrupt or has another format.",
        )


@pytest.mark.parametrize(
    ("number", "count"), [("0", "3"), ("0", float("inf")), ("0", -1), ("0", 2**63), ("x", 3)]
)
def test_shard_counts_are_validated(tmp_path, number, count):
    Dataset.range(3).save(tmp_path / "data")
    index = tmp_path / "data" / "dataset.json"
    index.write_bytes(
        dump_with_checksum(json.loads(index.read_text()) | {"shards": {number: count}})
    )

    with pytest.raises(tf.errors.DataLossError, match="it is corrupt or has another format"):
        Dataset.load(tmp_path / "data")


@pytest.mark.parametrize(
    ("description", "tensors"),
    [
        ("text", 1),
        ({"elements": -1, "tensors": 1}, 1),
        ({"elements": 1, "tensors": "1"}, 1),
        ({"elements": 10**12, "tensors": 1}, 1),
        ({"elements": 1, "tensors": 1}, 1),  # three are needed
        ({"elements": 1, "tensors": 3}, 3),  # not the components of a sparse tensor
    ],
)
def test_element_files_are_validated(tmp_path, description, tensors):
    Dataset.from_tensors(tf.sparse.from_dense([[0, 1]])).save(tmp_path / "data")
    (file,) = (tmp_path / "data").glob("data-*/00000000/*")
    arrays = {f"0/{index}": np.ones(2) for index in range(tensors)}
    write_tensors_in_place(str(file), "part of a saved dataset", arrays, description)

    with pytest.raises(tf.errors.DataLossError, match="as a part of a saved dataset: its "):
        list(Dataset.load(tmp_path / "data"))


def test_saving_datasets_of_datasets_raises(tmp_path):
    with pytest.raises(TypeError, match="Elements of type DatasetSpec cannot be written to files"):
        Dataset.range(3).window(2).save(tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


# Caches and snapshots


def test_disk_cache_is_filled_by_the_first_complete_iteration(tmp_path):
    calls = []
    path = str(tmp_path / "cache")
    cached = counting_dataset(3, calls).cache(path)
    assert to_list(cached.take(2)) == [0, 1]
    assert list(tmp_path.iterdir()) == []  # the incomplete cache is removed
    assert to_list(cached) == to_list(cached) == [0, 1, 2]
    assert calls == [0, 1, 0, 1, 2]
    assert len(cached) == 3
    assert to_list(Dataset.range(9).cache(path)) == [0, 1, 2]  # as in TensorFlow


def test_reading_a_cache_removes_leftovers(tmp_path):
    cached = Dataset.range(3).cache(str(tmp_path / "c"))
    list(cached)
    Staging(str(tmp_path / "c"))._lock.close()
    assert (tmp_path / "c" / STAGING).exists()
    assert to_list(cached) == [0, 1, 2]
    assert not (tmp_path / "c" / STAGING).exists()


def test_concurrent_iterations_fill_one_cache(tmp_path):
    first, second = (iter(Dataset.range(3).cache(str(tmp_path / "c"))) for _ in range(2))
    assert [int(next(first)), int(next(second))] == [0, 0]
    assert [[int(x) for x in rest] for rest in (first, second)] == [[1, 2], [1, 2]]
    assert to_list(Dataset.range(0).cache(str(tmp_path / "c"))) == [0, 1, 2]


def test_snapshot_is_specific_to_the_dataset(tmp_path):
    calls = []
    path = str(tmp_path / "snapshots")

    def dataset(n):
        return (
            Dataset.range(n)
            .map(lambda x: tf.py_function(recorded_call, [x], tf.int64))
            .snapshot(path)
        )

    def recorded_call(x):
        calls.append(1)
        return x

    assert to_list(dataset(3)) == to_list(dataset(3)) == [0, 1, 2]
    assert len(dataset(3)) == 3
    count = len(calls)
    assert to_list(dataset(4)) == [0, 1, 2, 3]
    assert len(calls) > count


def test_sharded_snapshots(tmp_path):
    options = {
        "shard_func": lambda x: x % 2,
        "reader_func": lambda shards: shards.flat_map(lambda shard: shard),
    }
    dataset = Dataset.range(4).snapshot(str(tmp_path), **options)
    assert to_list(dataset) == [0, 1, 2, 3]
    assert to_list(dataset) == [0, 2, 1, 3]


# Fingerprints


def scale(x, factor=2):
    return x * factor


DISTINCT = {
    "range": lambda: Dataset.range(3),
    "longer": lambda: Dataset.range(4),
    "map": lambda: Dataset.range(3).map(lambda x: x + 1),
    "other_map": lambda: Dataset.range(3).map(lambda x: x + 2),
    "named": lambda: Dataset.range(3).map(scale),
    "batch": lambda: Dataset.range(3).batch(2),
    "larger_batch": lambda: Dataset.range(3).batch(3),
    "data": lambda: Dataset.from_tensor_slices([1.0, 2.0]),
    "other_data": lambda: Dataset.from_tensor_slices([1.0, 3.0]),
    "strings": lambda: Dataset.from_tensor_slices(["a", "b"]),
    "shuffle": lambda: Dataset.range(3).shuffle(3),
    "seeded": lambda: Dataset.range(3).shuffle(3, seed=1),
    "filter": lambda: Dataset.range(3).filter(lambda x: x > 1),
    "zip": lambda: Dataset.zip(Dataset.range(3), Dataset.range(4)),
    "chosen": lambda: Dataset.choose_from_datasets([Dataset.range(1)], Dataset.range(1)),
}


def test_fingerprints_are_distinct():
    actual = {name: int(make().fingerprint()) for name, make in DISTINCT.items()}
    assert len(set(actual.values())) == len(DISTINCT)
    assert actual == {name: int(make().fingerprint()) for name, make in DISTINCT.items()}
    assert Dataset.range(3).fingerprint().dtype == tf.uint64


def test_fingerprint_depends_on_closures():
    def make_dataset(weight):
        return Dataset.range(3).map(lambda x: x * weight)

    assert int(make_dataset(1).fingerprint()) != int(make_dataset(2).fingerprint())
    v = tf.Variable(1, dtype=tf.int64)
    before = int(make_dataset(v).fingerprint())
    v.assign(2)
    assert int(make_dataset(v).fingerprint()) != before


def test_fingerprint_ignores_module_contents():
    library = types.ModuleType("library")  # in the closure, not a global name
    dataset = Dataset.range(3).map(lambda x: (x, library)[0])
    before = int(dataset.fingerprint())
    library.state = [1, 2, 3]
    assert int(dataset.fingerprint()) == before


def test_fingerprints_are_the_same_in_another_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import retrograde as tf\n"
        "data = tf.data.Dataset.range(9).map(lambda x: {'a': x, 'b': x + 1}).shuffle(4).batch(2)\n"
        "print(int(data.fingerprint()))\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, program], capture_output=True, text=True, check=True, timeout=60
        ).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


# File names


@pytest.fixture
def three_files(tmp_path):
    for name in "cab":
        (tmp_path / f"{name}.txt").write_text(name)
    return [str(tmp_path / f"{name}.txt").encode() for name in "abc"]


def test_list_files(three_files, tmp_path):
    pattern = str(tmp_path / "*.txt")
    assert to_list(Dataset.list_files(pattern, shuffle=False)) == three_files
    patterns = [str(tmp_path / "c*"), str(tmp_path / "a*")]
    assert to_list(Dataset.list_files(patterns, shuffle=False)) == [three_files[0], three_files[2]]
    actual = Dataset.list_files(pattern)
    assert (len(actual), actual.element_spec) == (3, tf.TensorSpec([], tf.string))


def test_list_files_shuffles_each_iteration(tmp_path):
    for number in range(20):
        pathlib.Path(tmp_path / f"{number}").touch()
    dataset = Dataset.list_files(str(tmp_path / "*"), seed=3)
    first, second = to_list(dataset), to_list(dataset)
    assert sorted(first) == sorted(second)
    assert first != second
    assert to_list(Dataset.list_files(str(tmp_path / "*"), seed=3)) == first


# Lines and records


@pytest.fixture
def texts(tmp_path):
    contents = {"a": b"a\nb\r\n\nlast", "empty": b"", "b": b"x\ny\n"}
    for name, text in contents.items():
        (tmp_path / f"{name}.txt").write_bytes(text)
    return {name: str(tmp_path / f"{name}.txt") for name in contents}


def test_text_lines(texts):
    dataset = tf.data.TextLineDataset(texts["a"])
    assert to_list(dataset) == to_list(dataset) == [b"a", b"b", b"", b"last"]
    assert isinstance(dataset, Dataset)
    assert dataset.element_spec == tf.TensorSpec([], tf.string)
    assert int(dataset.cardinality()) == -2
    three_paths = [texts["a"], texts["empty"], texts["b"]]
    assert to_list(tf.data.TextLineDataset(three_paths)) == [b"a", b"b", b"", b"last", b"x", b"y"]
    interleaved = tf.data.TextLineDataset([texts["a"], texts["b"]], num_parallel_reads=2)
    assert to_list(interleaved) == [b"a", b"x", b"b", b"y", b"", b"last"]
    assert to_list(tf.data.TextLineDataset([])) == []
    names_dataset = Dataset.from_tensor_slices([texts["b"]])
    assert to_list(tf.data.TextLineDataset(names_dataset)) == [b"x", b"y"]
    assert to_list(names_dataset.flat_map(tf.data.TextLineDataset)) == [b"x", b"y"]
    assert to_list(dataset.skip(1).batch(2)) == [[b"b", b""], [b"last"]]


def test_compressed_lines(tmp_path):
    compressed = {"GZIP": gzip.compress(b"g\nh"), "ZLIB": zlib.compress(b"g\nh"), "": b"g\nh"}
    for kind, data in compressed.items():
        (tmp_path / "file").write_bytes(data)
        assert to_list(tf.data.TextLineDataset(str(tmp_path / "file"), kind)) == [b"g", b"h"]


def test_fixed_length_records(tmp_path):
    (tmp_path / "file").write_bytes(b"HHaabbccF")
    path = str(tmp_path / "file")
    assert (
        to_list(tf.data.FixedLengthRecordDataset([path] * 2, 2, 2, 1)) == [b"aa", b"bb", b"cc"] * 2
    )
    records = tf.data.FixedLengthRecordDataset(path, record_bytes=3)
    assert to_list(records.map(lambda r: tf.io.decode_raw(r, tf.uint8)))[0] == [72, 72, 97]


def test_file_errors(texts, tmp_path):
    read = tf.data.TextLineDataset
    assert_raises(
        lambda: to_list(read(str(tmp_path / "none"))),
        tf.errors.NotFoundError,
        f"{tmp_path / 'none'}; No such file or directory",
    )
    assert_raises(
        lambda: to_list(read(texts["a"], "LZ4")),
        tf.errors.InvalidArgumentError,
        "Unsupported compression_type: 'LZ4'. Expected 'GZIP', 'ZLIB', '' or None.",
    )
    assert_raises(
        lambda: read(3),
        TypeError,
        "The `filenames` argument must contain `tf.string` elements. Got `tf.int32` elements.",
    )
    assert_raises(
        lambda: to_list(tf.data.FixedLengthRecordDataset(texts["b"], 3, 2, 1)),
        tf.errors.InvalidArgumentError,
        f'Excluding the header (2 bytes) and footer (1 bytes), input file "{texts["b"]}" has body '
        "length 1 bytes, which is not an exact multiple of the record length (3 bytes).",
    )
    assert_raises(
        lambda: tf.data.FixedLengthRecordDataset(texts["b"], 0),
        tf.errors.InvalidArgumentError,
        "record_bytes must be greater than zero. Received: 0.",
    )


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_compressed_files_are_streamed(tmp_path, kind):
    """Reads the lines of a file that decompresses to 64 MB with little memory."""
    line = b"x" * 999 + b"\n"
    path = tmp_path / "lines"
    path.write_bytes((gzip if kind == "GZIP" else zlib).compress(line * 64_000))

    tracemalloc.start()
    lines = tf.data.TextLineDataset(str(path), kind)
    records = tf.data.FixedLengthRecordDataset(str(path), 10**6, compression_type=kind)
    assert len(next(iter(lines)).numpy()) == 999
    assert len(next(iter(records)).numpy()) == 10**6
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 8 << 20


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
@pytest.mark.parametrize(
    "corrupt", [lambda d: d[:-5], lambda d: b"abc" + d, lambda d: d[:12] + b"a"]
)
def test_corrupt_compressed_files_raise(tmp_path, kind, corrupt):
    path = tmp_path / "lines"
    path.write_bytes(corrupt((gzip if kind == "GZIP" else zlib).compress(b"some\nlines\n" * 9)))

    for dataset in (
        tf.data.TextLineDataset(str(path), kind),
        tf.data.FixedLengthRecordDataset(str(path), 11, compression_type=kind),
    ):
        with pytest.raises(tf.errors.DataLossError, match=f"Cannot read {path}: "):
            list(dataset)


def test_directories_raise(tmp_path):
    for kind in ("GZIP", "ZLIB", ""):
        with pytest.raises(tf.errors.FailedPreconditionError, match="Is a directory"):
            list(tf.data.TextLineDataset(str(tmp_path), kind))
