"""Tests sample calls to every public function inside tf.function.

Each call is traced with one set of inputs and replayed with others. If a value escaped without a
guard, the replay would return the value of the trace. Values and gradients are compared.
"""

import warnings

import numpy as np
import pytest

import retrograde as tf
from parity.calls import namespaces
from parity.evaluation import Sources, find, leaves
from retrograde.values import dtypes

SEEDS = (1, 2, 3, 2)

EXCLUDED = {
    "tf.random.get_global_generator",  # a shared generator that this test does not seed
    "tf.random.experimental.get_global_generator",
    "tf.gradients",  # works only inside functions
    "tf.hessians",
}

CALLS = [
    (name, expression)
    for functions in namespaces().values()
    for name, expressions in functions.items()
    if find(tf, name) is not None and name not in EXCLUDED
    for expression in expressions
]


class FixedSources(Sources):
    """Returns the given tensors in place of new sources."""

    def __init__(self, sources):
        super().__init__(tf, None, "float32")
        self._sources = iter(sources)

    def __call__(self, *shape, lo=0.2, hi=0.8, kind=""):
        if kind in ("c", "cspd"):
            return super().__call__(*shape, lo=lo, hi=hi, kind=kind)
        return next(self._sources)


def create_sources(name, expression, seed):
    """Returns the sources that the call creates."""
    sources = Sources(tf, np.random.default_rng(seed), "float32")
    eval(expression, {"f": find(tf, name), "S": sources, "tf": tf, "np": np})
    return sources.created


def make_body(name, expression):
    """Returns a function that computes the outputs of the call and their gradients."""

    def body(*sources):
        with tf.GradientTape() as tape:
            tape.watch(list(sources))
            names = {"f": find(tf, name), "S": FixedSources(sources), "tf": tf, "np": np}
            values = [y for y in leaves(tf, eval(expression, names)) if hasattr(y, "numpy")]
        targets = [y for y in values if y.dtype.numpy_dtype in dtypes.INEXACT]
        gradients = tape.gradient(targets, list(sources)) if targets and sources else []
        return values, [None if g is None else tf.convert_to_tensor(g) for g in gradients]

    return body


def check(name, expression, compiled, tolerance):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            inputs = [create_sources(name, expression, seed) for seed in SEEDS]
        except Exception as error:
            check_error(name, expression, error)
            return
        body = make_body(name, expression)
        f = tf.function(body, jit_compile=compiled)
        tf.random.set_seed(5)
        expected = [body(*sources) for sources in inputs]
        tf.random.set_seed(5)
        actual = [f(*sources) for sources in inputs]
    for expected_outputs, actual_outputs in zip(expected, actual, strict=True):
        for a, b in zip(
            [*expected_outputs[0], *expected_outputs[1]],
            [*actual_outputs[0], *actual_outputs[1]],
            strict=True,
        ):
            assert (a is None) == (b is None)
            if a is not None:
                assert_close(np.asarray(a.numpy()), np.asarray(b.numpy()), tolerance)


def check_error(name, expression, expected):
    """Checks that the call raises the same error in a function, except for its class."""
    f = tf.function(lambda: create_sources(name, expression, SEEDS[0]))

    with pytest.raises(getattr(expected, "in_function", None) or type(expected)) as raised:
        f()
    assert str(raised.value) == str(expected)


def assert_close(a, b, tolerance):
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    if a.dtype.kind in "O":
        assert a.tolist() == b.tolist()
    else:
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "expression"), CALLS)
def test_replay_on_numpy(name, expression):
    check(name, expression, compiled=False, tolerance=1e-6)


@pytest.mark.parametrize(("name", "expression"), CALLS[::9])
def test_replay_on_xla(name, expression):
    check(name, expression, compiled=True, tolerance=5e-4)
