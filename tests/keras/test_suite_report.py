"""The report on Keras's own tests, and the excluded tests."""

import json
import tomllib
from pathlib import Path

from keras_suite import report
from keras_suite.report import Results

EXCLUDED = Path(report.__file__).with_name("excluded.toml")


def results(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Results.read(path)


def test_last_result_of_a_test_wins(tmp_path):
    test_results = results(
        tmp_path / "a.jsonl",
        ["ops/a_test.py::A::one", "passed", ""],
        ["ops/a_test.py::A::one", "failed", "in its teardown"],
        ["layers/b_test.py::B::two", "skipped", "sparse"],
    )

    assert test_results.passed() == set()
    assert test_results.counts() == {"layers": {"skipped": 1}, "ops": {"failed": 1}}
    assert test_results.table().splitlines()[-1].split() == ["all", "0", "1", "0", "1"]


def test_newer_run_replaces_results_per_file(tmp_path):
    old = results(
        tmp_path / "a.jsonl", ["a_test.py::x", "failed", ""], ["b_test.py::y", "passed", ""]
    )
    new = results(tmp_path / "b.jsonl", ["a_test.py::z", "passed", ""])
    old.merge(new).write()

    assert Results.read(old.path).passed() == {"a_test.py::z", "b_test.py::y"}
    assert len(Results.read(old.path).outcomes) == 2


def test_page_compares_with_pytorch(tmp_path):
    results(
        tmp_path / "retrograde.jsonl",
        ["ops/a_test.py::one", "passed", ""],
        ["ops/a_test.py::two", "failed", ""],
    )
    results(
        tmp_path / "torch.jsonl",
        ["ops/a_test.py::one", "passed", ""],
        ["ops/a_test.py::two", "passed", ""],
        ["ops/a_test.py::three", "skipped", ""],
    )
    text = report.page(f"before\n{report.START}\nstale\n{report.END}\nafter", tmp_path)

    assert "| ops | 1 | 0 | 0 | 1 | 2 | 1 (50.0%) |" in text
    assert text.startswith("before\n") and text.endswith("\nafter") and "stale" not in text


def test_every_excluded_test_has_a_reason():
    groups = tomllib.loads(EXCLUDED.read_text())["excluded"]
    names = [name for group in groups for name in group["tests"]]

    assert all(group["reason"] and group["tests"] for group in groups)
    assert len(names) == len(set(names))
