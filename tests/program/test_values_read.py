"""Tests operations that read values, such as indices, inside tf.function.

One trace serves all values. If the shape of a result depends on values, each shape has a trace.
"""

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

RNG = np.random.default_rng(0)


def floats(*shape):
    return tf.constant(RNG.uniform(0.1, 0.9, shape).astype(np.float32))


def integers(high, *shape):
    return tf.constant(RNG.integers(0, high, shape))


def boxes(*batch_shape):
    corner, size = RNG.uniform(0, 0.5, (*batch_shape, 2)), RNG.uniform(0.1, 0.5, (*batch_shape, 2))
    return tf.constant(np.concatenate([corner, corner + size], -1).astype(np.float32))


def pixels(*shape):
    return tf.constant(RNG.integers(0, 256, shape).astype(np.uint8))


def strings(*choices):
    return tf.constant(choices)


def sparse(values):
    return tf.SparseTensor([[0, 0], [0, 2], [1, 1]], values, [2, 3])


def on_sparse(f):
    """Returns a function that calls `f` with a sparse tensor, and arguments for it."""
    indices = ([[0, 1], [1, 0]], [[0, 0], [1, 2]])
    calls = [(tf.constant(i, tf.int64), floats(2)) for i in indices]
    return lambda i, v: f(tf.SparseTensor(i, v, [2, 3])), calls


TRUE_CLASSES = tf.constant([[1], [2]], tf.int64)
BOXES = boxes(5)
IMAGE = floats(1, 6, 7, 3)

# Functions, and arguments for which their results have the same shapes

