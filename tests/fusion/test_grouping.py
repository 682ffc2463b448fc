"""Fused calls: the numbers of the single ones, to the last bit, in fewer passes over memory."""

import threading

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import retrograde as tf
from retrograde.core.apply import MANY, PRIMITIVES
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
from tests.ops.cases import CASES, FLOATS
from tests.ops.cases._table import BFLOAT16


class Listing(Recorder):
    """Writes down calls over numbered values, with the array of each."""

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


def listing_of(step, *tensors):
    """What `step(*tensors)` does, and the numbers of its results."""
    listing = Listing()
    with use_recorders([listing]):
        results = step(*tensors)
    return listing, frozenset(listing.numbers[r._id] for r in results)


def compiled(step):
    """The function that a Fused stands for."""
    writer = SourceWriter()
    step.write(writer, "fused")
    return writer.define("fused", "fused")


def replay(steps, known):
    """The arrays of all values after `steps`, run as the source says; `known` are the inputs."""
    values = dict(known)
    for step in steps:
        arrays = [values[v] for v in step.inputs]
        if isinstance(step, Fused):
            results = quiet_context().run(compiled(step), *arrays)
        else:
            results = quiet_context().run(step.primitive, *arrays, **step.attrs)
            results = results if step.primitive.outputs else (results,)
        values.update(zip(step.outputs, results, strict=True))
    return values


def inputs_of(listing):
    made = {y for call in listing.calls for y in call.outputs}
    return {v: a for v, a in enumerate(listing.arrays) if v not in made}


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
    """That `step` gives the same when fused into so many pieces; they are returned."""
    listing, kept = listing_of(step, *tensors)
    steps = fuse(listing.calls, listing.specs, kept)
    values = replay(steps, inputs_of(listing))

    for v in kept:
        assert_same(values[v], listing.arrays[v])
    pieces = [piece for piece in steps if isinstance(piece, Fused)]
    assert len(pieces) == into
    return pieces


def names(piece):
    return [call.primitive.name for call in piece.calls]


def numbers(*shape, dtype=np.float32, seed=0):
    generator = np.random.default_rng(seed)
    return tf.constant(generator.uniform(-2.0, 2.0, shape).astype(dtype))


# What is fused


def test_forward_and_backward_of_a_chain_become_one():
    x = tf.Variable(numbers(MANY + 3))

    def step():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.sin(x) * tf.exp(x) + tf.tanh(x))
        return [y, tape.gradient(y, x)]

    (piece,) = assert_fuses(step)
    assert {"sin", "tanh_grad", "sum"} < set(names(piece))
    assert len(piece.inputs) == 2  # the variable, and the one that the gradient starts with
    assert len(piece.outputs) == 2


def test_small_arrays_are_left_alone():
    x = numbers(MANY - 1)

    assert_fuses(lambda x: [tf.exp(tf.sin(x))], x, into=0)


def test_a_single_call_is_left_alone():
    assert_fuses(lambda x: [tf.sin(x)], numbers(MANY), into=0)


def test_calls_in_between_do_not_disturb():
    def step(x, a):
        y = tf.sin(x)
        b = tf.reverse(a, [0])
        y = y * 2.0
        return [y + 1.0, tf.reverse(b, [1])]

    (piece,) = assert_fuses(step, numbers(MANY), numbers(2, 3))
    assert names(piece) == ["sin", "multiply", "add"]


def test_what_waits_for_others_is_not_fused_with_what_they_wait_for():
    def step(x):
        y = tf.sin(x) * 2.0
        return [tf.cos(y) * tf.reverse(y, [0])]

    (piece,) = assert_fuses(step, numbers(MANY))
    assert names(piece) == ["sin", "multiply", "cos"]


def test_two_chains_meet():
    (piece,) = assert_fuses(lambda a, b: [tf.sin(a) + tf.cos(b)], numbers(MANY), numbers(MANY))
    assert names(piece) == ["sin", "cos", "add"]


def test_chains_of_which_each_reads_what_was_made_of_the_other_stay_apart():
    def step(a, b):
        p, q = tf.exp(tf.sin(a)), tf.cos(b)
        p = p * tf.reverse(q, [0])  # p's chain waits for q's …
        q = tf.tanh(q) * 2.0
        return [p, q, p + q]

    first, second = assert_fuses(step, numbers(MANY), numbers(MANY), into=2)
    assert names(first) == ["cos", "tanh", "multiply"]
    assert names(second) == ["sin", "exp", "multiply", "add"]


