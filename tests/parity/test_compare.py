"""Tests that the comparison finds every kind of difference."""

import json
import subprocess

import numpy as np
import pytest

import retrograde as tf
from parity import __main__ as command
from parity import recorded, report
from parity.calls import Call, all_calls, namespaces
from parity.compare import (
    BEYOND,
    DIFFERENT,
    LISTED,
    NOTHING,
    SAME,
    STAGES,
    Finding,
    compare,
    is_random,
)
from parity.differences import Difference
from parity.evaluation import Sources, evaluate, from_json, leaves, to_json
from parity.report import Report, entry_of


def leaf(values, dtype="float64"):
    return to_json(tf.constant(values, dtype))


def make_result(value=None, gradient=None, second=None, sources=(), **more):
    """Returns a result with some stages."""
    stages = {"value": value, "gradient": gradient, "second": second}
    recorded_stages = {stage: parts for stage, parts in stages.items() if parts is not None}
    about = {"function": "tf.f", "expression": "f()", "precision": "float64"}
    return about | recorded_stages | {"sources": list(sources)} | more


ONE = make_result([leaf([1.0, 2.0])], [leaf([3.0])], [leaf([4.0])])


def change(**stages):
    return ONE | stages


def kinds(theirs, ours):
    return [finding.kind for finding in compare(theirs, ours).values()]


def test_equal_results_are_the_same():
    assert kinds(ONE, json.loads(json.dumps(ONE))) == [SAME] * 3


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "wrong, why",
    [
        (leaf([1.001, 2.0]), "np.float64(1.001) at [0], expected np.float64({})"),
        (leaf([np.nan, 2.0]), "np.float64(nan) at [0], expected np.float64({})"),
        (leaf([1.0, 2.0], "float32"), "dtype float32, expected float64"),
        (leaf([[1.0, 2.0]]), "shape [1, 2], expected [2]"),
        (None, "None, expected float64 [{}, 2.0]"),
        (3, "3, expected float64 [{}, 2.0]"),
    ],
    ids=["number", "nan", "dtype", "shape", "none", "python"],
)
def test_differences_are_described(stage, wrong, why):
    theirs = change(**{stage: [leaf([5.0, 2.0])]})

    findings = compare(theirs, change(**{stage: [wrong]}))

    assert findings[stage] == Finding(DIFFERENT, why.format(5.0))
    assert [f.kind for s, f in findings.items() if s != stage] == [SAME, SAME]


def test_a_number_instead_of_none_is_a_difference():
    findings = compare(change(gradient=[None]), change(gradient=[leaf([0.0])]))

    assert findings["gradient"] == Finding(DIFFERENT, "float64 [0.0], expected None")


def test_the_differing_result_is_named():
    several = [leaf([1.0]), leaf([2.0])]

    findings = compare(change(value=several), change(value=several[::-1]))

    assert findings["value"].why == "0: np.float64(2.0) at [0], expected np.float64(1.0)"


def test_missing_results_are_a_difference():
    assert compare(ONE, change(value=[]))["value"].why == "0 results, expected 1"


def test_different_sources_are_a_difference():
    theirs, ours = (make_result([leaf([1.0])], sources=[leaf([x])]) for x in (0.3, 0.4))

    assert compare(theirs, ours)["value"].kind == DIFFERENT


def test_an_error_is_a_difference():
    ours = make_result(error=["value", "ValueError", "no\nmore"])

    assert compare(ONE, ours)["value"] == Finding(DIFFERENT, "raises ValueError: no")
    assert kinds(ONE, ours) == [DIFFERENT] * 3


def test_a_missing_second_derivative_is_a_difference():
    ours = make_result(ONE["value"], ONE["gradient"])

    assert compare(ONE, ours)["second"] == Finding(
        DIFFERENT, f"nothing, expected {ONE['second']}"[:140]
    )
    assert compare(change(second=[None]), ours)["second"].kind == SAME


def test_a_result_that_tensorflow_lacks_is_beyond():
    theirs = make_result(ONE["value"], error=["gradient", "LookupError", "no entry"])

    assert kinds(theirs, ONE) == [SAME, BEYOND, NOTHING]
    assert kinds(theirs, change(gradient=[None])) == [SAME, NOTHING, NOTHING]


def test_exception_classes_are_compared():
    theirs, equal, other = (make_result(error=["value", kind, "no"]) for kind in ("A", "A", "B"))

    assert kinds(theirs, equal) == [SAME, NOTHING, NOTHING]
    assert compare(theirs, other)["value"] == Finding(DIFFERENT, "raises B, expected A: no")
    assert compare(theirs, ONE)["value"].kind == BEYOND
    assert kinds(make_result(error=["value", "crash", ""]), other) == [NOTHING] * 3


@pytest.mark.parametrize("value", [1e-300, 1.0, 1e300])
def test_tolerances_are_relative_to_the_largest_number(value):
    theirs = make_result([leaf([value, value * 1e-9])])

    assert kinds(theirs, make_result([leaf([value, value * 2e-9])]))[0] == SAME
    assert kinds(theirs, make_result([leaf([value * 1.001 + 1e-9, 0.0])]))[0] == DIFFERENT


