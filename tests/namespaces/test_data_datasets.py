"""tf.data: compares transformations with Python lists."""

import itertools
import types
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograde as tf
from retrograde.data._seeds import Seeds
from tests.namespaces.datasets import INT64, Dataset, range_datasets, to_list

COUNTS = st.integers(0, 20)
FEW_EXAMPLES = settings(max_examples=25, deadline=None)


# Comparison with lists


@FEW_EXAMPLES
@given(COUNTS, st.integers(1, 7), st.booleans())
def test_batches_are_slices(n, size, drop):
    slices = [list(range(n))[i : i + size] for i in range(0, n, size)]
    expected = [s for s in slices if len(s) == size or not drop]
    for dataset in range_datasets(n):
        batches = dataset.batch(size, drop_remainder=drop)
        assert to_list(batches) == expected
        assert len(batches) == len(expected)
        assert to_list(batches.unbatch()) == list(itertools.chain(*expected))


@FEW_EXAMPLES
@given(COUNTS, st.integers(-1, 25), st.integers(-1, 25))
def test_take_and_skip_are_slices(n, start, count):
    numbers = list(range(n))
    remaining = [] if start < 0 else numbers[start:]
    expected = remaining if count < 0 else remaining[:count]
    for dataset in range_datasets(n):
        actual = dataset.skip(start).take(count)
        assert to_list(actual) == expected
        assert len(actual) == len(expected)


@FEW_EXAMPLES
@given(COUNTS, st.integers(1, 6), st.data())
def test_shards_are_strides(n, shards, data):
    index = data.draw(st.integers(0, shards - 1))
    for dataset in range_datasets(n):
        actual = dataset.repeat(2).shard(shards, index)
        assert to_list(actual) == (list(range(n)) * 2)[index::shards]
        assert len(actual) == len(to_list(actual))


