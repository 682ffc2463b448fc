"""Tests failures of one worker: every other worker raises a clear error in time, and none hangs."""

import contextlib
import signal
import subprocess
import tempfile
import time

import pytest

from tests.distribute.workers import SECONDS, outcome, started


def fail(how, failing, **env):
    """Runs two workers, one of which fails. Returns how both ended."""
    with tempfile.TemporaryDirectory() as folder:
        args = (how, failing)
        with started("programs:failing", 2, folder, args, env) as workers:
            end = time.monotonic() + SECONDS
            others = [w for i, w in enumerate(workers) if how != "stop" or i != failing]
            for worker in others:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    worker.wait(max(0.1, end - time.monotonic()))
            return [outcome(worker, folder, rank) for rank, worker in enumerate(workers)]


def last_error(output):
    """Returns the last line of a worker's output that names an exception."""
    lines = [line for line in output.splitlines() if "Error: " in line]
    return lines[-1] if lines else output


@pytest.mark.parametrize(("how", "failing"), [("kill", 0), ("kill", 1), ("crash", 1)])
def test_a_killed_or_crashed_worker_is_an_error_in_the_other(how, failing):
    workers = fail(how, failing)
    other = workers[1 - failing]

    assert workers[failing].code == -(signal.SIGKILL if how == "kill" else signal.SIGSEGV)
    assert other.code == 1, other.output
    assert "WorkerLostError: Worker" in last_error(other.output)
    assert "Restart all workers from the last checkpoint." in last_error(other.output)


def test_a_stopped_worker_is_an_error_after_the_timeout():
    workers = fail("stop", 1, RETROGRADE_COLLECTIVE_TIMEOUT="5")

    assert workers[0].code == 1, workers[0].output
    assert "a worker ended, or did not answer for 5 seconds" in last_error(workers[0].output)


def test_the_other_worker_repeats_the_exception_of_the_first():
    workers = fail("raise", 1)

    assert [worker.code for worker in workers] == [1, 1]
    assert last_error(workers[1].output) == "KeyError: 'a mistake'"
    assert "WorkerLostError" in last_error(workers[0].output)
    assert "worker 1 raised KeyError: 'a mistake'" in last_error(workers[0].output)


def test_a_worker_that_ends_early_is_reported():
    workers = fail("return", 1)

    assert workers[1].code == 0, workers[1].output
    assert workers[0].code == 1
    assert "worker 1 ended its program" in last_error(workers[0].output)


def test_workers_with_different_versions_report_both():
    workers = fail("version", 1)

    assert [worker.code for worker in workers] == [1, 1]
    for worker in workers:
        error = last_error(worker.output)
        assert "WorkerLostError: Workers do different things. worker 0: retrograde" in error
        assert "worker 1: retrograde 0.0.0, jax" in error


def test_a_worker_that_never_starts_is_an_error_after_the_timeout():
    workers = fail("absent", 1, RETROGRADE_START_TIMEOUT="5")

    assert workers[0].code == 1, workers[0].output
    assert "or not all workers started within 5 seconds." in last_error(workers[0].output)


def test_workers_that_run_different_collectives_report_both():
    workers = fail("differ", 1)

    assert [worker.code for worker in workers] == [1, 1]
    for worker in workers:
        error = last_error(worker.output)
        assert "WorkerLostError: Workers do different things." in error
        assert "all_reduce of float32[3]" in error
        assert "all_reduce of float32[4]" in error
        assert "programs.py" in error


def test_workers_that_run_known_collectives_in_different_orders_end_with_an_error():
    workers = fail("diverge", 1)

    assert [worker.code for worker in workers] == [1, 1], [worker.output for worker in workers]
    for worker in workers:
        assert "WorkerLostError: Worker" in last_error(worker.output)
        assert "XLA" in last_error(worker.output)


def test_an_error_can_be_caught():
    workers = fail("kill", 1, CATCH="1")

    assert workers[0].code == 0, workers[0].output
    assert workers[0].result == "caught"
