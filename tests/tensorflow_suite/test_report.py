"""The report on TensorFlow's own tests, and the excluded tests."""

import json

import pytest

from tensorflow_suite import report
from tensorflow_suite.__main__ import find_files, parse_arguments

FILE = "ops/a_test.py"


@pytest.fixture
def write(tmp_path):
    def write_results(library, results):
        path = report.results_file(tmp_path, library, FILE)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(results))
        return tmp_path

    return write_results


def failed(message="wrong", error="AssertionError"):
    return ["failed", error, message, "ops/a_test.py:7 < x.py:1"]


PASSED = ["passed", "", "", ""]


def test_failure_counts_only_if_the_test_passes_on_tensorflow(write):
    write("retrograde", {"A.one": PASSED, "A.two": failed(), "A.three": failed()})
    folder = write("tensorflow", {"A.two": PASSED, "A.three": failed()})

    comparison = report.compare(folder, FILE, {})

    assert list(comparison.failures) == ["A.two"]
    assert comparison.counts == {"passed": 1, "failed": 1, "inapplicable": 1, "applicable": 2}


def test_exclusion_covers_tests_whose_names_start_with_it(write):
    write("retrograde", {"A.two1": failed(), "A.two2": failed(), "B.two": failed()})
    folder = write("tensorflow", dict.fromkeys(("A.two1", "A.two2", "B.two"), PASSED))

    comparison = report.compare(folder, FILE, {f"{FILE}::A.two": "graph mode"})

    assert comparison.counts["excluded"] == 2
    assert list(comparison.failures) == ["B.two"]


def test_missing_names_and_internal_attributes_are_not_failures(write):
    internal = failed("'Tensor' object has no attribute '_handle'", "AttributeError")
    missing = ["missing", "MissingPublic", "tf.queue.FIFOQueue", ""]
    write("retrograde", {"A.one": internal, "A.two": missing})
    folder = write("tensorflow", {"A.one": PASSED, "A.two": PASSED})

    counts = report.compare(folder, FILE, {}).counts

    assert (counts["inapplicable"], counts["missing"], counts["applicable"]) == (1, 1, 0)
    results = report.read_results(folder, "retrograde", FILE)
    assert report.unfinished(results) == ["A.two"]


def test_table_has_shares_by_directory(write):
    write("retrograde", {"A.one": PASSED, "A.two": PASSED, "A.three": failed(), "A.four": PASSED})
    folder = write("tensorflow", {"A.three": PASSED})

    comparisons = [report.compare(folder, FILE, {})]

    assert report.table(comparisons).splitlines()[-2:] == [
        "| ops | 4 | 3 | 0 | 1 | 0 | 0 | 75.0% |",
        "| all | 4 | 3 | 0 | 1 | 0 | 0 | 75.0% |",
    ]
    assert report.failures(comparisons) == (
        "ops/a_test.py::A.three: AssertionError: wrong (ops/a_test.py:7)"
    )


def test_page_keeps_the_text_around_the_section(write):
    folder = write("retrograde", {"A.one": PASSED})
    comparisons = [report.compare(folder, FILE, {})]

    text = report.page(f"before\n{report.START}\nold\n{report.END}\nafter\n", comparisons, "2.21")

    assert "\nold\n" not in text
    assert "1 of 1 test files were run,\nwith TensorFlow 2.21." in text
    assert text.startswith("before") and text.endswith("after\n")
    assert report.section(text).startswith(f"\n{report.START}\n\n## TensorFlow's own tests")
    assert report.section("a page without it") == ""


def test_files_are_found_without_services_and_benchmarks(tmp_path):
    for name in ("framework/a_test.py", "data/kernel_tests/service/b_test.py", "eager/c.py"):
        path = tmp_path / "tensorflow/python" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    options = parse_arguments([str(tmp_path)])

    assert find_files(options.tests, options.parts) == ["framework/a_test.py"]


def test_folder_without_tensorflow_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        parse_arguments([str(tmp_path)])
    assert "has no folder tensorflow/python with TensorFlow's tests" in capsys.readouterr().err


def test_each_exclusion_has_a_reason():
    exclusions = report.read_exclusions()

    assert all(reason for reason in exclusions.values())
    assert all("_test.py" in name for name in exclusions)
