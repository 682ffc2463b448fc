"""Tests that the benchmark of data-parallel training runs and compares losses."""

import sys

from benchmarks import data_parallel


def test_processes_train_and_report_their_times():
    times = data_parallel.measure({"retrograde_function": sys.executable}, rounds=2, steps=3)

    assert list(times) == ["retrograde_function"]
    assert len(times["retrograde_function"]) == 2
    assert all(seconds > 0 for seconds in times["retrograde_function"])


def test_each_process_has_its_own_batch_and_all_have_the_same_weights():
    (x, labels), (other, _) = data_parallel.batch(0), data_parallel.batch(1)

    assert x.shape == (data_parallel.BATCH, data_parallel.SIZES[0])
    assert labels.max() < data_parallel.SIZES[-1]
    assert (x != other).any()
    assert [w.shape for w in data_parallel.weights()[::2]] == [(256, 512), (512, 512), (512, 10)]
