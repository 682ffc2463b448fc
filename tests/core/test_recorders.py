"""Tests recorders: the events they observe, their order, and threads."""

import copy
import operator
import sys
import threading

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.recorders import Recorder, escape, thread, threads, use_recorders


class EventLog(Recorder):
    """Logs all events."""

    def __init__(self, name="", log=None):
        self.name = name
        self.log = [] if log is None else log

    def record(self, primitive, inputs, attrs, y):
        self.log.append((self.name, "record", primitive.name, inputs, attrs, y))

    def read(self, variable):
        self.log.append((self.name, "read", variable))

    def escape(self, tensor, how):
        self.log.append((self.name, "escape", how, tensor))

    def store(self, variable, tensor):
        self.log.append((self.name, "store", variable, tensor))

    def create(self, variable):
        self.log.append((self.name, "create", variable))

    def of_kind(self, kind):
        return [entry[2] for entry in self.log if entry[1] == kind]


def test_a_recorder_does_not_change_results():
    v = tf.Variable([1.0, 2.0])

    with use_recorders([Recorder()]):
        y = tf.reduce_sum(v * v)

    assert float(y) == 5.0


def test_calls_are_recorded_with_inputs_attrs_and_output():
    x, events = tf.constant([[1.0, 2.0]]), EventLog()

    with use_recorders([events]):
        y = tf.reduce_sum(tf.tanh(x), axis=1)

    assert events.of_kind("record") == ["tanh", "sum"]
    (_, _, _, (first,), attrs, h), (_, _, _, (second,), sum_attrs, result) = events.log
    assert first is x
    assert second is h
    assert not attrs
    assert sum_attrs["axis"] == (1,)
    assert result is y


def test_a_call_with_multiple_outputs_is_recorded_once():
    x, events = tf.constant([1.0, 2.0]), EventLog()

    with use_recorders([events]):
        a, b = tf.unstack(x)

    ((_, _, name, inputs, _, outputs),) = events.log
    assert name == "unstack"
    assert inputs[0] is x
    assert outputs[0] is a
    assert outputs[1] is b


def test_the_backward_pass_is_recorded():
    x, events = tf.Variable([1.0, 2.0]), EventLog()

    with tf.GradientTape() as tape:
        y = x * x
    with use_recorders([events]):
        tape.gradient(y, x)

    assert "guarded_multiply" in events.of_kind("record")


def test_the_outermost_recorder_is_notified_first():
    log = []
    v = tf.Variable(2.0)

    with use_recorders([EventLog("outer", log), EventLog("inner", log)]):
        y = v + 1.0
        float(y)

    assert [(name, kind) for name, kind, *_ in log] == [
        ("outer", "read"),
        ("inner", "read"),
        ("outer", "record"),
        ("inner", "record"),
        ("outer", "escape"),
        ("inner", "escape"),
    ]


def test_a_failed_call_is_not_recorded():
    events = EventLog()

    with use_recorders([events]), pytest.raises(tf.errors.InvalidArgumentError):
        tf.constant([1.0, 2.0]) + tf.constant([1.0, 2.0, 3.0])

    assert events.log == []


# NumPy tries the buffer protocol first, which classes can implement since Python 3.12.
AS_ARRAY = "__buffer__" if sys.version_info >= (3, 12) else "__array__"


@pytest.mark.parametrize(
    ("convert", "how"),
    [
        (lambda x: x.numpy(), "numpy"),
        (np.asarray, AS_ARRAY),
        (np.sin, AS_ARRAY),
        (np.from_dlpack, "__dlpack__"),
        (bytes, "bytes"),
        (bool, "bool"),
        (float, "float"),
        (int, "int"),
        (complex, "complex"),
        (lambda x: f"{x:.1f}", "format"),
        (lambda x: operator.index(tf.cast(x, tf.int32)), "index"),
        (lambda x: range(10)[tf.cast(x, tf.int32)], "index"),
        (lambda x: x if x > 0.0 else -x, "bool"),
        (lambda x: tf.constant([1.0, 2.0])[tf.cast(x, tf.int32)], "index"),
        (lambda x: tf.Variable(0.0).assign(x), "assign"),
        (lambda x: tf.Variable(0.0).assign_add(x), "assign_add"),
        (lambda x: tf.Variable(0.0).assign_sub(x), "assign_sub"),
        (lambda x: tf.Variable([0.0])[0].assign(x), "assign"),
        (lambda x: tf.Variable([0.0]).scatter_add(tf.IndexedSlices(x, [0])), "scatter"),
        (lambda x: tf.Variable(x), "Variable"),
    ],
)
def test_conversions_and_assignments_are_escapes(convert, how):
    x, events = tf.constant(1.0), EventLog()

    with use_recorders([events]):
        convert(x)

    assert how in events.of_kind("escape")


