"""tf.data: threads that work ahead, what they raise, and that none stays behind."""

import gc
import threading
import traceback

import pytest

import retrograde as tf

Dataset = tf.data.Dataset


def ours():
    return [t for t in threading.enumerate() if t.name.startswith("retrograde-data")]


def failing(x):
    if x == 3:
        raise KeyError("three")
    return x


AHEAD = {
    "prefetch": lambda d, f: d.map(f).prefetch(2),
    "map": lambda d, f: d.map(f, num_parallel_calls=2),
    "both": lambda d, f: d.map(f, num_parallel_calls=2).prefetch(2),
    "interleave": lambda d, f: d.map(f).interleave(
        lambda x: Dataset.from_tensors(x).prefetch(1), 2, num_parallel_calls=2
    ),
}


@pytest.mark.parametrize("name", AHEAD)
def test_what_a_thread_raises_comes_with_its_traceback_after_what_came_before(name):
    found = []
    with pytest.raises(KeyError) as caught:
        for x in AHEAD[name](Dataset.range(10), failing):
            found.append(int(x))
    assert found == [0, 1, 2][: len(found)]
    assert name == "interleave" or found == [0, 1, 2]
    assert "failing" in [frame.name for frame in traceback.extract_tb(caught.tb)]
    del caught
    gc.collect()
    assert ours() == []


@pytest.mark.parametrize("name", AHEAD)
def test_a_pass_that_is_given_up_leaves_no_thread(name):
    iterator = iter(AHEAD[name](Dataset.range(100).repeat(), lambda x: x))
    assert int(next(iterator)) == 0
    # Threads that are interleaved make one element each, and may have done so already.
    assert name == "interleave" or ours() != []
    del iterator
    gc.collect()
    assert ours() == []


@pytest.mark.parametrize("name", AHEAD)
def test_a_whole_pass_leaves_no_thread(name):
    assert sorted(int(x) for x in AHEAD[name](Dataset.range(20), lambda x: x)) == list(range(20))
    assert ours() == []


def test_prefetch_works_while_nobody_asks():
    made = threading.Semaphore(0)
    iterator = iter(Dataset.range(9).map(lambda x: made.release() or x).prefetch(3))
    assert int(next(iterator)) == 0
    assert all(made.acquire(timeout=10) for _ in range(4))


def test_parallel_calls_run_at_the_same_time():
    meeting = threading.Barrier(3, timeout=10)
    dataset = Dataset.range(3).map(lambda x: meeting.wait() * 0 + x, num_parallel_calls=3)
    assert [int(x) for x in dataset] == [0, 1, 2]


def test_random_numbers_do_not_depend_on_threads():
    def numbers(calls):
        tf.random.set_seed(3)
        dataset = Dataset.range(20).map(lambda _x: tf.random.uniform([]), num_parallel_calls=calls)
        return [float(x) for x in dataset]

    assert numbers(1) == numbers(4)
    assert len(set(numbers(4))) == 20


def test_no_tape_sees_into_threads():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.add_n(list(Dataset.from_tensor_slices([1.0, 3.0]).map(lambda x: x * v, 2)))
    assert tape.gradient(y, v) is None
