"""CsvDataset and make_csv_dataset. Expected values are results of TensorFlow 2.21."""

from collections import OrderedDict

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.datasets import to_list
from tests.namespaces.helpers import assert_raises

E = tf.data.experimental
INT, FLOAT, STRING = tf.int32, tf.float32, tf.string
INVALID = tf.errors.InvalidArgumentError


@pytest.fixture
def csv_file(tmp_path):
    """Returns a function that writes a CSV file and returns its path."""

    def write(text, name="data.csv"):
        (tmp_path / name).write_bytes(text.encode())
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize(
    ("text", "defaults", "options", "records"),
    [
        ("1,2.5,a\n3,4,b\n", [INT, FLOAT, STRING], {}, [(1, 2.5, b"a"), (3, 4.0, b"b")]),
        ("1,a\n3,b", [INT, STRING], {}, [(1, b"a"), (3, b"b")]),
        ("1,a\r\n3,b\r\n", [INT, STRING], {}, [(1, b"a"), (3, b"b")]),
        ("1\r2\r", [INT], {}, [(1,), (2,)]),
        ("1\n\n3\n", [[7]], {}, [(1,), (7,), (3,)]),
        ("x,y\n1,a\n", [INT, STRING], {"header": True}, [(1, b"a")]),
        ('1,"a\nb"\n2,"c""d"\n', [INT, STRING], {}, [(1, b"a\nb"), (2, b'c"d')]),
        ("1,\n,b\n", [[5], ["z"]], {}, [(1, b"z"), (5, b"b")]),
        ('"",""\n', [[3], ["q"]], {}, [(3, b"q")]),
        ("NA,b\n", [[5], STRING], {"na_value": "NA"}, [(5, b"b")]),
        ("1,2,3\n4,5,6\n", [INT, INT], {"select_cols": [0, 2]}, [(1, 3), (4, 6)]),
        ("1,2,3\n4,5,6\n", [INT, INT], {"exclude_cols": [1]}, [(1, 3), (4, 6)]),
        ("1 2\n4 5\n", [INT, INT], {"field_delim": " "}, [(1, 2), (4, 5)]),
        ('1,"a\n', [INT, STRING], {"use_quote_delim": False}, [(1, b'"a')]),
        ("9999999999,1e3\n", [tf.int64, tf.float64], {}, [(9999999999, 1000.0)]),
        (" 1, a \n", [INT, STRING], {}, [(1, b" a ")]),
        ("", [INT], {}, []),
        ("x\n", [INT], {"header": True}, []),
    ],
)
def test_records(csv_file, text, defaults, options, records):
    assert to_list(E.CsvDataset(csv_file(text), defaults, **options)) == records


def test_specs_and_several_files(csv_file):
    paths = [csv_file("1,2,a\n", "1.csv"), csv_file("2,3,b\n", "2.csv")]
    data = E.CsvDataset(paths, [INT, [2.0], [""]])
    assert data.element_spec == (
        tf.TensorSpec([], INT),
        tf.TensorSpec([], FLOAT),
        tf.TensorSpec([], STRING),
    )
    assert to_list(data) == to_list(data) == [(1, 2.0, b"a"), (2, 3.0, b"b")]


QUOTES = "Expected quotes around the whole field, and two for each quote in it."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n", "record 0 of {} has 1 fields. Expected 2, one for each of `record_defaults`."),
        ("1,a,b\n", "record 0 of {} has 3 fields. Expected 2, one for each of `record_defaults`."),
        ("1,a\n\n", "record 1 of {} has 1 fields. Expected 2, one for each of `record_defaults`."),
        ("1,\n", "field 1 is required, but missing in record 0 of {}."),
        ("x,1\n", "field 0 of record 0 of {} is 'x'. Expected a value of int32."),
        ('1,"abc\n', "record 0 of {} has an unterminated quoted field. " + QUOTES),
        ('1,a"b\n', "record 0 of {} has a quote or line break in an unquoted field. " + QUOTES),
    ],
)
def test_malformed_records(csv_file, text, message):
    path = csv_file(text)
    data = E.CsvDataset(path, [INT, STRING])
    assert_raises(lambda: list(data), INVALID, "CsvDataset: " + message.format(path))


