"""Compares small programs with the results that TensorFlow returned.

A fact holds if its program sets `result` to TensorFlow's result, with a relative tolerance of 1e-4
and an absolute tolerance of 1e-5, unless the fact has its own. Facts of level "optional" are quirks
and do not run. `known_differences.py` lists the facts that do not hold; a listed fact that holds
fails the test.
"""

import json
import linecache
import logging
import math
import pathlib
import warnings

import numpy as np
import pytest

import retrograde
from tests.parity.known_differences import INTENTIONAL, NOT_IMPLEMENTED

FACTS = {
    fact["id"]: fact
    for fact in json.loads(pathlib.Path(__file__).with_name("facts.json").read_text())
    if fact["level"] != "optional"
}


@pytest.mark.parametrize("name", FACTS)
def test_fact(name):
    reason = NOT_IMPLEMENTED.get(name) or INTENTIONAL.get(name)
    failure = failure_of(FACTS[name])

    if reason is None:
        assert failure is None, failure
    else:
        assert failure is not None, f"{name} holds now: remove it from the list ({reason})."


def test_lists_contain_existing_facts():
    assert set(NOT_IMPLEMENTED) <= set(FACTS)
    assert set(INTENTIONAL) <= set(FACTS)
    assert not set(NOT_IMPLEMENTED) & set(INTENTIONAL)


@pytest.mark.parametrize("name", INTENTIONAL)
def test_differences_are_documented(name):
    page = pathlib.Path(__file__).parents[2] / "docs" / "differences.md"

    assert INTENTIONAL[name] in page.read_text()


def failure_of(fact):
    """Runs the program of a fact. Returns `None` if it has the expected result."""
    file = f"<fact {fact['id']}>"
    code = fact["snippet"]
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    names = {"tf": retrograde, "np": np, "__name__": "snippet"}
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(code, file, "exec"), names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        logging.disable(logging.NOTSET)
    actual = plain(names.get("result", "<no result>"))
    tolerances = fact.get("rtol", 1e-4), fact.get("atol", 1e-5)
    if is_close(actual, fact["expected"], *tolerances):
        return None
    return f"got {actual}, expected {fact['expected']}"


def plain(x):
    """Converts a result to JSON values: NaN and Inf to strings, complex numbers to dicts."""
    if hasattr(x, "numpy"):
        x = x.numpy()
    if isinstance(x, np.ndarray | np.generic):
        x = x.tolist()
    if isinstance(x, bytes):
        return x.decode("utf8", "replace")
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    if isinstance(x, complex):
        return {"re": plain(x.real), "im": plain(x.imag)}
    if isinstance(x, dict):
        return {str(key): plain(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [plain(value) for value in x]
    return x if x is None or isinstance(x, bool | str | int | float) else repr(x)


def is_close(actual, expected, rtol, atol):
    """Returns whether two results agree."""
    if isinstance(actual, bool) or isinstance(expected, bool):
        return actual is expected
    if isinstance(actual, int | float) and isinstance(expected, int | float):
        return abs(actual - expected) <= atol + rtol * abs(expected)
    if isinstance(actual, list) and isinstance(expected, list):
        return len(actual) == len(expected) and all(
            is_close(a, e, rtol, atol) for a, e in zip(actual, expected, strict=True)
        )
    if isinstance(actual, dict) and isinstance(expected, dict):
        return actual.keys() == expected.keys() and all(
            is_close(actual[key], expected[key], rtol, atol) for key in expected
        )
    return type(actual) is type(expected) and actual == expected