@FEW_EXAMPLES
@given(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_interleave_cycles_through_blocks(lengths, cycle, block, parallel):
    pending = [[(i, j) for j in range(length)] for i, length in enumerate(lengths)]
    slots, expected = [[]] * cycle, []
    filled = [False] * cycle
    while pending or any(filled):
        for index in range(cycle):
            if not filled[index] and pending:
                slots[index], filled[index] = pending.pop(0), True
            if filled[index]:
                filled[index] = len(slots[index]) >= block
                expected += slots[index][:block]
                slots[index] = slots[index][block:]

    def inner(i, length):
        return Dataset.range(length).map(lambda j: (i, j))

    outer = Dataset.range(len(lengths)).map(lambda i: (i, np.int64(lengths[int(i)])))
    calls = 2 if parallel else None
    actual = outer.interleave(inner, cycle, block, num_parallel_calls=calls)
    assert to_list(actual) == expected


@FEW_EXAMPLES
@given(COUNTS, st.integers(1, 5), st.integers(1, 5), st.integers(1, 3), st.booleans())
def test_windows_are_slices(n, size, shift, stride, drop):
    numbers = list(range(n))
    windows = [numbers[i::stride][:size] for i in range(0, n, shift)]
    expected = [w for w in windows if len(w) == size or not drop]
    actual = Dataset.range(n).window(size, shift, stride, drop)
    assert [to_list(window) for window in actual] == expected
    assert len(actual) == len(expected)


@FEW_EXAMPLES
@given(COUNTS, st.integers(1, 25), st.integers(0, 3))
def test_shuffle_is_a_permutation_limited_by_the_buffer(n, size, seed):
    for dataset in range_datasets(n):
        actual = to_list(dataset.shuffle(size, seed=seed))
        assert sorted(actual) == list(range(n))
        assert all(value < index + size for index, value in enumerate(actual))


@FEW_EXAMPLES
@given(COUNTS, st.integers(1, 9))
def test_rebatch_keeps_all_rows(n, size):
    expected = [list(range(n))[i : i + size] for i in range(0, n, size)]
    assert to_list(Dataset.range(n).batch(4).rebatch(size)) == expected


def test_unique_of_structures_with_one_tensor():
    pairs = Dataset.from_tensor_slices([1, 2, 1]).map(lambda x: {"a": x}).unique()

    assert [int(element["a"]) for element in pairs] == [1, 2]


def test_rebatch_cycles_through_sizes():
    rows = Dataset.range(6).batch(4)

    assert to_list(rows.rebatch([1, 2])) == [[0], [1, 2], [3], [4, 5]]
    assert to_list(rows.rebatch([3, 2, 2])) == [[0, 1, 2], [3, 4], [5]]
    assert to_list(rows.rebatch([3, 2, 2], drop_remainder=True)) == [[0, 1, 2], [3, 4]]


# Shuffling


def orders(dataset, count=2):
    return [to_list(dataset) for _ in range(count)]


@pytest.mark.parametrize("size", [10, 100])
def test_each_iteration_has_a_different_order(size):
    for dataset in range_datasets(100):
        first, second = orders(dataset.shuffle(size, seed=1))
        assert first != second
        assert orders(dataset.shuffle(size, seed=1)) == [first, second]


@pytest.mark.parametrize("size", [10, 100])
def test_reshuffle_each_iteration_false(size):
    for dataset in range_datasets(100):
        fixed = dataset.shuffle(size, seed=1, reshuffle_each_iteration=False)
        first, second = orders(fixed)
        assert first == second != list(range(100))
        assert to_list(fixed.repeat(2)) == 2 * first


def test_repetitions_are_reshuffled():
    actual = to_list(Dataset.range(50).shuffle(50).repeat(2))
    assert sorted(actual[:50]) == sorted(actual[50:]) == list(range(50))
    assert actual[:50] != actual[50:]


def test_global_seed_determines_the_order():
    def order():
        tf.random.set_seed(5)
        return orders(Dataset.range(30).shuffle(30))

    assert order() == order()


def test_shuffle_is_uniform():
    counts = {}
    dataset = Dataset.range(3).shuffle(3, seed=2)
    for _ in range(1200):
        order = tuple(to_list(dataset))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    # Six standard deviations of a count of 1200 draws at 1/6 are 78.
    assert all(abs(count - 200) < 78 for count in counts.values())


def test_small_shuffle_buffer_matches_a_loop():
    """The vectorized buffer agrees with a loop that draws the same indices."""
    from retrograde.data import _row_indices

    tables = np.arange(40)[None]
    actual = np.concatenate(
        list(
            _row_indices.shuffle(
                iter([tables[:, :25], tables[:, 25:]]), 7, np.random.default_rng(1)
            )
        ),
        axis=1,
    )[0]
    rng = np.random.default_rng(1)
    indices = np.concatenate([rng.integers(7, size=18), rng.integers(7, size=15)])
    buffer, expected = list(range(7)), []
    for incoming, index in zip(range(7, 40), indices, strict=True):
        expected.append(buffer[index])
        buffer[index] = incoming
    expected += [buffer[i] for i in rng.permutation(7)]
    assert actual.tolist() == expected


# Structures

Pair = namedtuple("Pair", ["a", "b"])


def test_structures_are_preserved():
    x, y = [1, 2], [[1.0], [2.0]]
    assert to_list(Dataset.from_tensor_slices((x, y))) == [(1, [1.0]), (2, [2.0])]
    assert to_list(Dataset.from_tensor_slices({"x": x, "y": y})) == [
        {"x": 1, "y": [1.0]},
        {"x": 2, "y": [2.0]},
    ]
    pairs = to_list(Dataset.from_tensor_slices(Pair(x, y)))
    assert pairs == [Pair(1, [1.0]), Pair(2, [2.0])]
    assert isinstance(pairs[0], Pair)
    assert to_list(Dataset.from_tensors((x, None))) == [([1, 2], None)]


NONE_SPEC = tf.data.experimental.get_structure(Dataset.range(1).map(lambda _x: None))
WITH_NONE = {
    "from_tensors": lambda: Dataset.from_tensors(([0, 1, 2, 3], None)),
    "slices": lambda: Dataset.from_tensor_slices(([0, 1, 2, 3], None)).batch(2),
    "slices of one size": lambda: Dataset.from_tensor_slices(([0, 1, 2, 3], None)).batch(2, True),
    "map": lambda: Dataset.from_tensors([0, 1, 2, 3]).map(lambda x: (x, None)),
}


@pytest.mark.parametrize("make", WITH_NONE.values(), ids=WITH_NONE)
def test_none_components_stay_none(make):
    rows = [(0, None), (1, None), (2, None), (3, None)]

    assert to_list(make().unbatch()) == rows
    assert make().unbatch().element_spec == (tf.TensorSpec([], tf.int32), NONE_SPEC)
    assert to_list(make().rebatch(3)) == [([0, 1, 2], None), ([3], None)]
    assert to_list(make().rebatch(2, drop_remainder=True)) == [([0, 1], None), ([2, 3], None)]
    padded = make().unbatch().batch(3).padded_batch(2)
    assert to_list(padded) == [([[0, 1, 2], [3, 0, 0]], None)]
    assert padded.element_spec == (tf.TensorSpec([None, None], tf.int32), NONE_SPEC)
    explicit = make().unbatch().batch(3).padded_batch(2, ([4], None))
    assert to_list(explicit) == [([[0, 1, 2, 0], [3, 0, 0, 0]], None)]
    assert explicit.element_spec == (tf.TensorSpec([None, 4], tf.int32), NONE_SPEC)


def test_cardinality_with_none_components():
    dataset = Dataset.from_tensor_slices(([0, 1, 2, 3], None)).batch(2, True)

    assert dataset.unbatch().cardinality() == 4
    assert Dataset.from_tensors((None, [1, 2, 3])).unbatch().cardinality() == 3


@pytest.mark.parametrize("options", [{}, {"pad_to_bucket_boundary": True}])
def test_buckets_with_none_components(options):
    dataset = Dataset.range(1, 3).map(lambda x: (tf.fill([x], x), None))

    buckets = dataset.bucket_by_sequence_length(lambda x, _: tf.size(x), [3], [2, 2], **options)

    assert to_list(buckets) == [([[1, 0], [2, 2]], None)]
    assert buckets.element_spec == (tf.TensorSpec([None, None], tf.int64), NONE_SPEC)


def test_tuples_are_unpacked_into_arguments():
    pairs = Dataset.from_tensor_slices(([1, 2], [3, 4]))
    assert to_list(pairs.map(lambda a, b: {"sum": a + b})) == [{"sum": 4}, {"sum": 6}]
    assert to_list(pairs.map(lambda a, b: {"sum": a + b}).map(lambda d: d["sum"])) == [4, 6]
    assert to_list(pairs.map(lambda a, b: [a, b])) == [(1, 3), (2, 4)]
    assert to_list(pairs.filter(lambda _a, b: b > 3)) == [(2, 4)]


def test_zip_keeps_the_structure_of_its_argument():
    actual = Dataset.zip({"a": Dataset.range(2), "b": (Dataset.range(3), Dataset.range(4))})
    assert to_list(actual) == [{"a": 0, "b": (0, 0)}, {"a": 1, "b": (1, 1)}]
    assert to_list(actual.batch(2)) == [{"a": [0, 1], "b": ([0, 1], [0, 1])}]
    assert len(Dataset.zip(Dataset.range(5), Dataset.range(3).repeat())) == 5
    from_elements = Dataset.zip(*range_datasets(3))
    assert to_list(from_elements) == [(0, 0), (1, 1), (2, 2)]


def test_enumerate():
    assert to_list(Dataset.range(3).enumerate(5)) == [(5, 0), (6, 1), (7, 2)]
    assert to_list(Dataset.range(3).enumerate().batch(2)) == [([0, 1], [0, 1]), ([2], [2])]


def test_windows_of_tuples_are_tuples_of_datasets():
    actual = Dataset.from_tensor_slices(([1, 2, 3], [4, 5, 6])).window(2)
    assert [(to_list(a), to_list(b)) for a, b in actual] == [([1, 2], [4, 5]), ([3], [6])]
    joined = actual.flat_map(lambda a, b: Dataset.zip(a.batch(2), b.batch(2)))
    assert to_list(joined) == [([1, 2], [4, 5]), ([3], [6])]


def test_string_sparse_and_ragged_elements():
    words = Dataset.from_tensor_slices(["a", "b", "c"])
    assert sorted(to_list(words.repeat(2).shuffle(6).unique())) == [b"a", b"b", b"c"]
    assert to_list(words.batch(2)) == [[b"a", b"b"], [b"c"]]
    assert to_list(words.map(lambda s: s + "!")) == [b"a!", b"b!", b"c!"]
    ragged = Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3]]))
    assert to_list(ragged) == [[1], [2, 3]]
    assert next(iter(ragged.batch(2))).to_list() == [[1], [2, 3]]
    sparse = Dataset.from_tensor_slices(tf.sparse.eye(2))
    assert to_list(sparse.batch(2)) == [[[1.0, 0.0], [0.0, 1.0]]]


