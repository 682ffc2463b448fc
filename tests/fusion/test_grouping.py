"""Fused calls give bit-for-bit identical results in fewer passes over memory."""

import threading

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import retrograde as tf
from retrograde.core.apply import LARGE_ARRAY_SIZE, PRIMITIVES
from retrograde.core.program import Call
from retrograde.core.recorders import Recorder, quiet_context, use_recorders
from retrograde.core.rules import Spec
from retrograde.core.tensor import wrap
from retrograde.fusion import blocks, grouping
from retrograde.fusion import fused_loops as fused_module
from retrograde.fusion.fused_loops import Fused
from retrograde.fusion.grouping import fuse
from retrograde.ops import _sums
from retrograde.values.source import SourceWriter
from retrograde.values.thresholds import MIN_FREED_BYTES
from tests.ops.cases import CASES, FLOATS
from tests.ops.cases._table import BFLOAT16


class CallRecorder(Recorder):
    """Records calls. Numbers the tensors they use, and keeps each tensor's array."""

    def __init__(self):
        self.calls = []
        self.numbers = {}
        self.arrays = []

    def number(self, tensor):
        if tensor._id not in self.numbers:
            self.numbers[tensor._id] = len(self.numbers)
            self.arrays.append(tensor._array)
        return self.numbers[tensor._id]

    def record(self, primitive, inputs, attrs, y):
        outputs = y if primitive.outputs else (y,)
        inputs, outputs = (tuple(map(self.number, values)) for values in (inputs, outputs))
        self.calls.append(Call(primitive, inputs, attrs, outputs))

    @property
    def specs(self):
        return [Spec(tuple(a.shape), a.dtype) for a in self.arrays]


def record(step, *tensors):
    """Runs `step(*tensors)`. Returns the recorder, and the numbers of the results."""
    recorded = CallRecorder()
    with use_recorders([recorded]):
        results = step(*tensors)
    return recorded, frozenset(recorded.numbers[r._id] for r in results)


def compile_step(step):
    """Compiles the function of a `Fused`."""
    writer = SourceWriter()
    step.write(writer, "fused")
    return writer.define("fused", "fused")


def replay(steps, inputs):
    """Runs `steps` on the arrays `inputs`. Returns the arrays of all values."""
    values = dict(inputs)
    for step in steps:
        arrays = [values[v] for v in step.inputs]
        if isinstance(step, Fused):
            results = quiet_context().run(compile_step(step), *arrays)
        else:
            results = quiet_context().run(step.primitive, *arrays, **step.attrs)
            results = results if step.primitive.outputs else (results,)
        values.update(zip(step.outputs, results, strict=True))
    return values


def inputs_of(recorded):
    computed = {y for call in recorded.calls for y in call.outputs}
    return {v: a for v, a in enumerate(recorded.arrays) if v not in computed}


def assert_same(actual, expected):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    if actual.dtype == BFLOAT16:
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(actual, expected)
    if actual.dtype.kind == "f":
        is_nan = np.isnan(actual)
        np.testing.assert_array_equal(np.signbit(actual) | is_nan, np.signbit(expected) | is_nan)


def assert_fuses(step, *tensors, into=1):
    """Asserts that fusing `step` into `into` groups gives the same results. Returns the groups."""
    recorded, kept = record(step, *tensors)
    steps = fuse(recorded.calls, recorded.specs, kept)
    values = replay(steps, inputs_of(recorded))

    for v in kept:
        assert_same(values[v], recorded.arrays[v])
    groups = [group for group in steps if isinstance(group, Fused)]
    assert len(groups) == into
    return groups


def names(group):
    return [call.primitive.name for call in group.calls]


def random_tensor(*shape, dtype=np.float32, seed=0):
    generator = np.random.default_rng(seed)
    return tf.constant(generator.uniform(-2.0, 2.0, shape).astype(dtype))


# Which calls are fused


