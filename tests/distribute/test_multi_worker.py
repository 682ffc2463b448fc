"""Tests MultiWorkerMirroredStrategy in real processes. TensorFlow computed the numbers."""

import numpy as np
import pytest


@pytest.fixture
def semantics(two_workers):
    return [worker["semantics"] for worker in two_workers]


def both(semantics, name):
    return [worker[name] for worker in semantics]


def test_variables_start_from_the_value_of_the_first_worker(semantics):
    assert both(semantics, "replicas") == [2, 2]
    assert both(semantics, "initial") == [5.0, 5.0]
    assert both(semantics, "created") == [3.0, 3.0]


def test_random_numbers_differ_in_replicas_only(semantics):
    first, second = both(semantics, "drawn in scope")
    assert first == second
    first, second = both(semantics, "drawn")
    assert first != second


# Results of TensorFlow 2.21 with two replicas
@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "id": [0.0, 1.0],
        "count": [2, 2],
        "plain": [1.0, 2.0],
        "mirrored SUM": [6.0, 6.0],
        "mirrored MEAN": [3.0, 3.0],
        "mirrored ONLY_FIRST_REPLICA": [2.0, 2.0],
        "on read SUM": [2.0, 4.0],
        "on read MEAN": [2.0, 4.0],
        "across": [{"SUM": 6.0, "MEAN": 3.0, "ONLY_FIRST_REPLICA": 2.0}] * 2,
        "assigned": [8.0, 8.0],
        "share": [4.0, 4.0],
        "loss": [0.75, 0.75],
        "regularization": [1.5, 1.5],
        "gradients": [
            [[18.0, 36.0], [4.5, 9.0], [6.0, 12.0]],
            [[18.0, 36.0], [4.5, 9.0], [12.0, 24.0]],
        ],
        "structure": [[1.0, 4.0]] * 2,
        "sparse": [("IndexedSlices", [1.0, 2.0, 0.0])] * 2,
        "merged": [3.0, 3.0],
        "reduced": [[3.0, 1.5, 7.0, 1.75]] * 2,
        "gathered": [[1.0, 1.0, 2.0, 3.0]] * 2,
        "averaged gradient": [1.5, 1.5],
        "from function": [[[0, 2], [4]], [[1, 3], []]],
    }.items(),
)
def test_replicas_observe_the_values_of_tensorflow(semantics, name, expected):
    assert both(semantics, name) == expected


def test_functions_are_traced_again_when_workers_are_connected_and_in_replicas(semantics):
    assert both(semantics, "traced before") == [[2.0, 2.0, 2.0, 4.0]] * 2
    assert both(semantics, "traced outside") == [[1, 1, 2]] * 2


def test_batches_are_divided_as_in_tensorflow(semantics):
    first, second = both(semantics, "shares")
    assert first["10 by 4"] == [[0, 1], [4, 5], [8]]
    assert second["10 by 4"] == [[2, 3], [6, 7], [9]]
    assert (first["9 by 4"][-1], second["9 by 4"][-1]) == ([8], [])
    assert (first["7 by 3"], second["7 by 3"]) == ([[0, 1], [3, 4], [6]], [[2], [5], []])
    assert (first["5 by 4"][-1], second["5 by 4"][-1]) == ([4], [])


def test_workers_read_their_own_files(semantics):
    first, second = both(semantics, "by file")
    assert first == [[b"0a"], [b"0b"], [b"2a"], [b"2b"]]
    assert second == [[b"1a"], [b"1b"], [], []]


def test_workers_shuffle_alike_without_a_seed(semantics):
    first, second = both(semantics, "shuffled")
    assert sorted(first + second) == list(range(8))


def test_error_messages(semantics):
    for worker in semantics:
        assert worker["refused"] == (
            "ValueError: SyncOnReadVariable does not support `assign_add` in cross-replica context "
            "when aggregation is set to `tf.VariableAggregation.SUM`."
        )
        assert worker["cross replica"] == (
            "RuntimeError: You are calling `compute_average_loss` in cross replica context, while "
            "it was expected to be called in replica context."
        )
        assert worker["drifted"] == (
            "FailedPreconditionError: 1 of 4 variables differ between replicas: Variable:0. Assign "
            "to mirrored variables only values that are the same in all replicas: reduce gradients "
            "with tf.distribute.get_replica_context().all_reduce, or let "
            "optimizer.apply_gradients do it."
        )


# Training

TOLERANCE = {"float32": 2e-6, "float64": 1e-13}


def test_two_workers_train_to_the_weights_of_one_replica(two_workers, one_replica):
    expected = one_replica["trainings"]
    trained = [worker["trainings"] for worker in two_workers]
    for mode, dtype in expected:
        first = trained[0][mode, dtype]
        assert_close(first, expected["eager", dtype], TOLERANCE[dtype])
        assert_close(expected[mode, dtype], expected["eager", dtype], TOLERANCE[dtype])
        for other in trained[1:]:
            assert other[mode, dtype]["losses"] == first["losses"]
            assert_same(other[mode, dtype], first)
        # one bucket of gradients, and the loss; compiled programs are compared before
        assert first["collectives per step"] == (3 if mode == "xla" else 2)
    for dtype in TOLERANCE:
        assert_same(trained[0]["eager", dtype], trained[0]["replayed", dtype])


def test_four_workers_train_to_the_weights_of_one_replica(four_workers, one_replica):
    first, *others = [worker["training"] for worker in four_workers]
    assert_close(first, one_replica["trainings"]["eager", "float32"], TOLERANCE["float32"])
    for other in others:
        assert_same(other, first)


def test_all_reduces_send_the_bytes_of_a_ring_in_buckets(two_workers, four_workers):
    for workers in (two_workers, four_workers):
        assert_optimal([worker["traffic"] for worker in workers])


def assert_optimal(traffic):
    size = traffic[0]["size"]
    sent = sum(worker["sent per step"] for worker in traffic)
    assert 1 <= sent / (2 * (len(traffic) - 1) * size) < 1.02
    assert {worker["collectives per step"] for worker in traffic} == {size >> 20}


def assert_close(actual, expected, tolerance):
    for a, b in zip(actual["weights"], expected["weights"], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)
    np.testing.assert_allclose(actual["losses"], expected["losses"], rtol=0, atol=tolerance)


def assert_same(actual, expected):
    for a, b in zip(actual["weights"], expected["weights"], strict=True):
        np.testing.assert_array_equal(a, b)
