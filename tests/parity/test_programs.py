"""Tests that the comparison of programs finds every kind of difference."""

import json
import sys

import pytest

from parity import programs
from parity.programs import Outcome, Programs, compare_results

NAN, INFINITY = float("nan"), float("inf")


def mismatches(theirs, ours, tolerance=1e-3):
    return compare_results({"v": theirs}, {"v": ours}, tolerance).mismatches


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (1.0, 1.0005),
        (1e-9, 1e-6),
        (NAN, NAN),
        (INFINITY, INFINITY),
        ([1.0, 1000.0], [1.5, 1000.0]),
        ({"a": [None, True, 3]}, {"a": [None, True, 3]}),
        ("text", "text"),
    ],
)
def test_values_within_tolerance(theirs, ours):
    assert mismatches(theirs, ours) == []


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        (1.0, 1.002, ["v: 1.002, TensorFlow 1"]),
        (1.0, NAN, ["v: nan, TensorFlow 1"]),
        (NAN, 1.0, ["v: 1, TensorFlow nan"]),
        (INFINITY, -INFINITY, ["v: -inf, TensorFlow inf"]),
        (3, 4, ["v: 4, TensorFlow 3"]),
        (None, 0.0, ["v: 0, TensorFlow None"]),
        ("a", "b", ["v: b, TensorFlow a"]),
        (True, False, ["v: False, TensorFlow True"]),
        ([1.0, 2.0], [1.0], ["v[1]: absent, TensorFlow 2"]),
        ([1.0], [1.0, 2.0], ["v[1]: 2, TensorFlow absent"]),
        ({"a": [1.0]}, {"a": [9.0]}, ["v['a'][0]: 9, TensorFlow 1"]),
    ],
)
def test_differences_are_reported(theirs, ours, expected):
    assert mismatches(theirs, ours) == expected


def test_failures_and_missing_values_are_reported():
    assert compare_results("no scipy", {}, 0.1).mismatches == ["fails: no scipy"]
    assert compare_results({}, "no keras", 0.1).mismatches == ["fails: no keras"]
    assert compare_results({"a": 1.0}, {}, 0.1).mismatches == ["different values: ['a']"]


def test_the_difference_is_relative_to_the_largest_number_in_a_value():
    outcome = compare_results({"a": [1.0, 200.0], "b": 1}, {"a": [1.0, 200.02], "b": 1}, 1e-3)

    assert outcome.mismatches == []
    assert outcome.largest == pytest.approx(1e-4)
    assert outcome.compared == "2 values"
    assert compare_results({"loss": 1.0}, {"loss": 1.0}, 1e-3) == Outcome("loss", 0.0, [])


def test_a_table_of_programs():
    outcomes = {
        "gan": Outcome("loss", 0.0, []),
        "vae": Outcome("loss", 2.4e-6, []),
        "ode": Outcome("loss", 0.5, ["loss: 1, TensorFlow 2"]),
    }

    assert programs.table("example", outcomes).splitlines() == [
        "| example | compared | largest difference |",
        "| --- | --- | --- |",
        "| `gan` | loss | none |",
        "| `vae` | loss | 2e-06 |",
        "| `ode` | loss | loss: 1, TensorFlow 2 |",
    ]


def test_programs_are_run_compared_and_recorded(tmp_path):
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "good.py").write_text(
        "# program\nimport pathlib, sys\n"
        "pathlib.Path(sys.argv[sys.argv.index('--numbers') + 1]).write_text('{\"a\": [0.1]}')\n"
    )
    (tmp_path / "bad.py").write_text("# program\nraise ValueError('no good')\n")
    kind = Programs("test", tmp_path, tmp_path / "results.json", "# program", (), 1e-3)
    progress = []

    outcomes, results = programs.compare(
        kind, sys.executable, sys.executable, tmp_path, progress.append
    )
    kind.record(results)

    assert progress == ["test bad", "test good"]
    assert outcomes["good"] == Outcome("1 value", 0.0, [])
    assert outcomes["bad"].mismatches == ["fails: ValueError: no good"] * 2
    assert kind.recorded_results() == results
    assert json.loads(kind.results_file.read_text())["good"] == {"a": [0.1]}