COLUMNS = "CsvDataset: `select_cols` must increase, with one column for each of `record_defaults`."


@pytest.mark.parametrize(
    ("defaults", "options", "message"),
    [
        ([], {}, "CsvDataset: expected at least one column in `record_defaults`."),
        (
            [INT, INT],
            {"select_cols": [2, 0]},
            COLUMNS + " Received: [2, 0] for 2 defaults.",
        ),
        ([INT, INT], {"select_cols": [2]}, COLUMNS + " Received: [2] for 2 defaults."),
        ([INT, INT], {"select_cols": [-1, 2]}, COLUMNS + " Received: [-1, 2] for 2 defaults."),
        (
            [INT, INT],
            {"select_cols": [0, 1], "exclude_cols": [1]},
            "CsvDataset: expected `select_cols` or `exclude_cols`. Received both.",
        ),
        (
            [INT],
            {"field_delim": "ab"},
            "CsvDataset: field_delim is 'ab'. Expected one ASCII character.",
        ),
    ],
)
def test_invalid_arguments(defaults, options, message):
    assert_raises(lambda: E.CsvDataset("any.csv", defaults, **options), INVALID, message)


def test_ignoring_errors_skips_records_that_cannot_be_parsed(csv_file):
    data = E.CsvDataset(csv_file("1\nx\n3\n"), [INT])
    assert to_list(data.ignore_errors()) == [(1,), (3,)]


# make_csv_dataset

TABLE = "a,b,c\n1,2.5,x\n2,3,y\n3,4,z\n"


def batches(path, **options):
    """Returns the batches of two rows as lists, in the order of the file."""
    options = {"shuffle": False, "num_epochs": 1} | options
    as_lists = lambda x: x.numpy().tolist()  # noqa: E731
    data = E.make_csv_dataset(path, 2, **options)
    return [tf.nest.map_structure(as_lists, element) for element in data]


def test_names_and_dtypes_are_inferred(csv_file):
    path = csv_file(TABLE)
    assert batches(path) == [
        {"a": [1, 2], "b": [2.5, 3.0], "c": [b"x", b"y"]},
        {"a": [3], "b": [4.0], "c": [b"z"]},
    ]
    spec = E.make_csv_dataset(path, 2).element_spec
    assert isinstance(spec, OrderedDict)
    assert list(spec) == ["a", "b", "c"]
    assert [s.dtype for s in spec.values()] == [INT, FLOAT, STRING]
    assert spec["a"].shape == [2]  # without num_epochs, there is always a next batch
    assert E.make_csv_dataset(path, 2, num_epochs=1).element_spec["a"].shape.as_list() == [None]


def test_inferred_dtypes_fit_all_records(csv_file):
    path = csv_file("a,b,c,d,e,f\n1,1,1.5,,1e39,3000000000\n,2.5,,,1,1\n")
    spec = E.make_csv_dataset(path, 2).element_spec
    inferred = [INT, FLOAT, FLOAT, STRING, tf.float64, tf.int64]
    assert [s.dtype for s in spec.values()] == inferred
    (batch,) = batches(path)
    assert batch == {
        "a": [1, 0],
        "b": [1.0, 2.5],
        "c": [1.5, 0.0],
        "d": [b"", b""],
        "e": [1e39, 1.0],
        "f": [3000000000, 1],
    }


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (
            TABLE,
            {"label_name": "c", "num_epochs": 1},
            ({"a": [1, 2], "b": [2.5, 3.0]}, [b"x", b"y"]),
        ),
        (TABLE, {"select_columns": ["c", "a"]}, {"a": [1, 2], "c": [b"x", b"y"]}),
        (TABLE, {"select_columns": [2, 0], "label_name": "a"}, ({"c": [b"x", b"y"]}, [1, 2])),
        (
            TABLE,
            {"select_columns": ["a", "c"], "column_defaults": [0.5, ""]},
            {"a": [1.0, 2.0], "c": [b"x", b"y"]},
        ),
        (
            TABLE,
            {"column_defaults": [tf.int64, [1.0], "q"]},
            {"a": [1, 2], "b": [2.5, 3.0], "c": [b"x", b"y"]},
        ),
        ("1,2\n3,4\n", {"column_names": ["p", "q"], "header": False}, {"p": [1, 3], "q": [2, 4]}),
        ("x,y\n3,4\n", {"column_names": ["p", "q"]}, {"p": [3], "q": [4]}),
        ('"a b","c,d"\n1,"x,y"\n', {}, {"a b": [1], "c,d": [b"x,y"]}),
        ("a\né\n", {}, {"a": ["é".encode()]}),
        ("a,b\nNA,1\n2,NA\n", {"na_value": "NA"}, {"a": [0, 2], "b": [1, 0]}),
        (
            "a\n1\nx\n4\n",
            {"num_rows_for_inference": 1, "ignore_errors": True},
            {"a": [1, 4]},
        ),
    ],
)
def test_options(csv_file, text, options, expected):
    assert batches(csv_file(text), **options)[0] == expected


