"""tf.data: each step against plain Python lists, and TensorFlow's errors."""

import itertools
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograde as tf
from tests.namespaces.helpers import assert_raises

Dataset = tf.data.Dataset


def listed(dataset):
    """The elements, with lists in place of arrays."""
    return [
        tf.nest.map_structure(lambda x: x.tolist() if hasattr(x, "tolist") else x, element)
        for element in dataset.as_numpy_iterator()
    ]


def plain(n):
    """The numbers below `n`, once as rows of an array and once made one by one."""
    rows = Dataset.range(n)
    return rows, rows.map(lambda x: x)


COUNTS = st.integers(0, 20)
MODEST = settings(max_examples=25, deadline=None)


# Against lists


@MODEST
@given(COUNTS, st.integers(1, 7), st.booleans())
def test_batches_are_slices(n, size, drop):
    slices = [list(range(n))[i : i + size] for i in range(0, n, size)]
    expected = [s for s in slices if len(s) == size or not drop]
    for dataset in plain(n):
        batches = dataset.batch(size, drop_remainder=drop)
        assert listed(batches) == expected
        assert len(batches) == len(expected)
        assert listed(batches.unbatch()) == list(itertools.chain(*expected))


@MODEST
@given(COUNTS, st.integers(-1, 25), st.integers(-1, 25))
def test_take_and_skip_are_slices(n, start, count):
    numbers = list(range(n))
    kept = [] if start < 0 else numbers[start:]
    expected = kept if count < 0 else kept[:count]
    for dataset in plain(n):
        found = dataset.skip(start).take(count)
        assert listed(found) == expected
        assert len(found) == len(expected)


@MODEST
@given(COUNTS, st.integers(1, 6), st.data())
def test_shards_are_strides(n, shards, data):
    index = data.draw(st.integers(0, shards - 1))
    for dataset in plain(n):
        found = dataset.repeat(2).shard(shards, index)
        assert listed(found) == (list(range(n)) * 2)[index::shards]
        assert len(found) == len(listed(found))