# Transformations with functions


def test_parallel_map_keeps_the_order():
    numbers = Dataset.range(40)
    assert to_list(numbers.map(lambda x: x * x, tf.data.AUTOTUNE)) == [i * i for i in range(40)]
    unordered = numbers.map(lambda x: x * x, 3, deterministic=False)
    assert sorted(to_list(unordered)) == [i * i for i in range(40)]


def test_scan_and_reduce():
    numbers = Dataset.range(1, 5)
    assert to_list(numbers.scan(np.int64(0), lambda s, x: (s + x, s * x))) == [0, 2, 9, 24]
    assert int(numbers.reduce(np.int64(0), lambda s, x: s + x)) == 10


def test_filter_take_while_and_unique():
    numbers = Dataset.from_tensor_slices([1, 5, 2, 5, 7])
    assert to_list(numbers.filter(lambda x: x > 2)) == [5, 5, 7]
    assert to_list(numbers.take_while(lambda x: x < 6)) == [1, 5, 2, 5]
    assert to_list(numbers.unique()) == [1, 5, 2, 7]


def test_padded_batches():
    rows = Dataset.range(4).map(lambda n: (n, tf.fill([n], n)))
    assert to_list(rows.padded_batch(2)) == [([0, 1], [[0], [1]]), ([2, 3], [[2, 2, 0], [3, 3, 3]])]
    to_four = rows.padded_batch(4, ([], [4]), (None, np.int64(-1)), drop_remainder=True)
    assert to_list(to_four)[0][1] == [[-1] * 4, [1, -1, -1, -1], [2, 2, -1, -1], [3, 3, 3, -1]]