def test_repetition_comes_before_batches(csv_file):
    columns = [batch["a"] for batch in batches(csv_file("a\n1\n2\n3\n"), num_epochs=2)]
    assert columns == [[1, 2], [3, 1], [2, 3]]


def test_shuffling_and_parallel_reads(csv_file, tmp_path):
    csv_file("a\n1\n2\n3\n", "1.csv"), csv_file("a\n4\n5\n6\n", "2.csv")
    for options in ({}, {"num_parallel_reads": 2}):
        data = E.make_csv_dataset(
            str(tmp_path / "*.csv"), 6, num_epochs=1, shuffle_seed=1, **options
        )
        (batch,) = data
        assert sorted(batch["a"].numpy()) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"header": False},
            "Expected `column_names` or `header` arguments. Neither is provided.",
        ),
        (
            {"column_names": ["p", "p", "q"]},
            "Either `column_names` argument or CSV header row contains duplicate column names: "
            "{'p'}.",
        ),
        (
            {"label_name": "z"},
            "`label_name` provided must be one of the columns: ['a', 'b', 'c']. Received: z.",
        ),
        (
            {"select_columns": ["z"]},
            "Column 'z' in `select_columns` is not one of the columns ['a', 'b', 'c'].",
        ),
        (
            {"select_columns": [9]},
            "Column index 9 in `select_columns` is out of range. Expected an index from 0 to 2.",
        ),
        (
            {"select_columns": ["a", 0]},
            "`select_columns` contains duplicate columns. Received: ['a', 0].",
        ),
    ],
)
def test_invalid_columns(csv_file, options, message):
    path = csv_file(TABLE)
    assert_raises(lambda: E.make_csv_dataset(path, 2, **options), ValueError, message)


def test_invalid_files(csv_file):
    make = E.make_csv_dataset
    assert_raises(lambda: make([], 2), ValueError, "Argument `file_pattern` should not be empty.")
    message = "No files match `file_pattern` /nowhere/*.csv."
    assert_raises(lambda: make("/nowhere/*.csv", 2), ValueError, message)
    first, second = csv_file("a,b\n1,2\n", "1.csv"), csv_file("a,c\n1,2\n", "2.csv")
    assert_raises(
        lambda: make([first, second], 2),
        ValueError,
        "All input CSV files should have the same column names in the header row. File "
        f"{second} has the columns ['a', 'c']. Expected ['a', 'b'], as in {first}.",
    )
    short = csv_file("a,b\n1,2\n1\n")
    message = "Problem inferring types: CSV row 3 has 1 number of fields. Expected: 2."
    assert_raises(lambda: make(short, 2), ValueError, message)


def test_records_train_a_model_in_batches_of_numbers(csv_file):
    """The columns stack to a matrix, as in TensorFlow's tutorial on structured data."""
    path = csv_file("x,y,label\n1,2.5,0\n2,3.5,1\n")
    data = E.make_csv_dataset(path, 2, label_name="label", num_epochs=1, shuffle=False)
    packed = data.map(
        lambda features, label: (
            tf.stack([tf.cast(x, tf.float32) for x in features.values()], axis=-1),
            label,
        )
    )
    ((x, label),) = packed
    np.testing.assert_array_equal(x, [[1.0, 2.5], [2.0, 3.5]])
    np.testing.assert_array_equal(label, [0, 1])


def test_debug_mode_does_nothing():
    E.enable_debug_mode()
    assert to_list(tf.data.Dataset.range(2)) == [0, 1]