def test_conversions_of_a_variable_are_reads_and_escapes():
    v = tf.Variable(1.0)

    for convert in (float, int, bool, np.asarray, lambda v: v.numpy()):
        events = EventLog()
        with use_recorders([events]):
            convert(v)
        assert events.of_kind("read")[0] is v
        assert len(events.of_kind("escape")) == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.shape,
        lambda x: x.dtype,
        lambda x: x.ndim,
        lambda x: len(x),
        lambda x: x + 1.0,
        lambda x: x[0],
        lambda x: x.ref(),
        copy.copy,
    ],
)
def test_other_uses_of_a_tensor_are_not_escapes(f):
    events = EventLog()

    with use_recorders([events]):
        f(tf.constant([1.0, 2.0]))

    assert events.of_kind("escape") == []


def test_tapes_and_other_recorders_can_be_active_together():
    x, events = tf.Variable(3.0), EventLog()

    with use_recorders([events]), tf.GradientTape() as tape:
        y = x * x

    assert events.of_kind("record") == ["multiply"]
    assert float(tape.gradient(y, x)) == 6.0


def test_no_calls_are_recorded_without_active_recorders():
    x, events = tf.Variable(3.0), EventLog()

    with use_recorders([events]), tf.GradientTape() as tape:
        with use_recorders([]):
            y = x * x
        z = x * 2.0

    assert events.of_kind("record") == ["multiply"]
    assert tape.gradient(y, x) is None
    assert z is events.log[-1][-1]


def test_the_stack_is_restored_after_an_exception():
    before = list(thread.recorders)

    with pytest.raises(ZeroDivisionError), use_recorders([EventLog()]), use_recorders([]):
        raise ZeroDivisionError

    assert list(thread.recorders) == before == []


def test_each_thread_has_its_own_stack():
    x, events = tf.Variable(3.0), EventLog()
    observed = []

    def work():
        observed.append(list(thread.recorders))
        _ = x * x
        with use_recorders([EventLog()]):
            observed.append(len(thread.recorders))

    with use_recorders([events]):
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
        assert thread.recorders == [events]

    assert observed == [[], 1]
    assert events.log == []


def test_escape_notifies_recorders():
    events = EventLog()

    with use_recorders([events]):
        escape(tf.constant(1.0), "manual")

    assert events.of_kind("escape") == ["manual"]


# NumPy's floating-point errors


def test_floating_point_errors_are_ignored():
    with np.errstate(all="raise"):
        assert float(tf.constant(1.0) / 0.0) == np.inf
        assert np.isnan(float(tf.math.log(-1.0)))
        x = tf.Variable(0.0)
        with tf.GradientTape() as tape:
            y = tf.sqrt(x)
        assert float(tape.gradient(y, x)) == np.inf


def test_operations_do_not_change_the_errstate_of_numpy():
    before = np.geterr()

    tf.constant(1.0) / 0.0

    assert np.geterr() == before
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        tf.constant(1.0) / 0.0
        np.float64(1.0) / np.float64(0.0)


def test_floating_point_errors_are_ignored_in_other_threads():
    failures = []

    def work():
        try:
            with np.errstate(all="raise"):
                tf.constant(1.0) / 0.0
        except Exception as error:
            failures.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()

    assert failures == []


def test_creating_and_assigning_variables_notifies_recorders():
    events = EventLog()
    x = tf.constant([1.0, 2.0])

    with use_recorders([events]):
        v = tf.Variable([0.0, 0.0])
        v.assign(x)
        v.assign_add(x)
        v[0].assign(x[0])
        v.assign([3.0, 3.0])

    assert [created is v for created in events.of_kind("create")] == [True]
    assert [stored is v for stored in events.of_kind("store")] == [True] * 3
    assert events.of_kind("escape")[:2] == ["assign", "assign_add"]


def test_threads_are_listed_with_name_and_first_id():
    before = tf.constant(0.0)
    worker = threading.Thread(target=lambda: tf.constant(1.0) + 1.0, name="a worker")
    worker.start()
    worker.join()

    (first_id,) = [first_id for name, first_id in threads if name == "a worker"]
    assert before._id < first_id < tf.constant(0.0)._id
