"""tf.data: threads, their errors and their shutdown."""

import gc
import threading
import traceback

import pytest

import retrograde as tf

Dataset = tf.data.Dataset


def data_threads():
    return [t for t in threading.enumerate() if t.name.startswith("retrograde-data")]


def raise_at_three(x):
    if x == 3:
        raise KeyError("three")
    return x


PIPELINES = {
    "prefetch": lambda d, f: d.map(f).prefetch(2),
    "map": lambda d, f: d.map(f, num_parallel_calls=2),
    "both": lambda d, f: d.map(f, num_parallel_calls=2).prefetch(2),
    "interleave": lambda d, f: d.map(f).interleave(
        lambda x: Dataset.from_tensors(x).prefetch(1), 2, num_parallel_calls=2
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_errors_in_threads_are_raised_in_order_with_traceback(name):
    elements = []
    with pytest.raises(KeyError) as caught:
        for x in PIPELINES[name](Dataset.range(10), raise_at_three):
            elements.append(int(x))
    assert elements == [0, 1, 2][: len(elements)]
    assert name == "interleave" or elements == [0, 1, 2]
    assert "raise_at_three" in [frame.name for frame in traceback.extract_tb(caught.tb)]
    del caught
    gc.collect()
    assert data_threads() == []


@pytest.mark.parametrize("name", PIPELINES)
def test_dropped_iterator_stops_its_threads(name):
    iterator = iter(PIPELINES[name](Dataset.range(100).repeat(), lambda x: x))
    assert int(next(iterator)) == 0
    # Threads of `interleave` compute one element each and may have ended already.
    assert name == "interleave" or data_threads() != []
    del iterator
    gc.collect()
    assert data_threads() == []


@pytest.mark.parametrize("name", PIPELINES)
def test_exhausted_iterator_stops_its_threads(name):
    assert sorted(int(x) for x in PIPELINES[name](Dataset.range(20), lambda x: x)) == list(
        range(20)
    )
    assert data_threads() == []


def test_prefetch_computes_ahead():
    computed = threading.Semaphore(0)
    iterator = iter(Dataset.range(9).map(lambda x: computed.release() or x).prefetch(3))
    assert int(next(iterator)) == 0
    assert all(computed.acquire(timeout=10) for _ in range(4))


def test_parallel_calls_are_concurrent():
    barrier = threading.Barrier(3, timeout=10)
    dataset = Dataset.range(3).map(lambda x: barrier.wait() * 0 + x, num_parallel_calls=3)
    assert [int(x) for x in dataset] == [0, 1, 2]


def test_random_numbers_do_not_depend_on_threads():
    def draw_numbers(calls):
        tf.random.set_seed(3)
        dataset = Dataset.range(20).map(lambda _x: tf.random.uniform([]), num_parallel_calls=calls)
        return [float(x) for x in dataset]

    assert draw_numbers(1) == draw_numbers(4)
    assert len(set(draw_numbers(4))) == 20


def test_tapes_do_not_record_in_threads():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.add_n(list(Dataset.from_tensor_slices([1.0, 3.0]).map(lambda x: x * v, 2)))
    assert tape.gradient(y, v) is None
