"""Recorders: what they hear, in which order, in which thread."""

import copy
import operator
import sys
import threading

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.recorders import Recorder, escape, thread, threads, use_recorders


class Diary(Recorder):
    """Writes down all it hears."""

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

    def heard(self, kind):
        return [entry[2] for entry in self.log if entry[1] == kind]


def test_a_recorder_that_does_nothing_hears_all_and_changes_nothing():
    v = tf.Variable([1.0, 2.0])

    with use_recorders([Recorder()]):
        y = tf.reduce_sum(v * v)

    assert float(y) == 5.0


def test_every_primitive_is_heard_with_inputs_attrs_and_result():
    x, diary = tf.constant([[1.0, 2.0]]), Diary()

    with use_recorders([diary]):
        y = tf.reduce_sum(tf.tanh(x), axis=1)

    assert diary.heard("record") == ["tanh", "sum"]
    (_, _, _, (first,), attrs, h), (_, _, _, (second,), sum_attrs, result) = diary.log
    assert first is x
    assert second is h
    assert not attrs
    assert sum_attrs["axis"] == (1,)
    assert result is y


def test_primitives_with_several_results_are_heard_once():
    x, diary = tf.constant([1.0, 2.0]), Diary()

    with use_recorders([diary]):
        a, b = tf.unstack(x)

    ((_, _, name, inputs, _, outputs),) = diary.log
    assert name == "unstack"
    assert inputs[0] is x
    assert outputs[0] is a
    assert outputs[1] is b


def test_the_backward_walk_is_heard_too():
    x, diary = tf.Variable([1.0, 2.0]), Diary()

    with tf.GradientTape() as tape:
        y = x * x
    with use_recorders([diary]):
        tape.gradient(y, x)

    assert "guarded_multiply" in diary.heard("record")


def test_the_outermost_recorder_hears_first():
    log = []
    v = tf.Variable(2.0)

    with use_recorders([Diary("outer", log), Diary("inner", log)]):
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


def test_a_failed_call_is_not_heard():
    diary = Diary()

    with use_recorders([diary]), pytest.raises(tf.errors.InvalidArgumentError):
        tf.constant([1.0, 2.0]) + tf.constant([1.0, 2.0, 3.0])

    assert diary.log == []


# NumPy asks for the buffer first, which classes can offer since Python 3.12.
AS_ARRAY = "__buffer__" if sys.version_info >= (3, 12) else "__array__"


@pytest.mark.parametrize(
    ("leave", "how"),
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
def test_every_way_out_is_heard(leave, how):
    x, diary = tf.constant(1.0), Diary()

    with use_recorders([diary]):
        leave(x)

    assert how in diary.heard("escape")


def test_ways_out_of_a_variable_are_heard_as_reads_and_escapes():
    v = tf.Variable(1.0)

    for leave in (float, int, bool, np.asarray, lambda v: v.numpy()):
        diary = Diary()
        with use_recorders([diary]):
            leave(v)
        assert diary.heard("read")[0] is v
        assert len(diary.heard("escape")) == 1


@pytest.mark.parametrize(
    "stay",
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
def test_what_is_no_way_out(stay):
    diary = Diary()

    with use_recorders([diary]):
        stay(tf.constant([1.0, 2.0]))

    assert diary.heard("escape") == []


def test_tapes_and_other_recorders_listen_side_by_side():
    x, diary = tf.Variable(3.0), Diary()

    with use_recorders([diary]), tf.GradientTape() as tape:
        y = x * x

    assert diary.heard("record") == ["multiply"]
    assert float(tape.gradient(y, x)) == 6.0


def test_work_that_nobody_listens_to_is_not_recorded():
    x, diary = tf.Variable(3.0), Diary()

    with use_recorders([diary]), tf.GradientTape() as tape:
        with use_recorders([]):
            y = x * x
        z = x * 2.0

    assert diary.heard("record") == ["multiply"]
    assert tape.gradient(y, x) is None
    assert z is diary.log[-1][-1]


def test_the_stack_is_restored_after_an_exception():
    before = list(thread.recorders)

    with pytest.raises(ZeroDivisionError), use_recorders([Diary()]), use_recorders([]):
        raise ZeroDivisionError

    assert list(thread.recorders) == before == []


def test_each_thread_has_a_stack_of_its_own():
    x, diary = tf.Variable(3.0), Diary()
    seen = []

    def work():
        seen.append(list(thread.recorders))
        _ = x * x
        with use_recorders([Diary()]):
            seen.append(len(thread.recorders))

    with use_recorders([diary]):
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
        assert thread.recorders == [diary]

    assert seen == [[], 1]
    assert diary.log == []


def test_recorders_can_be_told_of_an_escape_by_hand():
    diary = Diary()

    with use_recorders([diary]):
        escape(tf.constant(1.0), "by hand")

    assert diary.heard("escape") == ["by hand"]


# NumPy's warnings


def test_operations_do_not_warn():
    with np.errstate(all="raise"):
        assert float(tf.constant(1.0) / 0.0) == np.inf
        assert np.isnan(float(tf.math.log(-1.0)))
        x = tf.Variable(0.0)
        with tf.GradientTape() as tape:
            y = tf.sqrt(x)
        assert float(tape.gradient(y, x)) == np.inf


def test_operations_leave_numpys_settings_alone():
    before = np.geterr()

    tf.constant(1.0) / 0.0

    assert np.geterr() == before
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        tf.constant(1.0) / 0.0
        np.float64(1.0) / np.float64(0.0)


def test_threads_do_not_warn_either():
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


def test_recorders_hear_of_new_variables_and_of_what_is_put_into_them():
    diary = Diary()
    x = tf.constant([1.0, 2.0])

    with use_recorders([diary]):
        v = tf.Variable([0.0, 0.0])
        v.assign(x)
        v.assign_add(x)
        v[0].assign(x[0])
        v.assign([3.0, 3.0])

    assert [made is v for made in diary.heard("create")] == [True]
    assert [held is v for held in diary.heard("store")] == [True] * 3
    assert diary.heard("escape")[:2] == ["assign", "assign_add"]


def test_threads_are_known_by_name_from_their_first_look():
    before = tf.constant(0.0)
    worker = threading.Thread(target=lambda: tf.constant(1.0) + 1.0, name="a worker")
    worker.start()
    worker.join()

    (began,) = [began for name, began in threads if name == "a worker"]
    assert before._id < began < tf.constant(0.0)._id