@MODEST
@given(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_interleave_takes_blocks_in_turn(lengths, cycle, block, parallel):
    waiting = [[(i, j) for j in range(length)] for i, length in enumerate(lengths)]
    slots, expected = [[]] * cycle, []
    filled = [False] * cycle
    while waiting or any(filled):
        for place in range(cycle):
            if not filled[place] and waiting:
                slots[place], filled[place] = waiting.pop(0), True
            if filled[place]:
                filled[place] = len(slots[place]) >= block
                expected += slots[place][:block]
                slots[place] = slots[place][block:]

    def inner(i, length):
        return Dataset.range(length).map(lambda j: (i, j))

    outer = Dataset.range(len(lengths)).map(lambda i: (i, np.int64(lengths[int(i)])))
    calls = 2 if parallel else None
    found = outer.interleave(inner, cycle, block, num_parallel_calls=calls)
    assert listed(found) == expected


@MODEST
@given(COUNTS, st.integers(1, 5), st.integers(1, 5), st.integers(1, 3), st.booleans())
def test_windows_are_slices(n, size, shift, stride, drop):
    numbers = list(range(n))
    windows = [numbers[i::stride][:size] for i in range(0, n, shift)]
    expected = [w for w in windows if len(w) == size or not drop]
    found = Dataset.range(n).window(size, shift, stride, drop)
    assert [listed(window) for window in found] == expected
    assert len(found) == len(expected)


@MODEST
@given(COUNTS, st.integers(1, 25), st.integers(0, 3))
def test_a_shuffle_is_a_permutation_within_the_reach_of_its_buffer(n, size, seed):
    for dataset in plain(n):
        found = listed(dataset.shuffle(size, seed=seed))
        assert sorted(found) == list(range(n))
        assert all(value < place + size for place, value in enumerate(found))


@MODEST
@given(COUNTS, st.integers(1, 9))
def test_rebatching_keeps_all_rows(n, size):
    expected = [list(range(n))[i : i + size] for i in range(0, n, size)]
    assert listed(Dataset.range(n).batch(4).rebatch(size)) == expected


# Shuffling


def orders(dataset, count=2):
    return [listed(dataset) for _ in range(count)]


@pytest.mark.parametrize("size", [10, 100])
def test_every_pass_has_another_order(size):
    for dataset in plain(100):
        first, second = orders(dataset.shuffle(size, seed=1))
        assert first != second
        assert orders(dataset.shuffle(size, seed=1)) == [first, second]


@pytest.mark.parametrize("size", [10, 100])
def test_the_order_stays_if_it_is_asked_to(size):
    for dataset in plain(100):
        fixed = dataset.shuffle(size, seed=1, reshuffle_each_iteration=False)
        first, second = orders(fixed)
        assert first == second != list(range(100))
        assert listed(fixed.repeat(2)) == 2 * first


def test_repetitions_are_shuffled_anew():
    found = listed(Dataset.range(50).shuffle(50).repeat(2))
    assert sorted(found[:50]) == sorted(found[50:]) == list(range(50))
    assert found[:50] != found[50:]


def test_the_seed_of_the_program_fixes_the_order():
    def order():
        tf.random.set_seed(5)
        return orders(Dataset.range(30).shuffle(30))

    assert order() == order()


def test_all_orders_are_equally_likely():
    counts = {}
    dataset = Dataset.range(3).shuffle(3, seed=2)
    for _ in range(1200):
        order = tuple(listed(dataset))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    # Six standard deviations of a count of 1200 draws at 1/6 are 78.
    assert all(abs(count - 200) < 78 for count in counts.values())


def test_a_small_buffer_replaces_what_it_gives_out():
    """The vectorised buffer agrees with a loop that draws the same places."""
    from retrograde.data import _rows

    tables = np.arange(40)[None]
    found = np.concatenate(
        list(_rows.shuffled(iter([tables[:, :25], tables[:, 25:]]), 7, np.random.default_rng(1))),
        axis=1,
    )[0]
    rng = np.random.default_rng(1)
    places = np.concatenate([rng.integers(7, size=18), rng.integers(7, size=15)])
    buffer, expected = list(range(7)), []
    for coming, place in zip(range(7, 40), places, strict=True):
        expected.append(buffer[place])
        buffer[place] = coming
    expected += [buffer[i] for i in rng.permutation(7)]
    assert found.tolist() == expected


# Structures

Pair = namedtuple("Pair", ["a", "b"])


def test_structures_are_kept():
    x, y = [1, 2], [[1.0], [2.0]]
    assert listed(Dataset.from_tensor_slices((x, y))) == [(1, [1.0]), (2, [2.0])]
    assert listed(Dataset.from_tensor_slices({"x": x, "y": y})) == [
        {"x": 1, "y": [1.0]},
        {"x": 2, "y": [2.0]},
    ]
    pairs = listed(Dataset.from_tensor_slices(Pair(x, y)))
    assert pairs == [Pair(1, [1.0]), Pair(2, [2.0])]
    assert isinstance(pairs[0], Pair)
    assert listed(Dataset.from_tensors((x, None))) == [([1, 2], None)]


def test_a_tuple_comes_as_arguments_and_a_dict_as_one():
    pairs = Dataset.from_tensor_slices(([1, 2], [3, 4]))
    assert listed(pairs.map(lambda a, b: {"sum": a + b})) == [{"sum": 4}, {"sum": 6}]
    assert listed(pairs.map(lambda a, b: {"sum": a + b}).map(lambda d: d["sum"])) == [4, 6]
    assert listed(pairs.map(lambda a, b: [a, b])) == [(1, 3), (2, 4)]
    assert listed(pairs.filter(lambda _a, b: b > 3)) == [(2, 4)]


def test_zip_follows_the_structure_of_its_datasets():
    found = Dataset.zip({"a": Dataset.range(2), "b": (Dataset.range(3), Dataset.range(4))})
    assert listed(found) == [{"a": 0, "b": (0, 0)}, {"a": 1, "b": (1, 1)}]
    assert listed(found.batch(2)) == [{"a": [0, 1], "b": ([0, 1], [0, 1])}]
    assert len(Dataset.zip(Dataset.range(5), Dataset.range(3).repeat())) == 5
    by_element = Dataset.zip(*plain(3))
    assert listed(by_element) == [(0, 0), (1, 1), (2, 2)]


def test_enumerate_counts():
    assert listed(Dataset.range(3).enumerate(5)) == [(5, 0), (6, 1), (7, 2)]
    assert listed(Dataset.range(3).enumerate().batch(2)) == [([0, 1], [0, 1]), ([2], [2])]


def test_windows_of_tuples_are_tuples_of_datasets():
    found = Dataset.from_tensor_slices(([1, 2, 3], [4, 5, 6])).window(2)
    assert [(listed(a), listed(b)) for a, b in found] == [([1, 2], [4, 5]), ([3], [6])]
    joined = found.flat_map(lambda a, b: Dataset.zip(a.batch(2), b.batch(2)))
    assert listed(joined) == [([1, 2], [4, 5]), ([3], [6])]


def test_strings_sparse_and_ragged_tensors_are_elements():
    words = Dataset.from_tensor_slices(["a", "b", "c"])
    assert sorted(listed(words.repeat(2).shuffle(6).unique())) == [b"a", b"b", b"c"]
    assert listed(words.batch(2)) == [[b"a", b"b"], [b"c"]]
    assert listed(words.map(lambda s: s + "!")) == [b"a!", b"b!", b"c!"]
    ragged = Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3]]))
    assert listed(ragged) == [[1], [2, 3]]
    assert next(iter(ragged.batch(2))).to_list() == [[1], [2, 3]]
    sparse = Dataset.from_tensor_slices(tf.sparse.eye(2))
    assert listed(sparse.batch(2)) == [[[1.0, 0.0], [0.0, 1.0]]]