def test_the_tolerance_in_single_precision_includes_rounding_errors():
    exact = make_result([leaf([1.1, 2.0])])
    near, far = (make_result([leaf([x, 2.0], "float32")], precision="float32") for x in (1.1, 1.11))
    wrong = make_result([leaf([1.12, 2.0], "float32")], precision="float32")

    assert compare(near, wrong, exact)["value"].kind == DIFFERENT
    assert compare(far, wrong, exact)["value"].kind == SAME
    assert compare(near, make_result([leaf([1.1001, 2.0], "float32")]))["value"].kind == SAME


def test_inf_and_nan_must_be_at_the_same_positions():
    theirs = make_result([leaf([np.inf, np.nan, 1.0])])

    assert kinds(theirs, make_result([leaf([np.inf, np.nan, 1.0])]))[0] == SAME
    assert kinds(theirs, make_result([leaf([-np.inf, np.nan, 1.0])]))[0] == DIFFERENT
    assert kinds(theirs, make_result([leaf([np.inf, 0.0, 1.0])]))[0] == DIFFERENT


def test_integers_and_strings_must_be_equal():
    assert (
        kinds(make_result([leaf([1], "int32")]), make_result([leaf([2], "int32")]))[0] == DIFFERENT
    )
    strings = [make_result([to_json(tf.constant(["a", b]))]) for b in "bc"]
    assert kinds(strings[0], strings[1])[0] == DIFFERENT
    assert kinds(strings[0], strings[0])[0] == SAME


def test_random_numbers_are_compared_in_shape_and_dtype():
    theirs, ours, other = (
        make_result([leaf(x)], function="tf.random.normal") for x in ([1.0], [2.0], [1.0, 2.0])
    )

    assert kinds(theirs, ours)[0] == SAME
    assert kinds(theirs, other)[0] == DIFFERENT
    assert is_random("tf.nn.dropout")
    assert not is_random("tf.math.sin")


# Results


def test_a_result_has_the_gradients_for_random_cotangents():
    result = evaluate(tf, Call("tf.square", "f(S(3))", "float64"), seed=5)

    (x,), (y,), (g,), (h,) = (
        map(from_json, result[key]) for key in ("sources", "value", "gradient", "second")
    )
    weights = g / (2 * x)
    assert np.ptp(weights) > 0.01
    np.testing.assert_allclose(y, x**2)
    np.testing.assert_allclose(h, 8 * weights**2 * x)  # gradient of the sum of (2 w x) squared


def test_sources_depend_on_the_seed_and_not_on_the_precision():
    calls = [Call("tf.sin", "f(S(3))", precision) for precision in ("float32", "float64")]
    narrow, wide = (from_json(evaluate(tf, call, 1)["sources"][0]) for call in calls)

    assert narrow.dtype == np.float32
    assert (narrow == wide).all()
    assert (wide != from_json(evaluate(tf, calls[1], 2)["sources"][0])).all()


@pytest.mark.parametrize(
    "expression, stage", [("f(S(2), no=1)", "value"), ("f(S(2))", "gradient"), ("S(2)", None)]
)
def test_errors_are_recorded_with_their_stage(expression, stage, monkeypatch):
    @tf.custom_gradient
    def broken(x):
        def back(_):
            raise ValueError("broken")

        return x * 1.0, back

    monkeypatch.setattr(tf, "broken", broken, raising=False)
    result = evaluate(tf, Call("tf.broken", expression, "float64"), 1)

    assert result.get("error", [None])[0] == stage


def test_missing_functions_are_recorded():
    assert evaluate(tf, Call("tf.no_such", "f(S(3))", "float64"), 1)["missing"]


def test_kinds_of_sources():
    make = Sources(tf, np.random.default_rng(1), "float64")

    np.linalg.cholesky(make(4, 4, kind="spd"))
    assert np.linalg.cond(make(4, 4, kind="sq").numpy()) < 20
    assert (np.triu(make(3, 3, kind="tri"), 1) == 0).all()
    assert make(2, kind="c").dtype == tf.complex128
    assert len(make.created) == 5


def test_results_are_flattened():
    sparse = tf.SparseTensor([[0, 1]], [2.0], [1, 3])

    parts = leaves(tf, {"b": (1.0, None), "a": [tf.TensorShape([2, 3]), sparse]})

    assert parts[0] == [2, 3]
    assert [p.numpy().tolist() for p in parts[1:4]] == [[[0, 1]], [2.0], [1, 3]]
    assert parts[4:] == [1.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "int8", "bool"])
def test_arrays_are_stored_exactly(dtype):
    x = tf.cast([[0.0, 1.0, 3.0]], dtype)
    data = json.loads(json.dumps(to_json(x)))

    assert data["dtype"] == dtype
    assert from_json(data).tolist() == x.numpy().astype(from_json(data).dtype).tolist()


# The report


