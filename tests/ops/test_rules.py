"""Table-driven tests of all primitives and rules: a new primitive needs a case, not a test."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from retrograde.core import namespaces
from retrograde.core.tape import GradientTape
from retrograde.core.tensor import Tensor
from retrograde.values import dtypes
from tests.ops.cases import (
    ALL_DTYPES,
    CASES,
    COMPLEXES,
    FLOATS,
    PRIMITIVES,
    Case,
)
from tests.ops.harness import (
    Sample,
    as_tuple,
    call,
    dense,
    differentiable,
    gradients,
    oracle,
    pull_back,
    quiet,
    random_like,
    run,
    second_gradients,
    tangents,
    tensors,
)

DIFFERENTIABLE = [case for case in CASES if any(case.differentiable)]
COMPILED = [case for case in CASES if not case.uncompiled]
AGAINST_JAX = [case for case in COMPILED if any(case.differentiable) and case.jax_rule]
every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_differentiable_case = pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
every_compiled_case = pytest.mark.parametrize("case", COMPILED, ids=str)
every_case_with_jax_rule = pytest.mark.parametrize("case", AGAINST_JAX, ids=str)


@pytest.fixture(autouse=True)
def _support_foreign_arrays(monkeypatch):
    monkeypatch.setattr(namespaces, "foreign", True)


def assert_close(actual, expected, rtol=1e-12, atol=1e-12):
    for a, e in zip(actual, expected, strict=True):
        a = getattr(a, "_array", a)
        if a is None:
            a = np.zeros_like(e)
        assert a.shape == e.shape
        assert a.dtype == e.dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=rtol, atol=atol)


def assert_same(actual, expected):
    assert_close(actual, expected, rtol=0, atol=0)


def test_every_primitive_has_a_case():
    assert {case.primitive.name for case in CASES} == set(PRIMITIVES)


def test_case_ids_are_unique():
    assert len({case.id for case in CASES}) == len(CASES)


@every_case
def test_kernel_agrees_with_numpy(case):
    with np.errstate(all="ignore"):
        expected = as_tuple(case.reference(*case.inputs, **case.attrs))

    for a, e in zip(run(case), expected, strict=True):
        assert np.shape(a) == np.shape(e)
        np.testing.assert_allclose(a, np.asarray(e).astype(a.dtype), rtol=1e-12, atol=1e-14)


@every_compiled_case
def test_kernel_is_the_same_under_xla(case):
    assert_close(oracle(case).y, run(case))


@every_case_with_jax_rule
def test_vjp_agrees_with_jax(case):
    sample = Sample.of(case)

    assert_close(pull_back(case, sample.g, run(case), case.inputs), oracle(case).gradients)


@pytest.mark.parametrize("case", [case for case in COMPILED if any(case.differentiable)], ids=str)
def test_vjp_is_the_same_under_xla(case):
    sample = Sample.of(case)

    assert_close(oracle(case).pulled, pull_back(case, sample.g, run(case), case.inputs))


@pytest.mark.parametrize("case", [case for case in DIFFERENTIABLE if case.differences], ids=str)
def test_vjp_agrees_with_finite_differences(case):
    sample, step = Sample.of(case), 1e-6
    expected = pull_back(case, sample.g, run(case), case.inputs)
    positions = np.flatnonzero(case.differentiable)

    for i, gradient, direction in zip(positions, expected, sample.t, strict=True):
        plus, minus = (run(case, _shift(case.inputs, i, h * direction)) for h in (step, -step))
        difference = _product(sample.g, [a - b for a, b in zip(plus, minus, strict=True)])
        product = _product([gradient], [direction])
        np.testing.assert_allclose(difference / (2 * step), product, rtol=1e-7, atol=1e-8)


def _shift(inputs, position, by):
    return tuple(x + by if i == position else x for i, x in enumerate(inputs))


@every_case_with_jax_rule
def test_second_order_agrees_with_jax(case):
    _, actual = second_gradients(case, tensors(case.inputs), Sample.of(case))
    expected = oracle(case).second
    if case.real_cotangents:  # JAX drops the imaginary part of g
        actual[0] = Tensor((actual[0]._array.real).astype(actual[0]._array.dtype))

    assert_close(actual, expected)


@pytest.mark.parametrize("case", [case for case in DIFFERENTIABLE if case.differences], ids=str)
def test_second_order_agrees_with_finite_differences(case):
    sample, step = Sample.of(case), 1e-6
    _, second = second_gradients(case, tensors(case.inputs), sample)
    positions = np.flatnonzero(case.differentiable)

    for i, gradient, direction in zip(positions, second[len(sample.g) :], sample.t, strict=True):
        shifted = [_shift(case.inputs, i, h * direction) for h in (step, -step)]
        plus, minus = (pull_back(case, sample.g, run(case, inputs), inputs) for inputs in shifted)
        difference = _product(sample.w, [a - b for a, b in zip(plus, minus, strict=True)])
        product = 0.0 if gradient is None else _product([gradient._array], [direction])
        np.testing.assert_allclose(difference / (2 * step), product, rtol=1e-6, atol=1e-7)


def _product(xs, ys):
    """Returns the inner product over real and imaginary parts."""
    return sum(np.sum(np.real(np.conj(x) * y)) for x, y in zip(xs, ys, strict=True))


@every_differentiable_case
def test_gradients_are_the_same_on_arrays_and_on_tensors(case):
    sample = Sample.of(case)
    raw = gradients(case, tensors(case.inputs), tensors(sample.g))
    on_tensors, _ = second_gradients(case, tensors(case.inputs), sample)

    assert_same(raw, [x._array for x in on_tensors])
    assert_same(raw, pull_back(case, sample.g, run(case), case.inputs))


@every_case_with_jax_rule
def test_forward_mode_agrees_with_jax(case):
    actual = tangents(case, tensors(case.inputs), tensors(Sample.of(case).t))
    expected = oracle(case).tangents
    if case.real_cotangents:
        actual = [Tensor(t._array.real.astype(t._array.dtype)) for t in actual]

    assert_close(actual, expected)


@every_differentiable_case
def test_forward_mode_sums_the_contributions_of_single_inputs(case):
    xs, t = tensors(case.inputs), tensors(Sample.of(case).t)
    totals = tangents(case, xs, t)
    separate = [
        tangents(case, xs, [x if i == position else None for i, x in enumerate(t)])
        for position in range(len(t))
    ]

    for total, *parts in zip(totals, *separate, strict=True):
        parts = [part._array for part in parts if part is not None]
        if total is None:
            assert not parts
            continue
        np.testing.assert_allclose(sum(parts), total._array, rtol=1e-12, atol=1e-12)


@every_differentiable_case
def test_forward_mode_can_be_differentiated(case):
    """Compares the gradient of a JVP with the gradient of the corresponding VJP."""
    sample = Sample.of(case)
    xs, t, g = (tensors(arrays) for arrays in (case.inputs, sample.w, sample.g))
    sources = differentiable(case, xs)
    with GradientTape() as tape:
        tape.watch(sources)
        dy = tangents(case, xs, t)
    connected = [(t, part) for t, part in zip(dy, g, strict=True) if t is not None]
    actual = tape.gradient([t for t, _ in connected], sources, [part for _, part in connected])
    _, second = second_gradients(case, xs, sample)

    for a, e in zip(actual, second[len(g) :], strict=True):
        pair = [0.0 if x is None else np.asarray(dense(x)._array) for x in (a, e)]
        np.testing.assert_allclose(*pair, rtol=1e-12, atol=1e-12)


@every_differentiable_case
def test_vjp_reads_only_values_that_the_tape_saves(case):
    y, g = run(case), Sample.of(case).g

    actual = pull_back(case, g, y, case.inputs, saved_only=True)

    assert_same(actual, pull_back(case, g, y, case.inputs))


@every_case
def test_inputs_without_a_gradient_give_none(case):
    xs = tensors(case.inputs)
    sources = [x for x, w in zip(xs, case.differentiable, strict=True) if not w]
    inexact = [x for x in sources if x._array.dtype in dtypes.INEXACT]
    with GradientTape() as tape:
        tape.watch(inexact)
        y = call(case, xs)

    assert tape.gradient(list(y), sources) == [None] * len(sources)


@every_case
def test_inputs_are_not_modified(case):
    inputs = tuple(x.copy() for x in case.inputs)
    y = run(case, inputs)
    before = [np.copy(part) for part in y]
    g = Sample.of(case).g
    if any(case.differentiable):
        pull_back(case, tuple(part.copy() for part in g), y, inputs)

    for a, e in zip((*inputs, *y), (*case.inputs, *before), strict=True):
        np.testing.assert_array_equal(a, e)


JOINT = [case for case in DIFFERENTIABLE if case.primitive.joint and sum(case.differentiable) > 1]


@pytest.mark.parametrize("case", JOINT, ids=str)
def test_joint_rules_return_none_for_inputs_that_are_not_needed(case):
    y, g = run(case), Sample.of(case).g
    multiple_outputs = case.primitive.outputs
    for position in range(len(case.inputs)):
        needed = tuple(i == position and w for i, w in enumerate(case.differentiable))
        values = (g, y, *case.inputs) if multiple_outputs else (g[0], y[0], *case.inputs)
        gradients = quiet(case.primitive.joint)(needed, *values, **case.attrs)

        assert [x is not None for x in gradients] == list(needed)


LAYOUTS = {
    "transposed": lambda x: x.T.copy().T,
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "reversed": lambda x: x[..., ::-1].copy()[..., ::-1],
}


@every_case
def test_memory_layout_does_not_matter(case):
    g = Sample.of(case).g
    for with_layout in LAYOUTS.values():
        inputs, cotangents = (
            tuple(with_layout(x) if x.ndim else x for x in xs) for xs in (case.inputs, g)
        )
        y = run(case, inputs)
        assert_close(y, run(case))
        if any(case.differentiable):
            actual = pull_back(case, cotangents, y, inputs)
            assert_close(actual, pull_back(case, g, y, case.inputs))


# Batch rules

BATCH = 4


@every_case
def test_batch_rule_agrees_with_a_loop(case):
    batches = [quiet(_batch_of)(x) for x in case.inputs]
    loops = {batched: _loop(case, batched, batches) for batched in _combinations(case)}

    def run_all(*arrays):
        rows, batches = arrays[: len(case.inputs)], arrays[len(case.inputs) :]
        results = []
        for batched in loops:
            mixed = [b if f else x for x, b, f in zip(rows, batches, batched, strict=True)]
            results.append(as_tuple(case.primitive.batch(batched, *mixed, **case.attrs)))
        return results

    every = (*case.inputs, *batches)
    on_numpy = quiet(run_all)(*every)
    on_tensors = run_all(*tensors(every))
    under_xla = []
    if not case.uncompiled and (case.primitive.partials is None or case.primitive.name == "select"):
        # All elementwise primitives share one batch rule.
        under_xla.append(jax.jit(run_all)(*map(jnp.asarray, every)))

    for results in (on_numpy, on_tensors, *under_xla):
        for actual, expected in zip(results, loops.values(), strict=True):
            assert_close(actual, expected)


def _combinations(case):
    return [c for c in itertools.product((False, True), repeat=len(case.inputs)) if any(c)]


def _batch_of(x):
    """Stacks variations of x within the domain of the primitive."""
    if x.dtype.kind in "fc":
        return np.stack([x * (1 - 0.02 * k) for k in range(BATCH)])
    return np.stack([np.roll(x, k) for k in range(BATCH)])


def _loop(case, batched, batches):
    rows = []
    for k in range(BATCH):
        mixed = [b[k] if f else x for x, b, f in zip(case.inputs, batches, batched, strict=True)]
        rows.append(run(case, tuple(mixed)))
    return [np.stack(column) for column in zip(*rows, strict=True)]


# Dtypes

EPSILON = {d: float(dtypes.ml_dtypes.finfo(d).eps) for d in FLOATS + COMPLEXES}


def _convert_inputs(case: Case, dtype: np.dtype) -> tuple:
    return tuple(_convert(x, dtype) if x.dtype.kind in "fc" else x for x in case.inputs)


def _convert(x, dtype):
    if dtype.kind == "c":
        return (x if x.dtype.kind == "c" else x + 0.3j).astype(dtype)
    x = np.real(x)
    if dtype.kind == "b":
        return np.asarray(x > 0.3)
    if dtype.kind in "iu":
        return (np.abs(np.nan_to_num(x, posinf=3)) * 3).astype(dtype) + dtype.type(1)
    return x.astype(dtype)


def _in_dtypes(case: Case, kinds: tuple = ALL_DTYPES):
    """Yields the inputs of a case in each applicable dtype."""
    with_inf = any(np.isinf(x).any() for x in case.inputs)
    for dtype in case.accepted:
        if dtype in kinds and not (dtype.kind == "c" and with_inf):
            yield dtype, _convert_inputs(case, dtype)


every_castable_case = pytest.mark.parametrize(
    "case", [case for case in CASES if any(x.dtype.kind in "fc" for x in case.inputs)], ids=str
)


@every_castable_case
def test_result_has_the_same_dtype_on_numpy_and_jax(case):
    def on_jax(*xs):
        return as_tuple(case.primitive.kernel(jnp, *xs, **case.attrs))

    for dtype, inputs in () if case.uncompiled else _in_dtypes(case):
        specs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs]
        for a, e in zip(run(case, inputs), jax.eval_shape(on_jax, *specs), strict=True):
            assert (a.dtype, a.shape) == (e.dtype, e.shape), f"with {dtype}"


@every_differentiable_case
def test_gradients_have_the_dtype_and_shape_of_their_inputs(case):
    for dtype, inputs in _in_dtypes(case, FLOATS + COMPLEXES):
        sample = Sample.of(case, inputs)
        first, second = second_gradients(case, tensors(inputs), sample)
        raw = gradients(case, tensors(inputs), tensors(sample.g))

        sources = differentiable(case, inputs)
        expected = (*sources, *sources, *sample.g, *sources)
        for g, x in zip((*raw, *first, *second), expected, strict=True):
            if g is not None:
                assert (g._array.dtype, g._array.shape) == (x.dtype, x.shape), f"with {dtype}"


@every_castable_case
def test_low_precision_is_close_to_high_precision(case):
    """Checks values to a few units in the last place, also in half precision."""
    for dtype, inputs in _in_dtypes(case, FLOATS + COMPLEXES):
        wide = np.dtype("complex128" if dtype.kind == "c" else "float64")
        exact = tuple(x.astype(wide) if x.dtype == dtype else x for x in inputs)
        for a, e in zip(run(case, inputs), run(case, exact), strict=True):
            bound, a = 4 * EPSILON[dtype], np.asarray(a).astype(e.dtype)
            scale = np.max(np.abs(e), initial=0, where=np.isfinite(e))
            np.testing.assert_allclose(a, e, rtol=bound, atol=bound * scale, err_msg=str(dtype))


# Large arrays: in blocks, with threads

ELEMENTWISE = {
    case.primitive.name: case
    for case in reversed(CASES)
    if case.primitive.partials is not None and any(case.differentiable) and case.differences
}


@pytest.mark.parametrize("case", ELEMENTWISE.values(), ids=ELEMENTWISE)
def test_large_arrays_agree_with_small_ones(case):
    times = 70_000
    inputs = tuple(np.tile(x.reshape(-1)[:2], times) for x in case.inputs)
    small = tuple(x[:2] for x in inputs)
    y, y_small = (as_tuple(quiet(case.primitive)(*xs, **case.attrs)) for xs in (inputs, small))
    g = random_like(case, y_small, 4)

    actual = pull_back(case, tuple(np.tile(part, times) for part in g), y, inputs)

    assert_same([x[-2:] for x in y], y_small)
    assert_same([x[-2:] for x in actual], pull_back(case, g, y_small, small))