def test_arrays_of_different_shapes_are_fused_apart():
    def step(a, b):
        return [tf.sin(a) * 2.0, tf.cos(b) * 2.0]

    assert_fuses(step, numbers(MANY), numbers(2, MANY), into=2)


def test_only_what_is_read_outside_is_written():
    def step(x):
        y = tf.sin(x)
        z = tf.exp(y)
        return [z * 2.0, tf.reverse(y, [0])]

    (piece,) = assert_fuses(step, numbers(MANY))
    y, z = piece.calls[0].outputs[0], piece.calls[-1].outputs[0]
    assert piece.outputs == (y, z)


def test_what_nobody_needs_is_left_out():
    listing, kept = listing_of(lambda x: [tf.sin(x), tf.exp(tf.cos(x)) * 2.0][:1], numbers(MANY))

    assert fuse(listing.calls, listing.specs, kept) == listing.calls[:1]


# Broadcasting

SHAPES = {
    "numbers": ((MANY,), (), (1,)),
    "rows": ((MANY // 64, 64), (64,), (1, 64)),
    "columns": ((MANY // 64, 64), (MANY // 64, 1), ()),
    "both": ((MANY // 64, 64), (64,), (MANY // 64, 1)),
    "middle": ((64, 32, 64), (64, 1, 64), (32, 1)),
    "batches": ((64, 32, 64), (32, 64), (64, 1, 1)),
    "none": ((64, 32, 64), (64, 32, 64), (64, 32, 64)),
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_inputs_are_broadcast(shapes):
    def step(a, b, c):
        return [tf.sin(a) * b + c]

    whole, *smaller = shapes
    (piece,) = assert_fuses(step, numbers(*whole), *(numbers(*s, seed=1) for s in smaller))
    assert len(piece.calls) == 3


def test_a_row_too_long_for_a_block_is_left_alone():
    step = lambda a, b: [(a + b) * 2.0]  # noqa: E731

    assert_fuses(step, numbers(2, 2 * MANY), numbers(2 * MANY), into=0)


def test_a_broadcast_is_no_array_of_its_own():
    def step(x, s):
        return [tf.sin(x) * tf.broadcast_to(s, x.shape)]

    (piece,) = assert_fuses(step, numbers(MANY), numbers())
    assert names(piece) == ["sin", "multiply"]


def test_a_broadcast_that_is_read_elsewhere_stays():
    def step(x, s):
        wide = tf.broadcast_to(s, x.shape)
        return [tf.sin(x) * wide, wide]

    assert_fuses(step, numbers(MANY), numbers())


def test_a_function_of_a_broadcast_alone_has_all_its_elements():
    def step(s):
        wide = tf.broadcast_to(s, [MANY])
        return [tf.reduce_sum(tf.nn.elu(wide)), tf.nn.elu(wide) * 2.0]

    assert_fuses(step, numbers(), into=2)


def test_constants_with_one_number_all_over_are_not_multiplied_where_it_is_1():
    ones, twos = (wrap(np.broadcast_to(np.float32(n), MANY)) for n in (1, 2))
    listing, kept = listing_of(lambda x: [tf.sin(x) * ones * twos], numbers(MANY))
    constants = {v: a for v, a in inputs_of(listing).items() if v}
    (piece,) = fuse(listing.calls, listing.specs, kept, constants=constants)

    assert names(piece) == ["sin", "multiply"]
    values = replay([piece], inputs_of(listing))
    for v in kept:
        assert_same(values[v], listing.arrays[v])


# Sums


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [MANY, MANY + 1, 3 * MANY + 77, 1_000_000])
def test_sums_are_those_of_numpy_to_the_last_bit(size, dtype):
    def step(x):
        y = tf.exp(x)
        return [tf.reduce_sum(y), tf.reduce_mean(y)]

    (piece,) = assert_fuses(step, numbers(size, dtype=dtype))
    assert names(piece) == ["exp", "sum", "mean"]


def test_sums_over_several_axes_keep_the_shape():
    def step(x):
        y = tf.exp(x)
        return [tf.reduce_sum(y, keepdims=True), tf.reduce_mean(y, axis=[1, 0])]

    (piece,) = assert_fuses(step, numbers(64, MANY // 64))
    assert names(piece) == ["exp", "sum", "mean"]


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.complex64])
def test_sums_that_numpy_adds_up_otherwise_are_left_to_it(dtype):
    (piece,) = assert_fuses(lambda x: [tf.reduce_sum(x * x + x)], numbers(MANY, dtype=dtype))

    assert names(piece) == ["multiply", "add"]


def test_sums_over_some_axes_are_left_alone():
    def step(x):
        y = tf.exp(x) * 2.0
        return [tf.reduce_sum(y, axis=0), tf.reduce_sum(y, axis=1)]

    (piece,) = assert_fuses(step, numbers(64, MANY // 64))
    assert names(piece) == ["exp", "multiply"]


# Every elementwise primitive


@pytest.fixture
def small_blocks(monkeypatch):
    """Few elements are many, so that tests of many programs are quick."""
    monkeypatch.setattr(grouping, "MANY", 100)
    monkeypatch.setattr(grouping, "BLOCK", 200)
    monkeypatch.setattr(fused_module, "BLOCK", 200)
    monkeypatch.setattr(fused_module, "_WORTH_A_THREAD", 2000)
    monkeypatch.setattr(_sums, "as_product", lambda *_: None)  # as many are added: by pairs


def elementwise_cases():
    for case in CASES:
        name = case.primitive.name
        is_elementwise = case.primitive.partials is not None or name in ("cast", "cast_discrete")
        is_work = name not in ("identity", "stop_gradient")
        if is_elementwise and is_work and all(x.size and x.dtype.kind != "O" for x in case.inputs):
            yield case


def assert_same_when_fused(calls, arrays, kept, dead=frozenset()):
    """Runs `calls` one by one and fused; the steps and all values are returned."""
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
def test_every_elementwise_primitive_is_the_same_in_blocks(case):
    """Its result, read by a second call, and kept itself."""
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
WHOLE = ((700,), (24, 30), (6, 9, 13), (1, 700), (700, 1), (2, 3, 4, 31))


@st.composite
def programs(draw):
    """Calls over arrays that broadcast to one shape, with sums and turned arrays in between."""
    whole = draw(st.sampled_from(WHOLE))
    parts = [whole, whole, (), whole[-1:], (*whole[:-1], 1), (1, *whole[1:]), whole[1:]]
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrays = {
        i: draw_array(draw, generator, draw(st.sampled_from(parts)), draw(st.sampled_from(DTYPES)))
        for i in range(draw(st.integers(2, 5)))
    }
    calls, values = [], dict(arrays)
    for _ in range(draw(st.integers(2, 14))):
        call = draw_call(draw, values, whole)
        if call is not None:
            calls.append(call)
            values.update(replay([call], {v: values[v] for v in call.inputs}))
    made = [y for call in calls for y in call.outputs]
    kept = draw(st.sets(st.sampled_from(made), min_size=1)) if made else set()
    return calls, arrays, kept


def draw_array(draw, generator, shape, dtype):
    """Now and then with zeros, inf and nan, or with its elements in another order in memory."""
    x = generator.uniform(-3.0, 3.0, shape)
    if draw(st.booleans()):
        odd = generator.choice([0.0, np.inf, -np.inf, np.nan, 1.0], shape)
        x = np.where(generator.random(shape) < 0.05, odd, x) if np.dtype(dtype).kind == "f" else x
    x = np.asarray(x > 0 if dtype == "bool" else x, dtype)
    form = draw(st.sampled_from(["plain", "turned", "every other", "stretched"]))
    if form == "turned":
        return x.T.copy().T
    if form == "every other" and x.ndim:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if form == "stretched" and x.ndim:
        return np.broadcast_to(x[:1], x.shape)
    return x


def draw_call(draw, values, whole):
    """One more call on `values`, or `None` if there is none of the kind that was drawn."""
    kind = draw(st.sampled_from(["elementwise"] * 6 + ["cast", "select", "mask", "other"]))
    x = draw(st.sampled_from(sorted(values)))
    dtype, shape, y = values[x].dtype, values[x].shape, (len(values),)
    alike = [v for v in values if values[v].dtype == dtype]
    conditions = [v for v in values if values[v].dtype == bool]
    if kind == "cast":
        to = np.dtype(draw(st.sampled_from(["float32", "float64"])))
        return None if dtype.kind == "c" else Call(PRIMITIVES["cast"], (x,), {"dtype": to}, y)
    if kind in ("select", "mask"):
        if not conditions:
            return None
        keep, other = draw(st.sampled_from(conditions)), draw(st.sampled_from(alike))
        inputs = (keep, x, other) if kind == "select" else (x, keep)
        return Call(PRIMITIVES[kind], inputs, {}, y)
    if kind == "other":
        return draw_other(draw, x, shape, dtype, whole, y)
    names = {1: [], 2: []}
    for family in {"f": ("real", "float"), "i": ("real",), "c": ("complex",)}.get(
        dtype.kind, ("bool",)
    ):
        for count, text in OPERATIONS[family].items():
            names[count] += text.split()
    if dtype.kind in "fi":
        names[2] += COMPARISONS
    count = draw(st.sampled_from([1, 2]))
    inputs = (x, draw(st.sampled_from(alike)))[:count]
    return Call(PRIMITIVES[draw(st.sampled_from(names[count]))], inputs, {}, y)


def draw_other(draw, x, shape, dtype, whole, y):
    if draw(st.booleans()) and dtype.kind in "fc":
        attrs = {"axis": tuple(range(len(shape))), "keepdims": draw(st.booleans())}
        return Call(PRIMITIVES[draw(st.sampled_from(["sum", "mean"]))], (x,), attrs, y)
    if draw(st.booleans()) and shape:
        return Call(PRIMITIVES["reverse"], (x,), {"axis": (0,)}, y)
    return Call(PRIMITIVES["broadcast_to"], (x,), {"shape": np.broadcast_shapes(shape, whole)}, y)


@pytest.mark.usefixtures("small_blocks")
@settings(max_examples=150, deadline=None)
@given(programs())
def test_random_programs_give_the_same_fused(program):
    calls, arrays, kept = program
    steps, actual = assert_same_when_fused(calls, arrays, kept)

    event(f"{sum(isinstance(step, Fused) for step in steps)} fused")
    for step in steps:
        if isinstance(step, Fused):
            for y in step.outputs:
                assert not any(np.shares_memory(actual[y], a) for a in arrays.values())
    assert_same_when_fused(calls, arrays, kept, dead=fresh(calls))


def fresh(calls):
    """The values with an array of their own, into which no other looks."""
    makers = {call.outputs[0]: call.primitive.name for call in calls}
    views = ("reverse", "broadcast_to", "identity", "stop_gradient")
    seen = {v for call in calls if call.primitive.name in views for v in call.inputs}
    return frozenset(v for v, name in makers.items() if name not in views and v not in seen)


# Memory, threads, errors


def dead_of(listing, kept):
    return frozenset(range(len(listing.arrays))) - kept


def test_the_memory_of_dead_inputs_is_written_over():
    listing, kept = listing_of(lambda x: [tf.exp(x) * 2.0 + x], numbers(MANY))
    (y,) = kept
    (piece,) = fuse(listing.calls, listing.specs, kept, dead=frozenset({0}))
    x = listing.arrays[0].copy()

    (result,) = compiled(piece)(x, np.float32(2))

    assert result is x
    assert_same(result, listing.arrays[y])


def test_constants_that_begin_with_one_or_zero_are_not_left_out():
    x, factor, offset = numbers(MANY, dtype=np.float64), np.arange(1.0, MANY + 1), np.arange(MANY)
    f = tf.function(lambda x: tf.exp(tf.sin(x)) * factor + offset.astype(float))

    for _ in range(3):
        y = f(x)

    np.testing.assert_allclose(y, np.exp(np.sin(x)) * factor + offset, rtol=1e-12)


def test_memory_is_not_written_over_while_it_is_still_read():
    def step(x):
        y = tf.sin(x)
        return [y * 2.0, y + x]

    listing, kept = listing_of(step, numbers(MANY))
    steps = fuse(listing.calls, listing.specs, kept, dead=frozenset({0}))
    known = {v: a.copy() for v, a in inputs_of(listing).items()}
    values = replay(steps, known)

    for v in kept:
        assert_same(values[v], listing.arrays[v])
    assert sum(values[v] is known[0] for v in kept) == 1  # the last one took it


def test_memory_that_a_later_call_reads_is_not_written_over():
    def step(x):
        return [tf.exp(x) * 2.0, tf.reverse(x, [0])]

    listing, kept = listing_of(step, numbers(MANY))
    steps = fuse(listing.calls, listing.specs, kept, dead=frozenset({0}))
    values = replay(steps, {v: a.copy() for v, a in inputs_of(listing).items()})

    for v in kept:
        assert_same(values[v], listing.arrays[v])


@pytest.mark.parametrize("form", ["turned", "read-only"])
def test_memory_of_another_form_is_not_written_over(form):
    listing, kept = listing_of(lambda x: [tf.exp(x) * 2.0], numbers(64, MANY // 64))
    (y,) = kept
    (piece,) = fuse(listing.calls, listing.specs, kept, dead=frozenset({0}))
    x = listing.arrays[0].T.copy().T if form == "turned" else listing.arrays[0].copy()
    x.flags.writeable = form != "read-only"

    (result,) = compiled(piece)(x, np.float32(2))

    assert not np.shares_memory(result, x)
    assert_same(result, listing.arrays[y])


@pytest.mark.parametrize("limit", [1, 2])
def test_any_number_of_threads_gives_the_same(monkeypatch, limit):
    monkeypatch.setattr(blocks, "limit", limit)

    assert_fuses(
        lambda x: [tf.reduce_sum(tf.exp(tf.sin(x))), tf.tanh(x) + x], numbers(1 << 20), into=2
    )


def test_several_threads_at_once():
    listing, kept = listing_of(lambda x: [tf.exp(tf.sin(x)) + x], numbers(1 << 20))
    (piece,) = fuse(listing.calls, listing.specs, kept)
    (y,) = kept
    run, results = compiled(piece), []

    def work():
        results.extend(run(listing.arrays[0]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(results) == 4
    for result in results:
        assert_same(result, listing.arrays[y])


@pytest.mark.parametrize("place", [0, MANY // 2, 8 * MANY - 1])
def test_an_error_in_a_block_is_raised(place):
    a = tf.constant(np.arange(1, 8 * MANY + 1, dtype=np.int32))
    listing, kept = listing_of(lambda a, b: [tf.abs(a // b) + a], a, a)
    (piece,) = fuse(listing.calls, listing.specs, kept)
    b = listing.arrays[0].copy()
    b[place] = 0

    with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"):
        compiled(piece)(b)


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

    shared(work, shorter_halves(2048, 512), helpers())
    return (v3, v6,)
"""


def test_the_source_reads_well():
    def step(x, row):
        y = tf.nn.relu(x + row)
        return [y, tf.tanh(y * y) - x]

    (piece,) = assert_fuses(step, numbers(2048, 64), numbers(64))
    writer = SourceWriter()
    piece.write(writer, "fused_0")
    assert writer.source == SOURCE
    assert repr(piece) == "<fused on (2048, 64): add, relu, multiply, tanh, subtract>"


def test_a_part_between_guards_looks_at_its_own_constants_only(monkeypatch):
    monkeypatch.setattr(grouping, "MANY", 2)
    looked_at = []
    is_uniform = grouping._is_uniform
    monkeypatch.setattr(grouping, "_is_uniform", lambda x: looked_at.append(x) or is_uniform(x))
    parts = 30

    @tf.function
    def f(x):
        for i in range(parts):
            x = tf.sin(x * tf.constant(i + 2.0)) + x
            if tf.reduce_sum(x) > 1e9:
                return -x
        return x

    x = tf.constant([1.0, 2.0])
    np.testing.assert_array_equal(f(x), f(x))
    assert 0 < len(looked_at) <= 2 * parts


def test_fused_booleans_leave_python_its_bool(monkeypatch):
    monkeypatch.setattr(grouping, "MANY", 2)

    @tf.function
    def f(x):
        y = tf.where(tf.sin(x) > 0.5, x, -x)
        return y if tf.reduce_sum(y) > 0.0 else y * 2.0

    for values in ([1.0, 2.0], [3.0, 4.0], [-3.0, 1.5], [2.0, 1.0]):
        x = tf.constant(values)
        np.testing.assert_array_equal(f(x), f.python_function(x))