# Steps with functions


def test_map_keeps_the_order_on_threads_unless_it_may_not():
    numbers = Dataset.range(40)
    assert listed(numbers.map(lambda x: x * x, tf.data.AUTOTUNE)) == [i * i for i in range(40)]
    loose = numbers.map(lambda x: x * x, 3, deterministic=False)
    assert sorted(listed(loose)) == [i * i for i in range(40)]


def test_scan_and_reduce_carry_a_state():
    numbers = Dataset.range(1, 5)
    assert listed(numbers.scan(np.int64(0), lambda s, x: (s + x, s * x))) == [0, 2, 9, 24]
    assert int(numbers.reduce(np.int64(0), lambda s, x: s + x)) == 10


def test_filter_take_while_and_unique_choose():
    numbers = Dataset.from_tensor_slices([1, 5, 2, 5, 7])
    assert listed(numbers.filter(lambda x: x > 2)) == [5, 5, 7]
    assert listed(numbers.take_while(lambda x: x < 6)) == [1, 5, 2, 5]
    assert listed(numbers.unique()) == [1, 5, 2, 7]


def test_padded_batches():
    rows = Dataset.range(4).map(lambda n: (n, tf.fill([n], n)))
    assert listed(rows.padded_batch(2)) == [([0, 1], [[0], [1]]), ([2, 3], [[2, 2, 0], [3, 3, 3]])]
    to_four = rows.padded_batch(4, ([], [4]), (None, np.int64(-1)), drop_remainder=True)
    assert listed(to_four)[0][1] == [[-1] * 4, [1, -1, -1, -1], [2, 2, -1, -1], [3, 3, 3, -1]]


def test_generators_are_called_anew_for_each_pass():
    def generator(n):
        for i in range(n):
            yield i, [i] * i

    dataset = Dataset.from_generator(
        generator,
        args=(3,),
        output_signature=(tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.float32)),
    )
    expected = [(0, []), (1, [1.0]), (2, [2.0, 2.0])]
    assert listed(dataset) == listed(dataset) == expected
    older = Dataset.from_generator(generator, (tf.int32, tf.float32), ([], [None]), args=(3,))
    assert older.element_spec == dataset.element_spec


