"""Elementwise kernels with `out`, and in blocks, give the same results."""

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
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0)


def elementwise_cases():
    """Returns one case for each primitive and its attributes."""
    cases = {}
    for case in CASES:
        is_elementwise = case.primitive.partials is not None
        is_real = all(x.dtype.kind in "fiub" for x in case.inputs)
        if is_elementwise and is_real and all(x.size for x in case.inputs):
            cases.setdefault((case.primitive.name, repr(case.attrs)), case)
    return list(cases.values())


ELEMENTWISE = elementwise_cases()
IN_BLOCKS = [case for case in ELEMENTWISE if case.primitive.on_many is not case.primitive.on_numpy]
WITH_OUT = [case for case in ELEMENTWISE if case.primitive.writes is not None]


@pytest.fixture
def small_blocks(monkeypatch):
    """Lowers the thresholds for blocks, which two threads share on any machine."""
    monkeypatch.setattr(blocks, "MIN_THREADED_SIZE_IF_COSTLY", 100)
    monkeypatch.setattr(blocks, "MIN_THREADED_SIZE_IF_CHEAP", 100)
    monkeypatch.setattr(blocks, "BLOCK_SIZE", 96)
    monkeypatch.setattr(blocks, "UFUNC_BLOCK_SIZE", 160)
    monkeypatch.setattr(blocks, "processors", lambda: 2)


def with_special_values(x, seed, dtype=None):
    """Repeats `x` to `SIZE`; floats with special values in between."""
    generator = np.random.default_rng(seed)
    x = np.resize(x, SIZE)
    if x.dtype.kind != "f":
        return x
    special = generator.choice(SPECIAL, SIZE)
    return np.where(generator.random(SIZE) < 0.1, special, x).astype(dtype or x.dtype)


def inputs_of(case, dtype=None):
    return [with_special_values(x, seed, dtype) for seed, x in enumerate(case.inputs)]


def run(f, *inputs, **attrs):
    return quiet_context().run(f, *inputs, **attrs)


def bits(x):
    """Returns the bytes of `x`, with all NaN the same."""
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
    "uniform first": lambda xs: [np.broadcast_to(xs[0][3], SIZE), *xs[1:]],
    "first all ones": lambda xs: [
        np.broadcast_to(np.ones((), xs[0].dtype), SIZE),
        *xs[1:],
    ],
    "first all zeros": lambda xs: [np.zeros_like(xs[0]), *xs[1:]],
    "scalar last": lambda xs: [*xs[:-1], xs[-1][3]] if xs[1:] else xs,
    "strided": lambda xs: [np.repeat(x, 2)[::2] for x in xs],
    "transposed": lambda xs: [x.reshape(17, 59).T for x in xs],
    "broadcast first": lambda xs: [xs[0][:59], *(x.reshape(17, 59) for x in xs[1:])],
    "broadcast last": lambda xs: [
        *(x.reshape(17, 59) for x in xs[:-1]),
        xs[-1].reshape(17, 59)[:, :1],
    ],
}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", IN_BLOCKS, ids=str)
def test_blocks_agree_with_the_kernel_for_every_layout(case, layout):
    inputs = LAYOUTS[layout](inputs_of(case))

    expected = np.asarray(run(case.primitive.on_numpy, *inputs, **case.attrs))

    assert_same(np.asarray(run(case.primitive.on_many, *inputs, **case.attrs)), expected)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("case", IN_BLOCKS, ids=str)
def test_blocks_agree_with_the_kernel_for_every_precision(case, dtype):
    if dtype not in case.accepted:
        return
    inputs = inputs_of(case, dtype)

    expected = run(case.primitive.on_numpy, *inputs, **case.attrs)

    assert_same(run(case.primitive.on_many, *inputs, **case.attrs), expected)


@pytest.mark.parametrize("broadcast", [False, True])
@pytest.mark.parametrize("case", WITH_OUT, ids=str)
def test_out_receives_the_result_of_the_kernel(case, broadcast):
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
    for position in writes.may_alias:
        changed = [x.copy() for x in inputs]
        out = changed[position]
        if (out.shape, out.dtype) == (expected.shape, expected.dtype):
            run(case.primitive.on_numpy, *changed, **case.attrs, out=out)
            assert_same(out, expected)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("g", ["one", "zero", "number", "numbers"])
@pytest.mark.parametrize(
    "case", [c for c in IN_BLOCKS if c.primitive in COSTLY and any(c.primitive.partials)], ids=str
)
def test_rules_in_blocks_match_rules_on_entire_arrays(case, g, monkeypatch):
    inputs = inputs_of(case)
    y = run(case.primitive.on_numpy, *inputs, **case.attrs)
    numbers = {"one": np.ones(()), "zero": np.zeros(()), "number": np.array(-0.3)}
    if g == "numbers":
        g = with_special_values(np.linspace(-2, 2, 77), 9)
    else:
        g = np.broadcast_to(numbers[g], SIZE)
    for rule in filter(None, case.primitive.partials):
        in_blocks = run(rule, g, y, *inputs, **case.attrs)
        with monkeypatch.context() as patch:
            patch.setattr(blocks, "MIN_THREADED_SIZE_IF_COSTLY", 1 << 20)
            patch.setattr(blocks, "MIN_THREADED_SIZE_IF_CHEAP", 1 << 20)
            assert_same(in_blocks, run(rule, g, y, *inputs, **case.attrs))


def test_large_string_arrays_are_concatenated():
    x = tf.constant(np.full(blocks.MIN_THREADED_SIZE_IF_COSTLY, b"a", object))

    assert set((x + x).numpy()) == {b"aa"}


def test_every_primitive_with_out_has_a_case():
    assert {case.primitive.name for case in WITH_OUT} == {
        name for name, p in PRIMITIVES.items() if p.writes is not None and p.partials is not None
    }