def test_forward_and_backward_pass_of_a_chain_are_fused():
    x = tf.Variable(random_tensor(LARGE_ARRAY_SIZE + 3))

    def step():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.sin(x) * tf.exp(x) + tf.tanh(x))
        return [y, tape.gradient(y, x)]

    (group,) = assert_fuses(step)
    assert {"sin", "tanh_grad", "sum"} < set(names(group))
    assert len(group.inputs) == 2  # the variable, and the seed of the gradient
    assert len(group.outputs) == 2


def test_small_arrays_are_not_fused():
    x = random_tensor(LARGE_ARRAY_SIZE - 1)

    assert_fuses(lambda x: [tf.exp(tf.sin(x))], x, into=0)


def test_a_single_call_is_not_fused():
    assert_fuses(lambda x: [tf.sin(x)], random_tensor(LARGE_ARRAY_SIZE), into=0)


def test_unrelated_calls_in_between_do_not_prevent_fusion():
    def step(x, a):
        y = tf.sin(x)
        b = tf.reverse(a, [0])
        y = y * 2.0
        return [y + 1.0, tf.reverse(b, [1])]

    (group,) = assert_fuses(step, random_tensor(LARGE_ARRAY_SIZE), random_tensor(2, 3))
    assert names(group) == ["sin", "multiply", "add"]


def test_fusion_does_not_create_circular_dependencies():
    def step(x):
        y = tf.sin(x) * 2.0
        return [tf.cos(y) * tf.reverse(y, [0])]

    (group,) = assert_fuses(step, random_tensor(LARGE_ARRAY_SIZE))
    assert names(group) == ["sin", "multiply", "cos"]


def test_two_chains_are_merged():
    (group,) = assert_fuses(
        lambda a, b: [tf.sin(a) + tf.cos(b)],
        random_tensor(LARGE_ARRAY_SIZE),
        random_tensor(LARGE_ARRAY_SIZE),
    )
    assert names(group) == ["sin", "cos", "add"]


def test_chains_with_mutual_dependencies_are_not_merged():
    def step(a, b):
        p, q = tf.exp(tf.sin(a)), tf.cos(b)
        p = p * tf.reverse(q, [0])  # p's chain depends on q's
        q = tf.tanh(q) * 2.0
        return [p, q, p + q]

    first, second = assert_fuses(
        step, random_tensor(LARGE_ARRAY_SIZE), random_tensor(LARGE_ARRAY_SIZE), into=2
    )
    assert names(first) == ["cos", "tanh", "multiply"]
    assert names(second) == ["sin", "exp", "multiply", "add"]


def test_arrays_of_different_shapes_are_fused_separately():
    def step(a, b):
        return [tf.sin(a) * 2.0, tf.cos(b) * 2.0]

    assert_fuses(step, random_tensor(LARGE_ARRAY_SIZE), random_tensor(2, LARGE_ARRAY_SIZE), into=2)


def test_only_values_read_outside_the_group_are_written():
    def step(x):
        y = tf.sin(x)
        z = tf.exp(y)
        return [z * 2.0, tf.reverse(y, [0])]

    (group,) = assert_fuses(step, random_tensor(LARGE_ARRAY_SIZE))
    y, z = group.calls[0].outputs[0], group.calls[-1].outputs[0]
    assert group.outputs == (y, z)


def test_unused_calls_are_dropped():
    recorded, kept = record(
        lambda x: [tf.sin(x), tf.exp(tf.cos(x)) * 2.0][:1], random_tensor(LARGE_ARRAY_SIZE)
    )

    assert fuse(recorded.calls, recorded.specs, kept) == recorded.calls[:1]


# Broadcasting