def verdict(theirs, ours, stage="value"):
    return entry_of("tf.f", theirs, ours).verdict(stage)


def test_the_worst_call_determines_the_verdict():
    bad = change(value=[leaf([1.0, 3.0])])
    raised = make_result(ONE["value"], error=["gradient", "LookupError", "no entry"])

    assert verdict([ONE, ONE], [ONE, ONE]) == SAME
    assert verdict([ONE, ONE], [ONE, bad]) == DIFFERENT
    assert verdict([ONE, raised], [ONE, ONE], "gradient") == SAME
    assert verdict([raised], [ONE], "gradient") == BEYOND


def test_missing_functions_are_not_compared():
    entry = entry_of("tf.f", [ONE], [make_result(missing=True)])

    assert entry.missing
    assert not entry.findings


def test_a_call_for_single_precision_only_is_compared_in_it():
    narrow = make_result([leaf([1.0], "float32")], precision="float32")
    refused = make_result(error=["value", "TypeError", "float64"])

    assert verdict([narrow, refused], [narrow, make_result([leaf([9.0])])]) == SAME


@pytest.fixture
def results():
    """Returns results for all functions: one is missing, one differs, the others agree."""

    def every(**changes):
        return [
            ONE | call._asdict() | changes.get(call.function.replace(".", "_"), {})
            for call in all_calls()
        ]

    wrong = {"value": [leaf([1.0, 2.5])]}
    return every(), every(tf_abs=wrong, tf_math_sin={"missing": True})


def test_the_report_counts(results, monkeypatch):
    monkeypatch.setattr(report, "DIFFERENCES", {})
    result = Report(*results)
    rows = {row[0]: row[1:] for row in result.rows()}

    functions = namespaces()["tf"]
    compared = sum(bool(calls) for calls in functions.values())
    expected = [len(functions), 0, len(functions) - compared, f"{compared - 1} of {compared}"]
    assert rows["tf"][:4] == list(map(str, expected))
    assert rows["tf"][6:] == ["0", "1"]
    assert rows["tf.math"][1] == "1"
    wrong = "np.float64(2.5) at [1], expected np.float64(2.0)"
    assert result.with_kind(DIFFERENT) == [("tf.abs", "value", wrong)]
    assert f"tf.abs, value: {wrong}" in result.text()


def test_the_page_links_differences(results, monkeypatch):
    listed = {("tf.abs", "value"): Difference("NaN-safe zero cotangents", "")}
    monkeypatch.setattr(report, "DIFFERENCES", listed)
    result = Report(*results)
    text = report.page(
        result, {"TensorFlow": "2.21", "date": "today", "seed": "1"}, ["| programs |"]
    )

    assert result.with_kind(DIFFERENT) == []
    assert "- `tf.abs`, value: [NaN-safe zero cotangents](differences.md#derivatives)" in text
    assert "## Missing\n\n`tf.math.sin`\n" in text
    assert "## Unexplained\n\nNone.\n" in text


def test_a_listed_difference_applies_to_matching_calls(monkeypatch):
    monkeypatch.setattr(report, "DIFFERENCES", {("tf.f", "value"): Difference("words", "64$")})
    wrong = change(value=[leaf([1.0, 2.5])])
    narrow = {"precision": "float32"}

    assert entry_of("tf.f", [ONE], [wrong]).findings["value"] == [Finding(LISTED, "words")]
    assert verdict([ONE], [wrong]) == LISTED
    assert verdict([ONE | narrow, ONE], [wrong | narrow, wrong]) == DIFFERENT


# Processes


def test_a_call_that_crashes_the_process_is_recorded(monkeypatch, tmp_path):
    calls = all_calls()[:5]
    starts = []

    def dies_of_the_third(command, **_):
        *_, file, start = command
        starts.append(int(start))
        with open(file, "a") as lines:
            for call in calls[int(start) :]:
                if call is calls[2]:
                    return
                lines.write(json.dumps(call._asdict()) + "\n")

    monkeypatch.setattr(command, "all_calls", lambda: calls)
    monkeypatch.setattr(subprocess, "run", dies_of_the_third)

    results = command.results_of("tensorflow", "python", 1, tmp_path)

    assert starts == [0, 3]
    assert [a["function"] for a in results] == [call.function for call in calls]
    assert results[2]["error"] == ["value", "crash", "the process ended"]


def test_a_library_that_cannot_be_started_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: None)

    with pytest.raises(SystemExit, match="tensorflow cannot be started"):
        command.results_of("tensorflow", "python", 1, tmp_path)


def test_long_results_are_not_recorded(monkeypatch, tmp_path):
    monkeypatch.setattr(recorded, "FILE", tmp_path / "results.gz")
    long = {**ONE, "function": "tf.g", "value": [leaf(np.zeros(9000))]}

    wide = {key: value for key, value in ONE.items() if key != "sources"}

    recorded.write([ONE | {"precision": "float32"}, ONE, long], seed=4)

    assert recorded.read() == (4, {"tf.f": [ONE | {"precision": "float32"}, wide]})