def test_generators_are_called_for_each_iteration():
    def generator(n):
        for i in range(n):
            yield i, [i] * i

    dataset = Dataset.from_generator(
        generator,
        args=(3,),
        output_signature=(tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.float32)),
    )
    expected = [(0, []), (1, [1.0]), (2, [2.0, 2.0])]
    assert to_list(dataset) == to_list(dataset) == expected
    legacy = Dataset.from_generator(generator, (tf.int32, tf.float32), ([], [None]), args=(3,))
    assert legacy.element_spec == dataset.element_spec


def test_cache_is_filled_by_the_first_complete_iteration():
    calls = []
    cached = Dataset.range(3).map(lambda x: calls.append(1) or x).cache()
    assert to_list(cached.take(2)) == [0, 1]
    assert to_list(cached) == to_list(cached) == [0, 1, 2]
    assert len(calls) == 5
    shuffled = Dataset.range(20).shuffle(20).cache()
    assert to_list(shuffled) == to_list(shuffled)
    assert to_list(shuffled.batch(20)) == [to_list(shuffled)]


def test_ignore_errors():
    inverse = Dataset.range(8).map(
        lambda x: tf.debugging.check_numerics(1 / tf.cast(x % 4, tf.float32), "not finite")
    )
    assert to_list(inverse.ignore_errors()) == pytest.approx([1, 1 / 2, 1 / 3] * 2)
    batches = to_list(inverse.batch(2).ignore_errors())
    np.testing.assert_allclose(batches, [[1 / 2, 1 / 3]] * 2, rtol=1e-6)


def test_choose_from_datasets():
    datasets = [Dataset.range(3), Dataset.range(10, 12)]
    choices = Dataset.from_tensor_slices(np.array([0, 1, 1, 1, 0, 0, 0, 0]))
    assert to_list(Dataset.choose_from_datasets(datasets, choices)) == [0, 10, 11]
    actual = Dataset.choose_from_datasets(datasets, choices, stop_on_empty_dataset=False)
    assert to_list(actual) == [0, 10, 11, 1, 2]
    assert actual.element_spec == INT64


def test_sample_from_datasets():
    datasets = [Dataset.from_tensors(i).repeat() for i in range(3)]
    actual = to_list(Dataset.sample_from_datasets(datasets, [0.75, 0.25, 0.0], seed=1).take(2000))
    # Six standard deviations of 2000 draws at 1/4 are 116.
    assert abs(actual.count(1) - 500) < 116
    assert 2 not in actual
    sampled = Dataset.sample_from_datasets([Dataset.range(3), Dataset.range(10, 12)], seed=1)
    assert sorted(to_list(sampled)) == [0, 1, 2, 10, 11]
    assert to_list(sampled) == to_list(sampled)


def test_group_by_window():
    actual = Dataset.range(10).group_by_window(lambda x: x % 2, lambda _k, w: w.batch(3), 3)
    assert to_list(actual) == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]
    assert actual.element_spec == tf.TensorSpec([None], tf.int64)


@pytest.mark.parametrize("stream", [0, 2**63, 2**64 - 1])
def test_streams_of_random_numbers_are_exact_64_bit_integers(stream):
    def draw(stream):
        seeds = Seeds(None, reshuffle=True)
        seeds.key, seeds.start = (1, 2), (3, stream)
        run = types.SimpleNamespace(iterations={})
        return seeds.generator(run).integers(2**63)

    assert draw(stream) == draw(stream)
    assert draw(stream) != draw(stream ^ 1)