SHAPES = {
    "scalars": ((LARGE_ARRAY_SIZE,), (), (1,)),
    "rows": ((LARGE_ARRAY_SIZE // 64, 64), (64,), (1, 64)),
    "columns": ((LARGE_ARRAY_SIZE // 64, 64), (LARGE_ARRAY_SIZE // 64, 1), ()),
    "both": ((LARGE_ARRAY_SIZE // 64, 64), (64,), (LARGE_ARRAY_SIZE // 64, 1)),
    "middle": ((64, 32, 64), (64, 1, 64), (32, 1)),
    "batches": ((64, 32, 64), (32, 64), (64, 1, 1)),
    "none": ((64, 32, 64), (64, 32, 64), (64, 32, 64)),
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_inputs_are_broadcast(shapes):
    def step(a, b, c):
        return [tf.sin(a) * b + c]

    full, *smaller = shapes
    (group,) = assert_fuses(
        step, random_tensor(*full), *(random_tensor(*s, seed=1) for s in smaller)
    )
    assert len(group.calls) == 3


def test_a_row_longer_than_a_block_is_not_fused():
    step = lambda a, b: [(a + b) * 2.0]  # noqa: E731

    assert_fuses(
        step, random_tensor(2, 2 * LARGE_ARRAY_SIZE), random_tensor(2 * LARGE_ARRAY_SIZE), into=0
    )


def test_a_broadcast_is_not_materialized():
    def step(x, s):
        return [tf.sin(x) * tf.broadcast_to(s, x.shape)]

    (group,) = assert_fuses(step, random_tensor(LARGE_ARRAY_SIZE), random_tensor())
    assert names(group) == ["sin", "multiply"]


def test_a_broadcast_that_is_a_result_is_kept():
    def step(x, s):
        wide = tf.broadcast_to(s, x.shape)
        return [tf.sin(x) * wide, wide]

    assert_fuses(step, random_tensor(LARGE_ARRAY_SIZE), random_tensor())


def test_a_function_of_a_broadcast_has_the_full_shape():
    def step(s):
        wide = tf.broadcast_to(s, [LARGE_ARRAY_SIZE])
        return [tf.reduce_sum(tf.nn.elu(wide)), tf.nn.elu(wide) * 2.0]

    assert_fuses(step, random_tensor(), into=2)


def test_multiplications_by_constant_ones_are_removed():
    ones, twos = (wrap(np.broadcast_to(np.float32(n), LARGE_ARRAY_SIZE)) for n in (1, 2))
    recorded, kept = record(lambda x: [tf.sin(x) * ones * twos], random_tensor(LARGE_ARRAY_SIZE))
    constants = {v: a for v, a in inputs_of(recorded).items() if v}
    (group,) = fuse(recorded.calls, recorded.specs, kept, constants=constants)

    assert names(group) == ["sin", "multiply"]
    values = replay([group], inputs_of(recorded))
    for v in kept:
        assert_same(values[v], recorded.arrays[v])


# Sums


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "size", [LARGE_ARRAY_SIZE, LARGE_ARRAY_SIZE + 1, 3 * LARGE_ARRAY_SIZE + 77, 1_000_000]
)
def test_sums_are_bit_for_bit_identical_to_numpy(size, dtype):
    def step(x):
        y = tf.exp(x)
        return [tf.reduce_sum(y), tf.reduce_mean(y)]

    (group,) = assert_fuses(step, random_tensor(size, dtype=dtype))
    assert names(group) == ["exp", "sum", "mean"]


def test_sums_over_all_axes_support_keepdims_and_any_axis_order():
    def step(x):
        y = tf.exp(x)
        return [tf.reduce_sum(y, keepdims=True), tf.reduce_mean(y, axis=[1, 0])]

    (group,) = assert_fuses(step, random_tensor(64, LARGE_ARRAY_SIZE // 64))
    assert names(group) == ["exp", "sum", "mean"]


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.complex64])
def test_sums_of_other_dtypes_are_not_fused(dtype):
    (group,) = assert_fuses(
        lambda x: [tf.reduce_sum(x * x + x)], random_tensor(LARGE_ARRAY_SIZE, dtype=dtype)
    )

    assert names(group) == ["multiply", "add"]


def test_sums_over_some_axes_are_not_fused():
    def step(x):
        y = tf.exp(x) * 2.0
        return [tf.reduce_sum(y, axis=0), tf.reduce_sum(y, axis=1)]

    (group,) = assert_fuses(step, random_tensor(64, LARGE_ARRAY_SIZE // 64))
    assert names(group) == ["exp", "multiply"]


# Every elementwise primitive


@pytest.fixture
def small_blocks(monkeypatch):
    """Lowers the thresholds, so that small arrays are fused."""
    monkeypatch.setattr(grouping, "LARGE_ARRAY_SIZE", 100)
    monkeypatch.setattr(grouping, "FUSED_BLOCK_SIZE", 200)
    monkeypatch.setattr(fused_module, "FUSED_BLOCK_SIZE", 200)
    monkeypatch.setattr(fused_module, "MIN_FUSED_THREADED_WORK", 2000)
    monkeypatch.setattr(_sums, "as_product", lambda *_: None)  # pairwise, as for large arrays


def elementwise_cases():
    for case in CASES:
        name = case.primitive.name
        is_elementwise = case.primitive.partials is not None or name in ("cast", "cast_discrete")
        is_noop = name in ("identity", "stop_gradient")
        if (
            is_elementwise
            and not is_noop
            and all(x.size and x.dtype.kind != "O" for x in case.inputs)
        ):
            yield case


def assert_same_when_fused(calls, arrays, kept, dead=frozenset()):
    """Asserts that fused `calls` give the same results. Returns the steps and all values."""
    expected = replay(calls, arrays)
    specs = [Spec.of(np.asarray(expected[v])) for v in range(len(expected))]
    before = {v: a.copy() for v, a in arrays.items()}
    steps = fuse(calls, specs, frozenset(kept), dead)
    actual = replay(steps, arrays)

    for v in kept:
        assert_same(actual[v], expected[v])
    for v, array in arrays.items():
        assert array.tobytes() == before[v].tobytes()
    return steps, actual


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("case", list(elementwise_cases()), ids=str)
def test_every_elementwise_primitive_gives_the_same_result_when_fused(case):
    """Fuses it with a call that reads its result."""
    for dtype in [None, *(d for d in case.accepted if d in FLOATS)]:
        inputs = [np.resize(x, 1001) for x in case.inputs]
        if dtype is not None:
            inputs = [x.astype(dtype) if x.dtype == np.float64 else x for x in inputs]
        n = len(inputs)
        arrays = dict(enumerate([*inputs, np.resize([True, False], 1001)]))
        select = PRIMITIVES["select"]
        calls = [
            Call(case.primitive, tuple(range(n)), case.attrs, (n + 1,)),
            Call(select, (n, n + 1, n + 1), {}, (n + 2,)),
        ]
        for kept in ((n + 2,), (n + 1, n + 2)):
            steps, _ = assert_same_when_fused(calls, arrays, kept)
            assert len(steps) == 1


# Random programs

OPERATIONS = {
    "real": {
        1: "negative square absolute relu sign floor identity zeros_like ones_like",
        2: "add subtract multiply maximum minimum squared_difference",
    },
    "float": {
        1: "sin exp tanh sigmoid reciprocal rsqrt softplus log elu stop_gradient",
        2: "divide guarded_multiply guarded_divide tanh_grad sigmoid_grad divide_no_nan power",
    },
    "complex": {
        1: "negative square exp conjugate identity tanh",
        2: "add subtract multiply divide guarded_multiply tanh_grad",
    },
    "bool": {1: "logical_not identity", 2: "logical_and logical_or logical_xor equal"},
}
COMPARISONS = ("less", "greater_equal", "equal")
DTYPES = ("float32", "float64", "float16", "int32", "complex64", "bool")
FULL_SHAPES = ((700,), (24, 30), (6, 9, 13), (1, 700), (700, 1), (2, 3, 4, 31))


@st.composite
def programs(draw):
    """Draws calls on arrays that broadcast to one shape, with sums and reversals in between."""
    full = draw(st.sampled_from(FULL_SHAPES))
    parts = [full, full, (), full[-1:], (*full[:-1], 1), (1, *full[1:]), full[1:]]
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrays = {
        i: draw_array(draw, generator, draw(st.sampled_from(parts)), draw(st.sampled_from(DTYPES)))
        for i in range(draw(st.integers(2, 5)))
    }
    calls, values = [], dict(arrays)
    for _ in range(draw(st.integers(2, 14))):
        call = draw_call(draw, values, full)
        if call is not None:
            calls.append(call)
            values.update(replay([call], {v: values[v] for v in call.inputs}))
    computed = [y for call in calls for y in call.outputs]
    kept = draw(st.sets(st.sampled_from(computed), min_size=1)) if computed else set()
    return calls, arrays, kept


def draw_array(draw, generator, shape, dtype):
    """Draws an array, possibly with zeros, Inf and NaN, or with another memory layout."""
    x = generator.uniform(-3.0, 3.0, shape)
    if draw(st.booleans()):
        special = generator.choice([0.0, np.inf, -np.inf, np.nan, 1.0], shape)
        x = (
            np.where(generator.random(shape) < 0.05, special, x)
            if np.dtype(dtype).kind == "f"
            else x
        )
    x = np.asarray(x > 0 if dtype == "bool" else x, dtype)
    layout = draw(st.sampled_from(["contiguous", "transposed", "strided", "broadcast"]))
    if layout == "transposed":
        return x.T.copy().T
    if layout == "strided" and x.ndim:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if layout == "broadcast" and x.ndim:
        return np.broadcast_to(x[:1], x.shape)
    return x


def draw_call(draw, values, full):
    """Draws a call on `values`, or `None` if the drawn kind does not apply."""
    kind = draw(st.sampled_from(["elementwise"] * 6 + ["cast", "select", "mask", "other"]))
    x = draw(st.sampled_from(sorted(values)))
    dtype, shape, y = values[x].dtype, values[x].shape, (len(values),)
    same_dtype = [v for v in values if values[v].dtype == dtype]
    conditions = [v for v in values if values[v].dtype == bool]
    if kind == "cast":
        target_dtype = np.dtype(draw(st.sampled_from(["float32", "float64"])))
        return (
            None
            if dtype.kind == "c"
            else Call(PRIMITIVES["cast"], (x,), {"dtype": target_dtype}, y)
        )
    if kind in ("select", "mask"):
        if not conditions:
            return None
        keep, other = draw(st.sampled_from(conditions)), draw(st.sampled_from(same_dtype))
        inputs = (keep, x, other) if kind == "select" else (x, keep)
        return Call(PRIMITIVES[kind], inputs, {}, y)
    if kind == "other":
        return draw_reduction_or_view(draw, x, shape, dtype, full, y)
    names_by_arity = {1: [], 2: []}
    for family in {"f": ("real", "float"), "i": ("real",), "c": ("complex",)}.get(
        dtype.kind, ("bool",)
    ):
        for arity, names in OPERATIONS[family].items():
            names_by_arity[arity] += names.split()
    if dtype.kind in "fi":
        names_by_arity[2] += COMPARISONS
    arity = draw(st.sampled_from([1, 2]))
    inputs = (x, draw(st.sampled_from(same_dtype)))[:arity]
    return Call(PRIMITIVES[draw(st.sampled_from(names_by_arity[arity]))], inputs, {}, y)


def draw_reduction_or_view(draw, x, shape, dtype, full, y):
    if draw(st.booleans()) and dtype.kind in "fc":
        attrs = {"axis": tuple(range(len(shape))), "keepdims": draw(st.booleans())}
        return Call(PRIMITIVES[draw(st.sampled_from(["sum", "mean"]))], (x,), attrs, y)
    if draw(st.booleans()) and shape:
        return Call(PRIMITIVES["reverse"], (x,), {"axis": (0,)}, y)
    return Call(PRIMITIVES["broadcast_to"], (x,), {"shape": np.broadcast_shapes(shape, full)}, y)


@pytest.mark.usefixtures("small_blocks")
@settings(max_examples=150, deadline=None)
@given(programs())
def test_random_programs_give_the_same_results_when_fused(program):
    calls, arrays, kept = program
    steps, actual = assert_same_when_fused(calls, arrays, kept)

    event(f"{sum(isinstance(step, Fused) for step in steps)} fused")
    for step in steps:
        if isinstance(step, Fused):
            for y in step.outputs:
                assert not any(np.shares_memory(actual[y], a) for a in arrays.values())
    assert_same_when_fused(calls, arrays, kept, dead=without_views(calls))


def without_views(calls):
    """Returns the values that are not views, and that have no views."""
    producers = {call.outputs[0]: call.primitive.name for call in calls}
    views = ("reverse", "broadcast_to", "identity", "stop_gradient")
    viewed = {v for call in calls if call.primitive.name in views for v in call.inputs}
    return frozenset(v for v, name in producers.items() if name not in views and v not in viewed)


# Memory, threads, errors


def test_the_memory_of_dead_inputs_is_reused():
    recorded, kept = record(lambda x: [tf.exp(x) * 2.0 + x], random_tensor(LARGE_ARRAY_SIZE))
    (y,) = kept
    (group,) = fuse(recorded.calls, recorded.specs, kept, dead=frozenset({0}))
    x = recorded.arrays[0].copy()

    (result,) = compile_step(group)(x, np.float32(2))

    assert result is x
    assert_same(result, recorded.arrays[y])


def test_constants_that_only_start_with_the_identity_element_are_kept():
    x, factor, offset = (
        random_tensor(LARGE_ARRAY_SIZE, dtype=np.float64),
        np.arange(1.0, LARGE_ARRAY_SIZE + 1),
        np.arange(LARGE_ARRAY_SIZE),
    )
    f = tf.function(lambda x: tf.exp(tf.sin(x)) * factor + offset.astype(float))

    for _ in range(3):
        y = f(x)

    np.testing.assert_allclose(y, np.exp(np.sin(x)) * factor + offset, rtol=1e-12)


def test_memory_is_not_reused_while_it_is_still_read():
    def step(x):
        y = tf.sin(x)
        return [y * 2.0, y + x]

    recorded, kept = record(step, random_tensor(LARGE_ARRAY_SIZE))
    steps = fuse(recorded.calls, recorded.specs, kept, dead=frozenset({0}))
    inputs = {v: a.copy() for v, a in inputs_of(recorded).items()}
    values = replay(steps, inputs)

    for v in kept:
        assert_same(values[v], recorded.arrays[v])
    # Only the last result reuses the input's memory.
    assert sum(values[v] is inputs[0] for v in kept) == 1


def test_memory_that_a_later_call_reads_is_not_reused():
    def step(x):
        return [tf.exp(x) * 2.0, tf.reverse(x, [0])]

    recorded, kept = record(step, random_tensor(LARGE_ARRAY_SIZE))
    steps = fuse(recorded.calls, recorded.specs, kept, dead=frozenset({0}))
    values = replay(steps, {v: a.copy() for v, a in inputs_of(recorded).items()})

    for v in kept:
        assert_same(values[v], recorded.arrays[v])


@pytest.mark.parametrize("layout", ["transposed", "read-only"])
def test_transposed_and_read_only_memory_is_not_reused(layout):
    recorded, kept = record(lambda x: [tf.exp(x) * 2.0], random_tensor(64, LARGE_ARRAY_SIZE // 64))
    (y,) = kept
    (group,) = fuse(recorded.calls, recorded.specs, kept, dead=frozenset({0}))
    x = recorded.arrays[0].T.copy().T if layout == "transposed" else recorded.arrays[0].copy()
    x.flags.writeable = layout != "read-only"

    (result,) = compile_step(group)(x, np.float32(2))

    assert not np.shares_memory(result, x)
    assert_same(result, recorded.arrays[y])


@pytest.mark.parametrize("limit", [1, 2])
def test_results_do_not_depend_on_the_number_of_threads(monkeypatch, limit):
    monkeypatch.setattr(blocks, "limit", limit)

    assert_fuses(
        lambda x: [tf.reduce_sum(tf.exp(tf.sin(x))), tf.tanh(x) + x], random_tensor(1 << 20), into=2
    )


def test_several_threads_can_run_a_group_at_once():
    recorded, kept = record(lambda x: [tf.exp(tf.sin(x)) + x], random_tensor(1 << 20))
    (group,) = fuse(recorded.calls, recorded.specs, kept)
    (y,) = kept
    run, results = compile_step(group), []

    def work():
        results.extend(run(recorded.arrays[0]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(results) == 4
    for result in results:
        assert_same(result, recorded.arrays[y])


@pytest.mark.parametrize("index", [0, LARGE_ARRAY_SIZE // 2, 8 * LARGE_ARRAY_SIZE - 1])
def test_an_error_in_a_block_is_raised(index):
    a = tf.constant(np.arange(1, 8 * LARGE_ARRAY_SIZE + 1, dtype=np.int32))
    recorded, kept = record(lambda a, b: [tf.abs(a // b) + a], a, a)
    (group,) = fuse(recorded.calls, recorded.specs, kept)
    b = recorded.arrays[0].copy()
    b[index] = 0

    with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"):
        compile_step(group)(b)


SOURCE = """\
def fused_0(v0, v1):
    v3 = np.empty((2048, 64), float32)
    v6 = np.empty((2048, 64), float32)
    a0 = v0.reshape((2048, 64))
    a1 = v1.reshape((64,))
    a3 = v3.reshape((2048, 64))
    a6 = v6.reshape((2048, 64))

    def work(blocks):
        row0 = np.empty((512, 64), float32)
        for start, stop in blocks:
            x0 = a0[start:stop]
            x3 = a3[start:stop]
            x6 = a6[start:stop]
            r0 = row0[: stop - start]
            x2 = np.add(x0, a1, out=r0)
            relu_kernel(x2, out=x3)
            x4 = np.multiply(x3, x3, out=r0)
            x5 = np.tanh(x4, out=r0)
            np.subtract(x5, x0, out=x6)

    run_shared(work, block_bounds(2048, 512), extra_threads())
    return (v3, v6,)
"""


def test_the_generated_source():
    def step(x, row):
        y = tf.nn.relu(x + row)
        return [y, tf.tanh(y * y) - x]

    (group,) = assert_fuses(step, random_tensor(2048, 64), random_tensor(64))
    writer = SourceWriter()
    group.write(writer, "fused_0")
    assert writer.source == SOURCE
    assert repr(group) == "<fused on (2048, 64): add, relu, multiply, tanh, subtract>"


LARGE = MIN_FREED_BYTES // 4  # replays fuse calls on at least this many float32 elements


def test_a_segment_between_guards_checks_only_its_own_constants(monkeypatch):
    monkeypatch.setattr(grouping, "LARGE_ARRAY_SIZE", 2)
    checked = []
    is_uniform = grouping._is_uniform
    monkeypatch.setattr(grouping, "_is_uniform", lambda x: checked.append(x) or is_uniform(x))
    segments = 30

    @tf.function
    def f(x):
        for i in range(segments):
            x = tf.sin(x * tf.constant(i + 2.0)) + x
            if tf.reduce_sum(x) > 1e9:
                return -x
        return x

    x = tf.constant(np.linspace(1.0, 2.0, LARGE, dtype=np.float32))
    np.testing.assert_array_equal(f(x), f(x))
    assert 0 < len(checked) <= 2 * segments


def test_the_generated_source_does_not_shadow_bool(monkeypatch):
    monkeypatch.setattr(grouping, "LARGE_ARRAY_SIZE", 2)

    @tf.function
    def f(x):
        y = tf.where(tf.sin(x) > 0.5, x, -x)
        return y if tf.reduce_sum(y) > 0.0 else y * 2.0

    for values in ([1.0, 2.0], [3.0, 4.0], [-3.0, 1.5], [2.0, 1.0]):
        x = tf.constant(np.resize(np.float32(values), LARGE))
        np.testing.assert_array_equal(f(x), f.python_function(x))