def test_a_cache_is_filled_by_the_first_whole_pass():
    calls = []
    cached = Dataset.range(3).map(lambda x: calls.append(1) or x).cache()
    assert listed(cached.take(2)) == [0, 1]
    assert listed(cached) == listed(cached) == [0, 1, 2]
    assert len(calls) == 5
    shuffled = Dataset.range(20).shuffle(20).cache()
    assert listed(shuffled) == listed(shuffled)
    assert listed(shuffled.batch(20)) == [listed(shuffled)]


def test_errors_can_be_ignored():
    inverse = Dataset.range(8).map(
        lambda x: tf.debugging.check_numerics(1 / tf.cast(x % 4, tf.float32), "not finite")
    )
    assert listed(inverse.ignore_errors()) == pytest.approx([1, 1 / 2, 1 / 3] * 2)
    batches = listed(inverse.batch(2).ignore_errors())
    np.testing.assert_allclose(batches, [[1 / 2, 1 / 3]] * 2, rtol=1e-6)


def test_choices_name_datasets():
    datasets = [Dataset.range(3), Dataset.range(10, 12)]
    choices = Dataset.from_tensor_slices(np.array([0, 1, 1, 1, 0, 0, 0, 0]))
    assert listed(Dataset.choose_from_datasets(datasets, choices)) == [0, 10, 11]
    found = Dataset.choose_from_datasets(datasets, choices, stop_on_empty_dataset=False)
    assert listed(found) == [0, 10, 11, 1, 2]
    assert found.element_spec == INT64


def test_samples_come_by_weight():
    datasets = [Dataset.from_tensors(i).repeat() for i in range(3)]
    found = listed(Dataset.sample_from_datasets(datasets, [0.75, 0.25, 0.0], seed=1).take(2000))
    # Six standard deviations of 2000 draws at 1/4 are 116.
    assert abs(found.count(1) - 500) < 116
    assert 2 not in found
    some = Dataset.sample_from_datasets([Dataset.range(3), Dataset.range(10, 12)], seed=1)
    assert sorted(listed(some)) == [0, 1, 2, 10, 11]
    assert listed(some) == listed(some)


def test_windows_are_collected_by_key():
    found = Dataset.range(10).group_by_window(lambda x: x % 2, lambda _k, w: w.batch(3), 3)
    assert listed(found) == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]
    assert found.element_spec == tf.TensorSpec([None], tf.int64)


# What a dataset says of itself

