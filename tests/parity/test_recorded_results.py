"""Compares sample calls to every function with TensorFlow's recorded results.

The inputs are the same as in the recording. `parity/differences.py` lists intentional differences,
and `missing_functions.py` lists missing functions. The tests fail if an entry is not needed.
"""

import warnings

import pytest

import retrograde
from parity import recorded
from parity.calls import Call, namespaces
from parity.compare import DIFFERENT, LISTED, STAGES
from parity.differences import DIFFERENCES
from parity.evaluation import evaluate, find
from parity.report import DIFFERENCES_PAGE, entry_of
from tests.parity.missing_functions import MISSING

SEED, THEIRS = recorded.read()


@pytest.mark.parametrize("function", THEIRS)
def test_function_agrees_with_tensorflow(function):
    theirs = THEIRS[function]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = [evaluate(retrograde, _call(their), SEED) for their in theirs]

    entry = entry_of(function, theirs, ours)

    assert entry.missing == (function in MISSING), "Correct missing_functions.py."
    differing = {stage: entry.first(stage, DIFFERENT) for stage in entry.findings}
    assert not any(differing.values()), differing
    listed = {stage for name, stage in DIFFERENCES if name == function}
    assert listed == {stage for stage in entry.findings if entry.first(stage, LISTED)}, (
        "Correct parity/differences.py."
    )


def _call(their):
    return Call(their["function"], their["expression"], their["precision"])


def test_every_function_is_recorded():
    names = {name for functions in namespaces().values() for name in functions}

    assert set(THEIRS) == names


def test_lists_contain_existing_functions():
    assert set(THEIRS) >= MISSING
    assert set(THEIRS) >= {function for function, _ in DIFFERENCES}
    assert {stage for _, stage in DIFFERENCES} <= set(STAGES)


@pytest.mark.parametrize("title", sorted({title for title, _ in DIFFERENCES.values()}))
def test_differences_are_documented(title):
    assert title in DIFFERENCES_PAGE.read_text()


def test_functions_are_found_by_name():
    assert find(retrograde, "tf.math.sin") is retrograde.math.sin
    assert find(retrograde, "tf.no.such") is None
