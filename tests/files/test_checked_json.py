"""JSON from files that may be damaged or hostile."""

import json
import sys
import tracemalloc

import pytest

import retrograde as tf
from retrograde.files import checked_json
from retrograde.files.checked_json import MOST_LEVELS, parse_json, read_json


def nested(levels):
    return "[" * levels + "]" * levels


def refusal(text):
    with pytest.raises(tf.errors.DataLossError) as caught:
        parse_json(text, "a.json")
    return str(caught.value)


def test_plain_data_are_returned():
    data = {"a": [1, 2.5, "[[{{", None, True], "b": {'"\\"': "\\", "é": {}}}

    assert parse_json(json.dumps(data), "a") == data
    assert parse_json(b"\xef\xbb\xbf" + json.dumps(data, ensure_ascii=False).encode(), "a") == data


def test_nesting_is_bounded_before_parsing():
    message = "Cannot read a.json: it nests more than 200 levels of lists and dicts."

    assert parse_json(nested(MOST_LEVELS), "a.json")
    assert refusal(nested(MOST_LEVELS + 1)) == message
    assert refusal('{"a":' * 100_000) == message
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)  # the parser alone would exhaust the stack of the process
    try:
        assert refusal(nested(1_000_000)) == message
    finally:
        sys.setrecursionlimit(before)


def test_brackets_in_strings_do_not_count():
    assert len(parse_json(json.dumps(["[" * 1000, '"]\\' * 1000] * 300), "a.json")) == 600
    assert "nests more" in refusal('["]",' * 300 + "]" * 300)


@pytest.mark.parametrize(
    "text", ["", "[", '"', '"\\', "\ud800", "{]", "nul", "1" * 5000, b"\xff", b"\0", '["\n"]']
)
def test_texts_that_are_not_json_are_refused(text):
    assert refusal(text).startswith("Cannot read a.json: it is not JSON (")


def test_keys_must_differ():
    message = "Cannot read a.json: the key 'a' appears twice in one dict."

    assert refusal('{"b": {"c": 0, "a": 1, "a": 2}}') == message


def test_size_is_bounded_before_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(checked_json, "MOST_BYTES", 100)
    file = tmp_path / "a.json"
    file.write_text(" " * 98 + "[]")

    assert read_json(file) == []
    file.write_text(" " * 99 + "[]")
    with pytest.raises(tf.errors.DataLossError) as caught:
        read_json(file, "a.json as a model")
    assert str(caught.value) == (
        "Cannot read a.json as a model: it has more than 100 bytes of JSON."
    )


def test_reading_takes_no_more_memory_than_the_file_needs(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    tracemalloc.start()
    read_json(tmp_path / "a.json")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 << 20


def test_files_that_do_not_exist_are_errors_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "a.json")


def saved_model(folder):
    tf.saved_model.save(tf.Module(), folder)
    return "saved_model.json", lambda: tf.saved_model.load(folder)


def saved_dataset(folder):
    tf.data.Dataset.range(3).save(str(folder))
    return "dataset.json", lambda: tf.data.Dataset.load(str(folder))


@pytest.mark.parametrize("save", [saved_model, saved_dataset])
def test_deep_nesting_is_lost_data_in_every_file(tmp_path, save):
    name, load = save(tmp_path)
    load()
    (tmp_path / name).write_text(nested(100_000))

    with pytest.raises(tf.errors.DataLossError):
        load()


def drawn(start):
    state = {"key": [0, 1], "start": start, "numbers": [], "following": 0}
    return json.dumps({"taken": 0, "drawn": [state]}).encode()


@pytest.mark.parametrize(
    "state",
    [
        b"not JSON",
        nested(100_000).encode(),
        b"[]",
        b'{"taken": -1, "drawn": []}',
        b'{"taken": "1", "drawn": []}',
        b'{"taken": 0, "drawn": [{"key": [0, 1]}]}',
        drawn([0, -1]),
        drawn([0, "x"]),
        drawn([0, 2**64]),
    ],
)
def test_states_of_iterators_are_checked(state):
    iterator = iter(tf.data.Dataset.range(5).shuffle(3, seed=1))

    with pytest.raises(tf.errors.DataLossError, match="Cannot read the state of an iterator in a"):
        iterator._restoring(state)
