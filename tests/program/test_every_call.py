"""Sample calls of every public function inside a function: replays see the inputs of now.

A value that slipped out unheard would be that of the recording. So each call is recorded with one
set of inputs and replayed with others, values and gradients.
"""

import warnings

import numpy as np
import pytest

import retrograde as tf
from parity.answers import Sources, find, leaves
from parity.calls import namespaces
from retrograde.values import dtypes

SEEDS = (1, 2, 3, 2)

OTHERWISE = {
    "tf.random.get_global_generator",  # the same for all callers, and seeded by none
    "tf.random.experimental.get_global_generator",
    "tf.gradients",  # works in functions alone
    "tf.hessians",
}

CALLS = [
    (name, expression)
    for functions in namespaces().values()
    for name, expressions in functions.items()
    if find(tf, name) is not None and name not in OTHERWISE
    for expression in expressions
]


class Given(Sources):
    """Hands out sources that are there already, in the place of `S`."""

    def __init__(self, sources):
        super().__init__(tf, None, "float32")
        self._sources = iter(sources)

    def __call__(self, *shape, lo=0.2, hi=0.8, kind=""):
        if kind in ("c", "cspd"):
            return super().__call__(*shape, lo=lo, hi=hi, kind=kind)
        return next(self._sources)


def sources_of(name, expression, seed):
    """The sources that the call makes."""
    sources = Sources(tf, np.random.default_rng(seed), "float32")
    eval(expression, {"f": find(tf, name), "S": sources, "tf": tf, "np": np})
    return sources.made


def body_of(name, expression):
    """A function of the sources: all tensors that the call gives, and their gradients."""

    def body(*sources):
        with tf.GradientTape() as tape:
            tape.watch(list(sources))
            names = {"f": find(tf, name), "S": Given(sources), "tf": tf, "np": np}
            values = [y for y in leaves(tf, eval(expression, names)) if hasattr(y, "numpy")]
        targets = [y for y in values if y.dtype.numpy_dtype in dtypes.INEXACT]
        gradients = tape.gradient(targets, list(sources)) if targets and sources else []
        return values, [None if g is None else tf.convert_to_tensor(g) for g in gradients]

    return body


def check(name, expression, compiled, tolerance):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            inputs = [sources_of(name, expression, seed) for seed in SEEDS]
        except Exception as error:
            check_error(name, expression, error)
            return
        body = body_of(name, expression)
        f = tf.function(body, jit_compile=compiled)
        tf.random.set_seed(5)
        expected = [body(*sources) for sources in inputs]
        tf.random.set_seed(5)
        found = [f(*sources) for sources in inputs]
    for theirs, ours in zip(expected, found, strict=True):
        for a, b in zip([*theirs[0], *theirs[1]], [*ours[0], *ours[1]], strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert_alike(np.asarray(a.numpy()), np.asarray(b.numpy()), tolerance)


def check_error(name, expression, expected):
    """A mistake is the same in a function, but that shapes and dtypes have other classes there."""
    f = tf.function(lambda: sources_of(name, expression, SEEDS[0]))

    with pytest.raises(getattr(expected, "in_function", None) or type(expected)) as caught:
        f()
    assert str(caught.value) == str(expected)


def assert_alike(a, b, tolerance):
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
