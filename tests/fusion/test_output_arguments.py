"""Elementwise kernels that write into an array, and in blocks: the numbers are the same."""

import ml_dtypes
import numpy as np
import pytest

import retrograde as tf
from retrograde.core.apply import PRIMITIVES
from retrograde.core.recorders import quiet_context
from retrograde.fusion import blocks
from retrograde.fusion.output_arguments import COSTLY, out_argument_of
from tests.ops.cases import CASES

SIZE = 1003
ODD = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0)


def elementwise_cases():
    """One for each primitive and attributes; the values are chosen here."""
    found = {}
    for case in CASES:
        is_elementwise = case.primitive.partials is not None
        is_real = all(x.dtype.kind in "fiub" for x in case.inputs)
        if is_elementwise and is_real and all(x.size for x in case.inputs):
            found.setdefault((case.primitive.name, repr(case.attrs)), case)
    return list(found.values())


ELEMENTWISE = elementwise_cases()
BY_BLOCKS = [case for case in ELEMENTWISE if case.primitive.on_many is not case.primitive.on_numpy]
WRITING = [case for case in ELEMENTWISE if case.primitive.writes is not None]


@pytest.fixture
def small_blocks(monkeypatch):
    """Few elements are many, and two threads share them on any machine."""
    monkeypatch.setattr(blocks, "LARGE", 100)
    monkeypatch.setattr(blocks, "HUGE", 100)
    monkeypatch.setattr(blocks, "BLOCK", 96)
    monkeypatch.setattr(blocks, "LONG", 160)
    monkeypatch.setattr(blocks, "processors", lambda: 2)


def with_odd_numbers(x, seed, dtype=None):
    """`x` over and over; if they are floats, with numbers in between that are special."""
    generator = np.random.default_rng(seed)
    x = np.resize(x, SIZE)
    if x.dtype.kind != "f":
        return x
    odd = generator.choice(ODD, SIZE)
    return np.where(generator.random(SIZE) < 0.1, odd, x).astype(dtype or x.dtype)


def inputs_of(case, dtype=None):
    return [with_odd_numbers(x, seed, dtype) for seed, x in enumerate(case.inputs)]


def run(f, *inputs, **attrs):
    return quiet_context().run(f, *inputs, **attrs)


def bits(x):
    """The bytes of numbers, all nan being alike."""
    x = np.ascontiguousarray(x)
    if x.dtype.kind in "fV":
        x = np.where(np.isnan(x), np.array(np.nan, x.dtype), x)
    return x.tobytes()


def assert_same(actual, expected):
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    assert bits(actual) == bits(expected)


LAYOUTS = {
    "contiguous": lambda xs: xs,
    "several axes": lambda xs: [x.reshape(17, 59) for x in xs],
    "a first one without axes": lambda xs: [np.broadcast_to(xs[0][3], SIZE), *xs[1:]],
    "a first one that is 1 all over": lambda xs: [
        np.broadcast_to(np.ones((), xs[0].dtype), SIZE),
        *xs[1:],
    ],
    "a first one that is 0 all over": lambda xs: [np.zeros_like(xs[0]), *xs[1:]],
    "a last one without axes": lambda xs: [*xs[:-1], xs[-1][3]] if xs[1:] else xs,
    "every other": lambda xs: [np.repeat(x, 2)[::2] for x in xs],
    "turned": lambda xs: [x.reshape(17, 59).T for x in xs],
    "a first one that is broadcast": lambda xs: [xs[0][:59], *(x.reshape(17, 59) for x in xs[1:])],
    "a last one that is broadcast": lambda xs: [
        *(x.reshape(17, 59) for x in xs[:-1]),
        xs[-1].reshape(17, 59)[:, :1],
    ],
}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", BY_BLOCKS, ids=str)
def test_in_blocks_all_numbers_are_those_of_the_kernel(case, layout):
    inputs = LAYOUTS[layout](inputs_of(case))

    expected = np.asarray(run(case.primitive.on_numpy, *inputs, **case.attrs))

    assert_same(np.asarray(run(case.primitive.on_many, *inputs, **case.attrs)), expected)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("case", BY_BLOCKS, ids=str)
def test_in_blocks_numbers_of_any_precision_are_those_of_the_kernel(case, dtype):
    if dtype not in case.accepted:
        return
    inputs = inputs_of(case, dtype)

    expected = run(case.primitive.on_numpy, *inputs, **case.attrs)

    assert_same(run(case.primitive.on_many, *inputs, **case.attrs), expected)


@pytest.mark.parametrize("broadcast", [False, True])
@pytest.mark.parametrize("case", WRITING, ids=str)
def test_what_is_written_is_what_the_kernel_returns(case, broadcast):
    inputs = inputs_of(case)
    if broadcast and len(inputs) > 1:
        inputs = [inputs[0][:59], *(x.reshape(17, 59) for x in inputs[1:])]
    expected = run(case.primitive.on_numpy, *inputs, **case.attrs)
    writes = out_argument_of(case.primitive, inputs, case.attrs)
    before = [x.copy() for x in inputs]
    out = np.empty_like(expected)

    result = run(case.primitive.on_numpy, *inputs, **case.attrs, out=out)

    assert np.shares_memory(result, out)
    assert_same(result, expected)
    assert_same(out, expected)
    for x, y in zip(inputs, before, strict=True):
        assert_same(x, y)
    for position in writes.over:
        changed = [x.copy() for x in inputs]
        out = changed[position]
        if (out.shape, out.dtype) == (expected.shape, expected.dtype):
            run(case.primitive.on_numpy, *changed, **case.attrs, out=out)
            assert_same(out, expected)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("g", ["one", "zero", "number", "numbers"])
@pytest.mark.parametrize(
    "case", [c for c in BY_BLOCKS if c.primitive in COSTLY and any(c.primitive.partials)], ids=str
)
def test_rules_in_blocks_give_what_they_give_on_all_at_once(case, g, monkeypatch):
    inputs = inputs_of(case)
    y = run(case.primitive.on_numpy, *inputs, **case.attrs)
    numbers = {"one": np.ones(()), "zero": np.zeros(()), "number": np.array(-0.3)}
    if g == "numbers":
        g = with_odd_numbers(np.linspace(-2, 2, 77), 9)
    else:
        g = np.broadcast_to(numbers[g], SIZE)
    for rule in filter(None, case.primitive.partials):
        by_blocks = run(rule, g, y, *inputs, **case.attrs)
        with monkeypatch.context() as patch:
            patch.setattr(blocks, "LARGE", 1 << 20)
            patch.setattr(blocks, "HUGE", 1 << 20)
            assert_same(by_blocks, run(rule, g, y, *inputs, **case.attrs))


def test_large_strings_are_joined():
    x = tf.constant(np.full(blocks.LARGE, b"a", object))

    assert set((x + x).numpy()) == {b"aa"}


def test_the_primitives_that_write_are_known():
    assert {case.primitive.name for case in WRITING} == {
        name for name, p in PRIMITIVES.items() if p.writes is not None and p.partials is not None
    }
