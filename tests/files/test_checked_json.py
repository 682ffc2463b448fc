"""JSON of corrupt or hostile files."""

import json
import sys
import tracemalloc

import pytest

import retrograde as tf
from retrograde.files import checked_json
from retrograde.files.checked_json import MAX_LEVELS, parse_json, read_json


def nested_list(levels):
    return "[" * levels + "]" * levels


def error_message(text):
    with pytest.raises(tf.errors.DataLossError) as caught:
        parse_json(text, "a.json")
    return str(caught.value)


def test_parse_json():
    data = {"a": [1, 2.5, "[[{{", None, True], "b": {'"\\"': "\\", "é": {}}}

    assert parse_json(json.dumps(data), "a") == data
    assert parse_json(b"\xef\xbb\xbf" + json.dumps(data, ensure_ascii=False).encode(), "a") == data


def test_nesting_is_limited_before_parsing():
    message = "Cannot read a.json: it nests more than 200 levels of lists and dicts."

    assert parse_json(nested_list(MAX_LEVELS), "a.json")
    assert error_message(nested_list(MAX_LEVELS + 1)) == message
    assert error_message('{"a":' * 100_000) == message
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)  # without the check, the parser would overflow the stack
    try:
        assert error_message(nested_list(1_000_000)) == message
    finally:
        sys.setrecursionlimit(before)


def test_brackets_in_strings_do_not_count():
    assert len(parse_json(json.dumps(["[" * 1000, '"]\\' * 1000] * 300), "a.json")) == 600
    assert "nests more" in error_message('["]",' * 300 + "]" * 300)


@pytest.mark.parametrize(
    "text", ["", "[", '"', '"\\', "\ud800", "{]", "nul", "1" * 5000, b"\xff", b"\0", '["\n"]']
)
def test_invalid_json_raises(text):
    assert error_message(text).startswith("Cannot read a.json: it is not JSON (")


def test_duplicate_keys_raise():
    message = "Cannot read a.json: the key 'a' appears twice in one dict."

    assert error_message('{"b": {"c": 0, "a": 1, "a": 2}}') == message


def test_size_is_limited_before_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(checked_json, "MAX_BYTES", 100)
    file = tmp_path / "a.json"
    file.write_text(" " * 98 + "[]")

    assert read_json(file) == []
    file.write_text(" " * 99 + "[]")
    with pytest.raises(tf.errors.DataLossError) as caught:
        read_json(file, "a.json as a model")
    assert str(caught.value) == (
        "Cannot read a.json as a model: it has more than 100 bytes of JSON."
    )


def test_reading_does_not_allocate_more_than_the_file_size(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    tracemalloc.start()
    read_json(tmp_path / "a.json")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 << 20


def test_missing_files_raise_os_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "a.json")


def save_model(directory):
    tf.saved_model.save(tf.Module(), directory)
    return "saved_model.json", lambda: tf.saved_model.load(directory)


def save_dataset(directory):
    tf.data.Dataset.range(3).save(str(directory))
    return "dataset.json", lambda: tf.data.Dataset.load(str(directory))


@pytest.mark.parametrize("save", [save_model, save_dataset])
def test_deep_nesting_raises_in_all_formats(tmp_path, save):
    name, load = save(tmp_path)
    load()
    (tmp_path / name).write_text(nested_list(100_000))

    with pytest.raises(tf.errors.DataLossError):
        load()


def iterator_state(start):
    state = {"key": [0, 1], "start": start, "numbers": [], "next_number": 0}
    return json.dumps({"taken": 0, "iterations": [state]}).encode()


@pytest.mark.parametrize(
    "state",
    [
        b"not JSON",
        nested_list(100_000).encode(),
        b"[]",
        b'{"taken": -1, "iterations": []}',
        b'{"taken": "1", "iterations": []}',
        b'{"taken": 0, "iterations": [{"key": [0, 1]}]}',
        iterator_state([0, -1]),
        iterator_state([0, "x"]),
        iterator_state([0, 2**64]),
    ],
)
def test_iterator_states_are_validated(state):
    iterator = iter(tf.data.Dataset.range(5).shuffle(3, seed=1))

    with pytest.raises(tf.errors.DataLossError, match="Cannot read the state of an iterator in a"):
        iterator._restore_function(state)