SAME_SHAPES = {
    "searchsorted": (
        lambda x, v: tf.searchsorted(tf.sort(x), v),
        [(floats(6), floats(4)) for _ in range(3)],
    ),
    "bitcast": (lambda x: tf.bitcast(x, tf.int32), [(floats(3),) for _ in range(3)]),
    "reverse_sequence": (
        lambda x, n: tf.reverse_sequence(x, n, seq_axis=1),
        [(floats(2, 4), tf.constant(n)) for n in ([1, 2], [4, 0], [3, 3])],
    ),
    "unravel_index": (
        lambda x: tf.unravel_index(x, [3, 4]),
        [(integers(12, 5),) for _ in range(3)],
    ),
    "range": (
        lambda i: tf.range(i, i + 4, dtype=tf.int32),
        [(tf.constant(i),) for i in (0, 5, -2)],
    ),
    "index": (lambda x, i: x[i, :, i], [(floats(3, 2, 3), tf.constant(i)) for i in (0, 2, -1)]),
    "index of rows": (lambda x, i: x[..., i], [(floats(3, 2), tf.constant(i)) for i in (0, 1, -1)]),
    "slice": (
        lambda x, i: x[i : i + 2, 1:],
        [(floats(5, 3), tf.constant(i)) for i in (0, 3, 2)],
    ),
    "tf.slice": (
        lambda x, i: tf.slice(x, [i, 1], [2, 2]),
        [(floats(5, 3), tf.constant(i)) for i in (0, 3, 2)],
    ),
    "roll": (
        lambda x, n: tf.roll(x, n, [0, 1]),
        [(floats(3, 2), tf.constant(n)) for n in ([1, 0], [-1, 5], [2, 1])],
    ),
    "repeat": (
        lambda x, n: tf.repeat(x, n, axis=0),
        [(floats(3, 2), tf.constant(n)) for n in ([1, 0, 2], [0, 3, 0], [1, 1, 1])],
    ),
    "histogram": (
        lambda x: tf.histogram_fixed_width(x, [tf.reduce_min(x), tf.reduce_max(x)], 4),
        [(floats(9),) for _ in range(3)],
    ),
    "histogram bins": (
        lambda x: tf.histogram_fixed_width_bins(x, [tf.reduce_min(x), tf.reduce_max(x)], 4),
        [(floats(9),) for _ in range(3)],
    ),
    "stateless_shuffle": (
        tf.random.experimental.stateless_shuffle,
        [(floats(6), tf.constant(seed)) for seed in ([1, 2], [3, 4])],
    ),
    "where": (lambda x: tf.where(x > 1), [(tf.constant(x),) for x in ([0, 2, 3], [2, 0, 3])]),
    "mask": (lambda x: x[x > 1], [(tf.constant(x),) for x in ([0, 2, 3], [4, 0, 3])]),
    "boolean_mask": (
        lambda x, m: tf.boolean_mask(x, m),
        [(floats(3, 2), tf.constant(m)) for m in ([True, False, True], [False, True, True])],
    ),
    "unique": (tf.unique, [(tf.constant(x),) for x in ([1, 2, 1], [7, 7, 3])]),
    "unique_with_counts": (
        tf.unique_with_counts,
        [(tf.constant(x),) for x in ([1.0, 2.0, 1.0], [7.0, 7.0, 3.0])],
    ),
    "dynamic_partition": (
        lambda x, p: tf.dynamic_partition(x, p, 2),
        [(floats(4, 2), tf.constant(p)) for p in ([0, 1, 0, 1], [1, 1, 0, 0])],
    ),
    "dynamic_stitch": (
        lambda i, x: tf.dynamic_stitch([i], [x]),
        [(tf.constant(i), floats(3, 2)) for i in ([0, 2, 1], [2, 1, 0])],
    ),
    "sequence_mask": (tf.sequence_mask, [(tf.constant(n),) for n in ([1, 3], [3, 2])]),
    "bincount": (tf.math.bincount, [(tf.constant(x),) for x in ([0, 1, 3], [3, 3, 1])]),
    "confusion_matrix": (
        tf.math.confusion_matrix,
        [(tf.constant(a), tf.constant(b)) for a, b in (([0, 1, 2], [2, 2, 1]), ([2, 0, 0],) * 2)],
    ),
    "segment_sum": (
        tf.math.segment_sum,
        [(floats(4, 2), tf.constant(i)) for i in ([0, 0, 1, 2], [0, 1, 1, 2])],
    ),
    "segment_max": (
        tf.math.segment_max,
        [(floats(4), tf.constant(i)) for i in ([0, 0, 1, 2], [0, 1, 1, 2])],
    ),
    "non_max_suppression": (
        lambda b, s: tf.image.non_max_suppression(b, s, 1),
        [(boxes(5), floats(5)) for _ in range(3)],
    ),
    "non_max_suppression_padded": (
        lambda b, s: tf.image.non_max_suppression_padded(b, s, 3, pad_to_max_output_size=True),
        [(boxes(5), floats(5)) for _ in range(3)],
    ),
    "combined_non_max_suppression": (
        lambda b, s: tf.image.combined_non_max_suppression(b, s, 2, 3),
        [(boxes(2, 5, 1), floats(2, 5, 3)) for _ in range(3)],
    ),
    "draw_bounding_boxes": (
        lambda b, c: tf.image.draw_bounding_boxes(IMAGE, b, c),
        [(boxes(1, 2), floats(2, 3)) for _ in range(3)],
    ),
    "png": (
        lambda x: tf.io.decode_png(tf.io.encode_png(x)),
        [(pixels(3, 4, 3),) for _ in range(3)],
    ),
    "jpeg": (
        lambda x: tf.io.decode_image(tf.io.encode_jpeg(x)),
        [(pixels(3, 4, 3),) for _ in range(3)],
    ),
    "adjust_jpeg_quality": (
        tf.image.adjust_jpeg_quality,
        [(floats(8, 8, 3), tf.constant(q)) for q in (90, 20, 50)],
    ),
    "random_index_shuffle": (
        lambda i: tf.random_index_shuffle(i, [1, 2, 3], 9),
        [(tf.constant(i),) for i in (0, 3, 9)],
    ),
    "collapse_repeated": (
        tf.nn.collapse_repeated,
        [(tf.constant([x]), tf.constant([3])) for x in ([1, 1, 2], [2, 3, 3])],
    ),
    "ctc_greedy_decoder": (
        lambda x: tf.nn.ctc_greedy_decoder(x * tf.one_hot([[0], [1], [2]], 4), [3])[0][0].values,
        [(floats(3, 1, 4),) for _ in range(3)],
    ),
    "accidental hits": (
        lambda s: tf.nn.compute_accidental_hits(TRUE_CLASSES, s, 1),
        [(tf.constant(s, tf.int64),) for s in ([1, 5], [7, 2])],
    ),
    "embedding_lookup_sparse": (
        lambda table, i: tf.nn.embedding_lookup_sparse(table, sparse(i), None),
        [(floats(4, 2), integers(4, 3)) for _ in range(3)],
    ),
    "sparse to_dense": (
        lambda i, v: tf.sparse.to_dense(tf.SparseTensor(i, v, [2, 3])),
        [(tf.constant(i, tf.int64), floats(2)) for i in ([[0, 1], [1, 0]], [[0, 0], [1, 2]])],
    ),
    "sparse segment_mean": (
        tf.sparse.segment_mean,
        [
            (floats(4, 2), tf.constant(i), tf.constant(s))
            for i, s in (([0, 1, 2], [0, 0, 1]), ([3, 3, 1], [0, 1, 1]))
        ],
    ),
    "sparse transpose": on_sparse(lambda x: tf.sparse.transpose(x)),
    "sparse reshape": on_sparse(lambda x: tf.sparse.expand_dims(tf.sparse.reshape(x, [3, 2]), 1)),
    "sparse reduce_sum": on_sparse(lambda x: tf.sparse.reduce_sum(x, 0)),
    "sparse reduce_max": on_sparse(
        lambda x: tf.sparse.reduce_max(x, 1, keepdims=True, output_is_sparse=True)
    ),
    "sparse slice": on_sparse(lambda x: tf.sparse.slice(x, [0, 0], [2, 3])),
    "sparse concat": on_sparse(lambda x: tf.sparse.concat(1, [x, x])),
    "sparse retain": on_sparse(lambda x: tf.sparse.retain(x, x.values < 2.0)),
    "sparse fill_empty_rows": on_sparse(lambda x: tf.sparse.fill_empty_rows(x, 9.0)),
    "sparse add": on_sparse(lambda x: tf.sparse.add(x, x, 0.01)),
    "sparse maximum": on_sparse(lambda x: tf.sparse.maximum(x, x.with_values(1.0 - x.values))),
    "sparse softmax": on_sparse(tf.sparse.softmax),
    "sparse division": on_sparse(lambda x: x / tf.constant([[1.0], [2.0]])),
    "sparse mask": (
        lambda i, v: tf.sparse.mask(tf.IndexedSlices(v, i), [0]).values,
        [(tf.constant(i), floats(2)) for i in ([0, 3], [2, 0])],
    ),
    "safe_embedding_lookup_sparse": (
        lambda table, i: tf.nn.safe_embedding_lookup_sparse(table, sparse(i)),
        [(floats(4, 2), tf.constant(i, tf.int64)) for i in ([1, 2, 3], [3, 0, 1])],
    ),
    "from_dense": (
        lambda x: tf.sparse.from_dense(x).values,
        [(tf.constant(x),) for x in ([0.0, 2.0, 3.0], [4.0, 0.0, 5.0])],
    ),
    "strings": (
        lambda x: tf.strings.join([tf.strings.upper(x), tf.strings.substr(x, 0, 1)], "-"),
        [(strings("one", "two"),), (strings("six", "ten"),)],
    ),
    "split": (
        lambda x: tf.strings.split(x).flat_values,
        [(strings("a b", "c"),), (strings("d", "e f"),)],
    ),
    "as_string": (tf.as_string, [(floats(3),) for _ in range(3)]),
    "decode_raw": (
        lambda x: tf.io.decode_raw(x, tf.uint8),
        [(strings("one"),), (strings("two"),)],
    ),
    "serialize_tensor": (
        lambda x: tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.float32),
        [(floats(3),) for _ in range(3)],
    ),
    "decode_csv": (
        lambda x: tf.io.decode_csv(x, [[0], [""]]),
        [(strings("1,a", "2,b"),), (strings("3,c", "4,d"),)],
    ),
}

