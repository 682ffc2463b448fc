"""What TensorFlow answered to a sample call of every function: `make parity`, without TensorFlow.

The sources are drawn as they were when the answers were recorded. What differs on purpose stands in
`parity/differences.py`; what is not there yet in `not_here.py`. Both lists hold nothing else.
"""

import warnings

import pytest

import retrograde
from parity import recorded
from parity.answers import answer, find
from parity.calls import Call, namespaces
from parity.compare import DIFFERENT, LISTED, STAGES
from parity.differences import DIFFERENCES
from parity.report import DIFFERENCES_PAGE, entry_of
from tests.parity.not_here import NOT_HERE

SEED, THEIRS = recorded.read()


@pytest.mark.parametrize("function", THEIRS)
def test_function_answers_as_tensorflow_did(function):
    theirs = THEIRS[function]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = [answer(retrograde, _call(their), SEED) for their in theirs]

    entry = entry_of(function, theirs, ours)

    assert entry.missing == (function in NOT_HERE), "Correct the list in not_here.py."
    differing = {stage: entry.first(stage, DIFFERENT) for stage in entry.findings}
    assert not any(differing.values()), differing
    listed = {stage for name, stage in DIFFERENCES if name == function}
    assert listed == {stage for stage in entry.findings if entry.first(stage, LISTED)}, (
        "Correct the list in parity/differences.py."
    )


def _call(their):
    return Call(their["function"], their["expression"], their["precision"])


def test_every_function_is_recorded():
    names = {name for functions in namespaces().values() for name in functions}

    assert set(THEIRS) == names


def test_lists_name_functions_that_are_there():
    assert set(THEIRS) >= NOT_HERE
    assert set(THEIRS) >= {function for function, _ in DIFFERENCES}
    assert {stage for _, stage in DIFFERENCES} <= set(STAGES)


@pytest.mark.parametrize("words", sorted({words for words, _ in DIFFERENCES.values()}))
def test_differences_are_documented(words):
    assert words in DIFFERENCES_PAGE.read_text()


def test_what_is_there_can_be_found():
    assert find(retrograde, "tf.math.sin") is retrograde.math.sin
    assert find(retrograde, "tf.no.such") is None