INT64 = tf.TensorSpec([], tf.int64)
SPECS = {
    "range": (lambda d: d, INT64, 5),
    "batch": (lambda d: d.batch(2), tf.TensorSpec([None], tf.int64), 3),
    "batch_drop": (lambda d: d.batch(2, True), tf.TensorSpec([2], tf.int64), 2),
    "map": (lambda d: d.map(lambda x: [tf.cast(x, tf.float32)]), (tf.TensorSpec([]),), 5),
    "map_batches": (
        lambda d: d.batch(2).map(lambda x: x[:, None]),
        tf.TensorSpec([None, 1], tf.int64),
        3,
    ),
    "map_lengths": (lambda d: d.map(tf.range), tf.TensorSpec([None], tf.int64), 5),
    "padded": (
        lambda d: d.map(tf.range).padded_batch(2),
        tf.TensorSpec([None, None], tf.int64),
        3,
    ),
    "filter": (lambda d: d.filter(lambda x: x > 1), INT64, -2),
    "flat_map": (lambda d: d.flat_map(Dataset.range), INT64, -2),
    "interleave": (lambda d: d.interleave(lambda _x: Dataset.range(3)), INT64, -2),
    "unbatch": (lambda d: d.batch(2).unbatch(), INT64, -2),
    "rebatch": (lambda d: d.batch(2).rebatch(3, True), tf.TensorSpec([3], tf.int64), -2),
    "window": (lambda d: d.window(2), tf.data.DatasetSpec(INT64), 3),
    "scan": (lambda d: d.scan(np.int64(0), lambda s, x: (s, x)), INT64, 5),
    "enumerate": (lambda d: d.enumerate(), (INT64, INT64), 5),
    "ignore_errors": (lambda d: d.ignore_errors(), INT64, -2),
    "concatenate": (lambda d: d.concatenate(d.repeat()), INT64, -1),
    "repeat": (lambda d: d.repeat(), INT64, -1),
    "repeat_nothing": (lambda d: d.take(0).repeat(), INT64, 0),
    "random": (lambda _d: Dataset.random(1), INT64, -1),
    "counter": (lambda _d: Dataset.counter(dtype=tf.int32), tf.TensorSpec([], tf.int32), -1),
    "skip": (lambda d: d.skip(9), INT64, 0),
    "shuffle": (lambda d: d.shuffle(3).cache().prefetch(1), INT64, 5),
    "asserted": (
        lambda d: d.filter(lambda x: x < 9).apply(tf.data.experimental.assert_cardinality(5)),
        INT64,
        5,
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_specs_and_cardinalities_are_tensorflows(name):
    make, spec, count = SPECS[name]
    dataset = make(Dataset.range(5))
    assert dataset.element_spec == spec
    assert int(dataset.cardinality()) == int(tf.data.experimental.cardinality(dataset)) == count


def test_finding_a_spec_draws_no_random_numbers():
    tf.random.set_seed(1)
    expected = tf.random.uniform([]).numpy()
    tf.random.set_seed(1)
    assert Dataset.range(3).map(lambda _x: tf.random.uniform([2])).element_spec.shape == [2]
    assert tf.random.uniform([]).numpy() == expected


def test_a_dataset_is_true_and_has_a_length_if_it_is_known():
    assert Dataset.range(0)
    assert len(Dataset.range(7)) == 7
    assert_raises(lambda: len(Dataset.range(3).repeat()), TypeError, "The dataset is infinite.")
    unknown = Dataset.range(3).filter(lambda x: x > 1)
    assert_raises(lambda: len(unknown), TypeError, "The dataset length is unknown.")
    assert repr(Dataset.range(3)) == f"<_RangeDataset element_spec={INT64!r}>"


def test_iterators_hand_out_one_pass():
    iterator = iter(Dataset.range(2))
    assert isinstance(iterator, tf.data.Iterator)
    assert iterator.element_spec == INT64
    assert int(iterator.get_next()) == 0
    optional = iterator.get_next_as_optional()
    assert bool(optional.has_value())
    assert int(optional.get_value()) == 1
    nothing = iterator.get_next_as_optional()
    assert not nothing.has_value()
    assert_raises(
        nothing.get_value,
        tf.errors.InvalidArgumentError,
        "The given optional does not have a value. Ask has_value() first.",
    )
    assert_raises(iterator.get_next, tf.errors.OutOfRangeError, "End of sequence")


def test_options_are_merged():
    first, second = tf.data.Options(), tf.data.Options()
    first.deterministic = False
    second.threading.private_threadpool_size = 3
    options = Dataset.range(1).with_options(first).with_options(second).batch(1).options()
    assert options.deterministic is False
    assert options.threading.private_threadpool_size == 3
    assert_raises(
        lambda: setattr(first, "foo", 1),
        AttributeError,
        "Cannot set the property foo on Options.",
    )
    assert_raises(
        lambda: setattr(first, "deterministic", "x"),
        TypeError,
        "Property \"deterministic\" must be of type <class 'bool'>, got: 'x' (type: <class 'str'>)",
    )


def test_no_tape_sees_into_a_dataset():
    v = tf.Variable(2.0)
    x = tf.constant([1.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.add_n(list(Dataset.from_tensor_slices(x).map(lambda x: x * v)))
    assert float(y) == 8.0
    assert tape.gradient(y, [v, x]) == [None, None]


def test_elements_do_not_share_memory_with_what_may_change():
    x = np.arange(4.0)
    dataset = Dataset.from_tensor_slices(x).batch(2)
    first = next(iter(dataset))
    x[:] = -1
    first.numpy()[:] = -1
    v = tf.Variable(first)
    v.assign_add([1.0, 1.0])
    assert listed(dataset) == [[0.0, 1.0], [2.0, 3.0]]
    assert first.numpy().tolist() == [0.0, 1.0]


ERRORS = {
    "scalar": (
        lambda: Dataset.from_tensor_slices(1),
        ValueError,
        "Unbatching a tensor is only supported for rank >= 1. Use from_tensors for one element.",
    ),
    "uneven": (
        lambda: Dataset.from_tensor_slices(([1, 2], [1, 2, 3])),
        ValueError,
        "Dimensions 2 and 3 are not compatible. Expected tensors with first axes of one size.",
    ),
    "empty": (
        lambda: Dataset.from_tensor_slices(()),
        ValueError,
        "Invalid `element`. `element` should not be empty.",
    ),
    "batch": (
        lambda: Dataset.range(3).batch(0),
        tf.errors.InvalidArgumentError,
        "batch: batch_size must be greater than zero. Received: 0.",
    ),
    "shapes": (
        lambda: listed(Dataset.range(1, 3).map(tf.range).batch(2)),
        tf.errors.InvalidArgumentError,
        "Cannot batch tensors with different shapes in component 0. First element had shape [1] "
        "and element 1 had shape [2]. Use padded_batch for such elements.",
    ),
    "shard": (
        lambda: Dataset.range(3).shard(2, 2),
        tf.errors.InvalidArgumentError,
        "shard: index must be between 0 and 1. Received: index 2.",
    ),
    "shuffle": (
        lambda: Dataset.range(3).shuffle(0),
        tf.errors.InvalidArgumentError,
        "shuffle: buffer_size must be greater than zero or UNKNOWN_CARDINALITY. Received: 0.",
    ),
    "prefetch": (
        lambda: Dataset.range(3).prefetch(-2),
        tf.errors.InvalidArgumentError,
        "prefetch: buffer_size must be >= 0 or AUTOTUNE. Received: -2.",
    ),
    "window": (
        lambda: Dataset.range(3).window(2, 0),
        tf.errors.InvalidArgumentError,
        "window: shift must be greater than zero. Received: 0.",
    ),
    "single_none": (
        lambda: Dataset.range(0).get_single_element(),
        tf.errors.InvalidArgumentError,
        "Dataset was empty. Expected exactly one element.",
    ),
    "single_many": (
        lambda: Dataset.range(2).get_single_element(),
        tf.errors.InvalidArgumentError,
        "Dataset had more than one element. Expected exactly one element.",
    ),
    "unbatch_scalar": (
        lambda: Dataset.range(2).unbatch(),
        ValueError,
        "Cannot unbatch an input with scalar components. Expected elements with a first axis.",
    ),
    "unbatch_uneven": (
        lambda: listed(Dataset.from_tensors(([1, 2], [1, 2, 3])).unbatch()),
        ValueError,
        "`unbatch()` is only supported for datasets of elements whose components have a matching "
        "leading dimension. Encountered [2, 3].",
    ),
    "predicate": (
        lambda: listed(Dataset.range(2).filter(lambda x: x)),
        ValueError,
        "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its return "
        f"type is {INT64}.",
    ),
    "flat_map": (
        lambda: listed(Dataset.range(2).flat_map(lambda _x: 1)),
        TypeError,
        "Invalid `map_func`. `map_func` must return a `tf.data.Dataset` object. Got <class 'int'>.",
    ),
    "map": (
        lambda: Dataset.range(2).map(3),
        ValueError,
        "`map_func` must be callable. Received: 3.",
    ),
    "parallel": (
        lambda: Dataset.range(2).map(abs, 0),
        tf.errors.InvalidArgumentError,
        "num_parallel_calls must be greater than zero. Received: 0.",
    ),
    "interleave": (
        lambda: Dataset.range(2).interleave(Dataset.range, 0),
        tf.errors.InvalidArgumentError,
        "interleave: cycle_length must be greater than zero. Received: 0.",
    ),
    "zip_nothing": (
        lambda: Dataset.zip(),
        TypeError,
        "Must pass at least one dataset to `zip`.",
    ),
    "zip_twice": (
        lambda: Dataset.zip(Dataset.range(1), datasets=Dataset.range(1)),
        TypeError,
        "Both `*args` and `datasets` cannot be set.",
    ),
    "zip_list": (
        lambda: Dataset.zip([Dataset.range(1)]),
        TypeError,
        "Invalid input to `zip`. Expected datasets, in tuples and dicts but not in lists.",
    ),
    "concatenate": (
        lambda: Dataset.range(1).concatenate(Dataset.from_tensors(1.0)),
        TypeError,
        f"Incompatible dataset elements:\n  {INT64} vs.   {tf.TensorSpec([])}",
    ),
    "scan": (
        lambda: listed(Dataset.range(2).scan(0.0, lambda _s, x: (x, x))),
        TypeError,
        "Invalid `scan_func`. The element types for the new state must match the initial state. "
        f"Expected {tf.TensorSpec([])}, got {INT64}.",
    ),
    "scan_pair": (
        lambda: listed(Dataset.range(2).scan(0.0, lambda _s, _x: None)),
        TypeError,
        "Invalid `scan_func`. `scan_func` should return a pair consisting of new state and the "
        "output value but it returned None.",
    ),
    "unique": (
        lambda: listed(Dataset.from_tensor_slices([1.0]).unique()),
        TypeError,
        "`tf.data.Dataset.unique` does not support type tf.float32 -- only `tf.int32`, "
        "`tf.int64`, and `tf.string` are supported.",
    ),
    "unique_tuple": (
        lambda: listed(Dataset.range(1).enumerate().unique()),
        tf.errors.InvalidArgumentError,
        "unique: only elements that are one tensor are supported.",
    ),
    "range": (
        lambda: Dataset.range(),
        ValueError,
        "Invalid `args`. The length of `args` should be between 1 and 3 but was 0.",
    ),
    "range_step": (
        lambda: Dataset.range(1, 2, 0),
        tf.errors.InvalidArgumentError,
        "range: step must be a non-zero integer. Received: 0.",
    ),
    "generator": (
        lambda: Dataset.from_generator([1], tf.int32),
        TypeError,
        "`generator` must be a Python callable.",
    ),
    "generator_twice": (
        lambda: Dataset.from_generator(list, tf.int32, output_signature=INT64),
        TypeError,
        "The `output_types` argument can not be used together with the `output_signature` "
        "argument.",
    ),
    "generator_untyped": (
        lambda: Dataset.from_generator(list),
        TypeError,
        "To specify the output signature you need to provide either the `output_signature` "
        "argument or the `output_types` argument.",
    ),
    "generator_list": (
        lambda: Dataset.from_generator(list, output_signature=[INT64]),
        TypeError,
        "`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found "
        "<class 'list'> which is not.",
    ),
    "generator_type": (
        lambda: listed(Dataset.from_generator(lambda: iter(["a"]), tf.int32)),
        tf.errors.InvalidArgumentError,
        "`generator` yielded an element that could not be converted to the expected type. The "
        "expected type was int32, but the yielded element was 'a'.",
    ),
    "generator_shape": (
        lambda: listed(Dataset.from_generator(lambda: iter([[1, 2]]), tf.int32, [3])),
        tf.errors.InvalidArgumentError,
        "`generator` yielded an element of shape (2,) where an element of shape (3,) was expected.",
    ),
    "generator_structure": (
        lambda: listed(Dataset.from_generator(lambda: iter([1]), (tf.int32, tf.int32))),
        tf.errors.InvalidArgumentError,
        "`generator` yielded an element that did not match the expected structure. The expected "
        "structure was (tf.int32, tf.int32), but the yielded element was 1.",
    ),
    "padding_type": (
        lambda: listed(Dataset.range(2).map(tf.range).padded_batch(2, padding_values=0)),
        TypeError,
        "Invalid `padding_values`. `padding_values` values type tf.int32 does not match type "
        "tf.int64 of the corresponding input component.",
    ),
    "padding_rank": (
        lambda: listed(Dataset.range(2).padded_batch(2, [2])),
        ValueError,
        "The padded shape (2,) is not compatible with the shape () of the corresponding input "
        "component.",
    ),
    "padding_small": (
        lambda: listed(Dataset.range(4).map(tf.range).padded_batch(4, [2])),
        tf.errors.DataLossError,
        "Attempted to pad to a smaller size than the input element: to (2,), where sizes up to "
        "(3,) came.",
    ),
    "apply": (
        lambda: Dataset.range(1).apply(lambda _d: 1),
        TypeError,
        "`transformation_func` must return a `tf.data.Dataset` object. Got <class 'int'>.",
    ),
    "asserted_more": (
        lambda: listed(Dataset.range(3).apply(tf.data.experimental.assert_cardinality(2))),
        tf.errors.FailedPreconditionError,
        "Input dataset was expected to contain 2 elements but contained at least 3 elements.",
    ),
    "asserted_fewer": (
        lambda: listed(Dataset.range(3).apply(tf.data.experimental.assert_cardinality(4))),
        tf.errors.FailedPreconditionError,
        "Input dataset was expected to contain 4 elements but contained only 3 elements.",
    ),
    "numpy": (
        lambda: listed(Dataset.range(3).window(2)),
        TypeError,
        "as_numpy_iterator() does not support values of type Dataset.",
    ),
    "batch_of_datasets": (
        lambda: list(Dataset.range(3).window(2).batch(2)),
        TypeError,
        "Elements of type Dataset cannot be batched.",
    ),
    "choose_type": (
        lambda: Dataset.choose_from_datasets([Dataset.range(1)], Dataset.from_tensor_slices([0])),
        TypeError,
        "Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` tensors "
        f"but are {tf.TensorSpec([], tf.int32)}.",
    ),
    "choose_range": (
        lambda: listed(Dataset.choose_from_datasets([Dataset.range(1)], Dataset.range(1, 2))),
        tf.errors.InvalidArgumentError,
        "Selector index out of range: 1 >= 1.",
    ),
    "choose_nothing": (
        lambda: Dataset.choose_from_datasets([], Dataset.range(1)),
        ValueError,
        "Invalid `datasets`. `datasets` should not be empty.",
    ),
    "sample_weights": (
        lambda: Dataset.sample_from_datasets([Dataset.range(1)], [1.0, 2.0]),
        ValueError,
        "Invalid `weights`. `weights` should have the same length as `datasets` but got "
        "`len(weights)=2` vs. `len(datasets)=1`.",
    ),
    "sample_types": (
        lambda: (
            Dataset.sample_from_datasets(
                [Dataset.range(1), Dataset.from_tensors(1.0), Dataset.range(1)]
            ).element_spec
        ),
        TypeError,
        "Invalid `datasets`. `datasets` must have compatible element specs. Received: "
        f"{INT64}, {tf.TensorSpec([])}, {INT64}.",
    ),
    "group_size": (
        lambda: Dataset.range(1).group_by_window(abs, abs),
        ValueError,
        "Either the `window_size` argument or the `window_size_func` argument must be specified, "
        "and not both.",
    ),
    "cache_file": (
        lambda: Dataset.range(3).cache("file"),
        NotImplementedError,
        "cache keeps elements in memory only. Leave `filename` out.",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_is_wrong(name):
    assert_raises(*ERRORS[name])