ON_HOST = {  # strings are not supported by XLA
    "as_string", "decode_csv", "decode_raw", "jpeg", "png", "serialize_tensor", "split", "strings",
}  # fmt: skip


def flatten_to_arrays(y):
    return [np.asarray(x) for x in tf.nest.flatten(y, expand_composites=True)]


def assert_same(actual, expected):
    for a, b in zip(flatten_to_arrays(actual), flatten_to_arrays(expected), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype == object:
            assert a.tolist() == b.tolist()
        else:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", SAME_SHAPES)
def test_one_trace_is_reused_for_all_values(name, compiled):
    body, calls = SAME_SHAPES[name]
    f = tf.function(body, jit_compile=compiled).expect(recordings=1)

    for args in [*calls, calls[0]]:
        assert_same(f(*args), body(*args))

    (report,) = f.recordings()
    assert report.replays == len(calls)
    if compiled and name not in ON_HOST:
        assert report.uncompiled is None


DIFFERENTIABLE = (
    "boolean_mask", "dynamic_partition", "dynamic_stitch", "embedding_lookup_sparse", "index",
    "repeat", "reverse_sequence", "roll", "segment_sum", "slice", "sparse segment_mean",
    "safe_embedding_lookup_sparse", "sparse reduce_sum", "sparse to_dense", "tf.slice",
)  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_use_the_values_of_the_call(name, compiled):
    body, calls = SAME_SHAPES[name]

    def gradients(*args):
        sources = [x for x in args if x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            y = tf.nest.flatten(body(*args))
            loss = tf.add_n([tf.reduce_sum(tf.sin(part)) for part in y])
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, sources)]

    f = tf.function(gradients, jit_compile=compiled).expect(recordings=1)
    for args in [*calls, calls[0]]:
        assert_same(f(*args), gradients(*args))


def test_gradient_of_indexing_is_dense_as_in_eager_code():
    x = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def f(i):
        with tf.GradientTape() as tape:
            y = x[i] ** 2.0
        return tape.gradient(y, x)

    assert isinstance(f(tf.constant(0)), tf.Tensor)
    np.testing.assert_array_equal(f(tf.constant(2)), [0.0, 0.0, 6.0])


@pytest.mark.parametrize("compiled", [False, True])
def test_results_of_another_shape_have_another_trace(compiled):
    f = tf.function(lambda x: tf.unique(x * 2)[0], jit_compile=compiled)
    calls = [[1, 1, 2], [3, 4, 4], [1, 2, 3], [5, 5, 5], [7, 8, 9], [4, 4, 6]]

    for x in calls:
        np.testing.assert_array_equal(f(tf.constant(x)), 2 * np.array(list(dict.fromkeys(x))))

    reports = f.recordings()
    assert [a.replays for a in reports] == [2, 1, 0]
    assert "shape of a tensor" in reports[1].changed[0]


@pytest.mark.parametrize("compiled", [False, True])
def test_shape_guards_are_checked_before_variables_are_assigned(compiled):
    count = tf.Variable(0)

    @tf.function(jit_compile=compiled)
    def f(x):
        count.assign_add(1)
        return tf.reduce_sum(x[x * 1.0 > 0.0])

    for x in ([1.0, -1.0], [-1.0, 2.0], [1.0, 2.0]):
        assert float(f(tf.constant(x))) == sum(v for v in x if v > 0)
    assert int(count) == 3
    assert len(f.recordings()) == 2


def test_boolean_masks_can_be_arguments():
    f = tf.function(lambda x, mask: x[mask])
    x = tf.constant([1, 2, 3])

    results = [
        f(x, tf.constant(m)).numpy().tolist() for m in ([True, False, True], [False] + [True] * 2)
    ]

    assert results == [[1, 3], [2, 3]]


RANDOM_FUNCTIONS = {
    "random_crop": lambda: tf.image.random_crop(IMAGE[0], [2, 2, 3]),
    "random_jpeg_quality": lambda: tf.image.random_jpeg_quality(IMAGE[0], 10, 90),
    "sample_distorted_bounding_box": lambda: tf.image.sample_distorted_bounding_box(
        [40, 50, 3], BOXES[None]
    ),
    "uniform_candidate_sampler": lambda: tf.random.uniform_candidate_sampler(
        TRUE_CLASSES, 1, 3, True, 9
    ),
    "log_uniform_candidate_sampler": lambda: tf.random.log_uniform_candidate_sampler(
        TRUE_CLASSES, 1, 3, True, 9
    ),
    "fixed_unigram_candidate_sampler": lambda: tf.random.fixed_unigram_candidate_sampler(
        TRUE_CLASSES, 1, 3, False, 3, unigrams=[1.0, 2.0, 3.0]
    ),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", RANDOM_FUNCTIONS)
def test_random_functions_draw_in_every_call_of_one_trace(name, compiled):
    body = RANDOM_FUNCTIONS[name]
    f = tf.function(body, jit_compile=compiled).expect(recordings=1)

    tf.random.set_seed(3)
    expected = [body() for _ in range(4)]
    tf.random.set_seed(3)
    for y in expected:
        assert_same(f(), y)


@pytest.mark.parametrize("compiled", [False, True])
def test_errors_match_eager_code(compiled):
    def body(x, ids):
        return tf.math.segment_sum(x, ids)

    f = tf.function(body, jit_compile=compiled)
    x = floats(3)
    f(x, tf.constant([0, 1, 1]))
    f(x, tf.constant([0, 0, 1]))

    with pytest.raises(tf.errors.InvalidArgumentError) as expected:
        body(x, tf.constant([0, 2, 1]))
    with pytest.raises(tf.errors.InvalidArgumentError) as actual:
        f(x, tf.constant([0, 2, 1]))
    assert str(actual.value) == str(expected.value)


OUT_OF_BOUNDS = {
    "index": (
        lambda x, i: x[:, i],
        7,
        "slice index 7 of dimension 1 out of bounds: it has size 3.",
    ),
    "negative index": (
        lambda x, i: x[i],
        -3,
        "slice index -3 of dimension 0 out of bounds: it has size 2.",
    ),
    "slice": (
        lambda x, i: tf.slice(x, [0, i], [1, 2]),
        2,
        "slice: size 2 along axis 1 of size 3 requires begin < 2. Received: 2.",
    ),
}


@pytest.mark.parametrize("name", OUT_OF_BOUNDS)
def test_indices_out_of_bounds_raise(name):
    body, index, message = OUT_OF_BOUNDS[name]
    f, x = tf.function(body), floats(2, 3)

    for _ in range(2):
        assert_raises(lambda: f(x, tf.constant(index)), tf.errors.InvalidArgumentError, message)
        assert_same(f(x, tf.constant(0)), body(x, 0))


def test_elements_of_a_range_need_no_guards():
    f = tf.function(lambda n, x: tf.add_n([x[i] for i in tf.range(n)]))
    x = tf.constant([1.0, 2.0, 3.0])

    assert [float(f(tf.constant(n), x)) for n in (2, 3, 2)] == [3.0, 6.0, 3.0]
    assert [len(traces.guards) for traces in f._signatures.popitem()[1].all] == [1, 1]


@pytest.mark.parametrize("compiled", [False, True])
def test_value_dependent_functions_under_tapes(compiled):
    f = tf.function(lambda x, i: x[i] * tf.reduce_sum(x[x > 0.5]), jit_compile=compiled)

    for values, i in (([0.2, 0.7, 0.9], 1), ([0.8, 0.1, 0.6], 2), ([0.8, 0.9, 0.6], 0)):
        x = tf.constant(values)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, tf.constant(i))
        selected = [v for v in values if v > 0.5]
        expected = [values[i] * (v > 0.5) + (k == i) * sum(selected) for k, v in enumerate(values)]
        np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-6)
    assert len(f.recordings()) == 2


BATCHED_FUNCTIONS = {
    "index": (lambda i: BOXES[i] * 2.0, integers(5, 3), integers(5, 3)),
    "search": (lambda row: tf.searchsorted(row, [0.4, 0.6]), *(tf.sort(floats(2, 4)),) * 2),
    "mask": (lambda row: tf.reduce_sum(row[row > 0.5]), floats(2, 4), floats(2, 4)),
}


@pytest.mark.filterwarnings("ignore:vectorized_map falls back to a loop")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", BATCHED_FUNCTIONS)
def test_value_dependent_functions_in_vectorized_map(name, compiled):
    body, *calls = BATCHED_FUNCTIONS[name]
    f = tf.function(lambda x: tf.vectorized_map(body, x), jit_compile=compiled)

    for x in [*calls, calls[0]]:
        assert_same(f(x), tf.stack([body(row) for row in x]))
