"""Tests Variable: creation, reads, assignment, copying and pickling."""

import copy
import inspect
import operator
import pickle
import signal

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.recorders import Recorder, use_recorders
from retrograde.values import errors

# Creation


def test_defaults():
    v = tf.Variable(1.0)

    assert v.dtype is tf.float32
    assert v.trainable is True
    assert v.name == "Variable:0"
    assert v.shape == ()
    assert v.constraint is None
    assert v.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert v.synchronization is tf.VariableSynchronization.AUTO
    assert v.aggregation is tf.VariableAggregation.NONE


def test_variable_aggregation_has_the_values_of_tensorflow():
    assert [(aggregation.name, aggregation.value) for aggregation in tf.VariableAggregation] == [
        ("NONE", 0),
        ("SUM", 1),
        ("MEAN", 2),
        ("ONLY_FIRST_REPLICA", 3),
    ]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, tf.int32),
        ([1.0], tf.float32),
        (np.ones(2), tf.float64),
        (True, tf.bool),
        ("a", tf.string),
    ],
)
def test_the_dtype_is_inferred_from_the_initial_value(value, dtype):
    assert tf.Variable(value).dtype is dtype


def test_the_initial_value_can_be_a_function():
    v = tf.Variable(lambda: [1, 2], dtype=tf.float64)

    assert v.dtype is tf.float64
    assert v.numpy().tolist() == [1.0, 2.0]


def test_the_initial_value_is_not_modified():
    x, v = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0])

    for source in (x, v):
        before = source.numpy()
        w = tf.Variable(source)
        w.assign_add([1.0, 1.0])
        np.testing.assert_array_equal(source.numpy(), before)
        np.testing.assert_array_equal(w.numpy(), before + 1.0)


def test_arguments_of_the_constructor():
    def constraint(x):
        return x

    v = tf.Variable([1.0], trainable=False, name="w", constraint=constraint)

    assert v.trainable is False
    assert v.name == "w:0"
    assert v.constraint is constraint


def test_positional_arguments_have_the_order_of_tensorflow():
    v = tf.Variable([1], False, True, None, "w", None, tf.float64)

    assert (v.trainable, v.name, v.dtype) == (False, "w:0", tf.float64)


def test_signature():
    first, second, *_ = inspect.signature(tf.Variable).parameters

    assert (first, second) == ("initial_value", "trainable")


def test_on_read_variables_are_not_trainable_by_default():
    on_read = tf.VariableSynchronization.ON_READ

    assert tf.Variable(1.0, synchronization=on_read).trainable is False
    assert tf.Variable(1.0, synchronization=on_read, trainable=True).trainable is True


@pytest.mark.parametrize(
    ("create", "error", "message"),
    [
        (lambda: tf.Variable(), ValueError, "The `initial_value` arg to `tf.Variable` must be"),
        (lambda: tf.Variable(1.5, dtype=tf.int32), TypeError, "Cannot convert 1.5"),
        (lambda: tf.Variable(tf.constant(1.0), dtype=tf.float64), ValueError, "requested dtype"),
        (lambda: tf.Variable([1.0], shape=[2]), ValueError, "not compatible with the explicitly"),
        (lambda: tf.Variable([1.0], constraint=3), ValueError, "must be None or a callable"),
    ],
)
def test_invalid_arguments_raise(create, error, message):
    with pytest.raises(error, match=message):
        create()


@pytest.mark.parametrize("attribute", ["trainable", "name", "dtype", "shape", "constraint"])
def test_attributes_are_read_only(attribute):
    v = tf.Variable(1.0)

    with pytest.raises(AttributeError):
        setattr(v, attribute, None)


def test_custom_attributes_can_be_set():
    v = tf.Variable(1.0)

    v.regularizer = "l2"

    assert v.regularizer == "l2"


# Reads


def test_reads_return_new_differentiable_tensors():
    v = tf.Variable([1.0, 2.0])

    for read in (v.value, v.read_value, lambda: tf.convert_to_tensor(v), lambda: tf.identity(v)):
        with tf.GradientTape() as tape:
            x = read()

        assert isinstance(x, tf.Tensor)
        assert x is not read()
        assert tape.gradient(x, v).numpy().tolist() == [1.0, 1.0]


def test_a_tensor_read_from_a_variable_is_a_separate_source():
    v = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        x = v.value()
        y = x * v

    assert [float(g) for g in tape.gradient(y, [x, v])] == [2.0, 4.0]


def test_assignments_do_not_change_values_read_before():
    v = tf.Variable([1.0, 2.0])
    tensor, array, part = v.value(), v.numpy(), v[0]

    v.assign([8.0, 9.0])

    assert tensor.numpy().tolist() == array.tolist() == [1.0, 2.0]
    assert float(part) == 1.0


def test_numpy_returns_a_writable_copy():
    v = tf.Variable([1.0, 2.0])

    v.numpy()[0] = 9.0

    assert v.numpy().tolist() == [1.0, 2.0]


def test_numpy_functions_accept_variables():
    v = tf.Variable([1.0, 4.0])

    assert np.sqrt(v).tolist() == [1.0, 2.0]
    assert np.asarray(v, np.float64).dtype == np.float64
    assert not np.asarray(v).flags.writeable


def test_conversions_to_python():
    assert float(tf.Variable(2.5)) == 2.5
    assert int(tf.Variable(2.5)) == 2
    assert complex(tf.Variable(1j)) == 1j
    assert not tf.Variable(0.0)
    assert operator.index(tf.Variable(3)) == 3
    assert [float(x) for x in tf.Variable([3.0, 4.0])] == [3.0, 4.0]
    assert tf.Variable([3.0, 4.0]).ndim == 1
    assert tf.Variable([3.0, 4.0]).get_shape() == [2]
    with pytest.raises(TypeError):
        len(tf.Variable([3.0]))
    with pytest.raises(TypeError, match="scalar"):
        list(tf.Variable(3.0))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(tf.Variable([1.0, 2.0]))


def test_a_new_variable_is_initialized():
    initialized = tf.Variable(1.0).is_initialized()

    assert isinstance(initialized, tf.Tensor)
    assert initialized.dtype is tf.bool
    assert initialized


def test_sparse_reads():
    v = tf.Variable([[1.0], [2.0], [3.0]])

    with tf.GradientTape() as tape:
        rows = v.sparse_read([2, 0])
        elements = v.gather_nd([[1, 0]])
        y = tf.reduce_sum(rows) + tf.reduce_sum(elements)

    assert rows.numpy().tolist() == [[3.0], [1.0]]
    assert elements.numpy().tolist() == [2.0]
    gradient = tf.convert_to_tensor(tape.gradient(y, v))
    assert gradient.numpy().tolist() == [[1.0], [1.0], [1.0]]
    with pytest.raises(errors.InvalidArgumentError, match=r"not in \[0, 3\)"):
        v.sparse_read([3])


REPRS = [
    (lambda: tf.Variable(0.1), "'Variable:0' shape=() dtype=float32, numpy=0.10000000149011612"),
    (
        lambda: tf.Variable([1.0, 2.0], name="w"),
        "'w:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)",
    ),
    (lambda: tf.Variable("abc"), "'Variable:0' shape=() dtype=string, numpy=b'abc'"),
    (
        lambda: tf.Variable([[1, 2], [3, 4]], shape=[None, 2]),
        "'Variable:0' shape=(None, 2) dtype=int32, numpy=\n"
        "array([[1, 2],\n       [3, 4]], dtype=int32)",
    ),
]


@pytest.mark.parametrize(("create", "expected"), REPRS)
def test_repr_and_str(create, expected):
    assert repr(create()) == str(create()) == f"<tf.Variable {expected}>"


def test_variables_are_unhashable_but_have_references():
    v, other = tf.Variable(1.0), tf.Variable(1.0)

    with pytest.raises(TypeError, match=r"Variable is unhashable. Instead, use variable.ref\(\)"):
        hash(v)
    assert {v.ref(): "found"}[v.ref()] == "found"
    assert v.ref().deref() is v
    assert v.ref() != other.ref()


# Assignment


def test_assign_returns_the_variable():
    v = tf.Variable(1.0)

    a, b, c = v.assign(5.0), v.assign_add(2.0), v.assign_sub(1.0)

    assert a is b is c is v
    assert float(v) == 6.0
    assert v.assign(1.0, read_value=False) is None
    assert v.assign_add(1.0, read_value=False) is None
    assert float(v) == 2.0


@pytest.mark.parametrize(
    "value",
    [
        [3.0, 4.0],
        [3, 4],
        (3, 4.0),
        np.array([3, 4]),
        np.array([3.0, 4.0]),
        tf.constant([3.0, 4.0]),
        tf.Variable([3.0, 4.0]),
        tf.IndexedSlices(tf.constant([4.0, 3.0]), tf.constant([1, 0]), tf.constant([2])),
    ],
    ids=lambda v: type(v).__name__,
)
def test_assign_accepts_lists_arrays_tensors_and_variables(value):
    v = tf.Variable([1.0, 2.0])

    assert v.assign(value).numpy().tolist() == [3.0, 4.0]
    assert v.assign_add(value).numpy().tolist() == [6.0, 8.0]
    assert v.assign_sub(value).numpy().tolist() == [3.0, 4.0]
    assert v.dtype is tf.float32


@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
@pytest.mark.parametrize(
    ("value", "error"),
    [
        (tf.constant([1, 2]), ValueError),
        (tf.constant([1.0, 2.0], tf.float64), ValueError),
        (tf.Variable([1.0, 2.0], dtype=tf.float64), ValueError),
        ("a", TypeError),
        (None, ValueError),
        ([1j, 1j], TypeError),
    ],
)
def test_assigning_another_dtype_raises(method, value, error):
    v = tf.Variable([1.0, 2.0])

    with pytest.raises(error):
        getattr(v, method)(value)

    assert v.numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("value", [0.0, [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]]])
def test_assign_does_not_broadcast(value):
    v = tf.Variable([1.0, 2.0])

    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign(value)
    for update in (v.assign_add, v.assign_sub):
        with pytest.raises(errors.InvalidArgumentError, match="Expected the same shape"):
            update(value)

    assert v.numpy().tolist() == [1.0, 2.0]


def test_unknown_dimensions():
    v = tf.Variable([1.0, 2.0], shape=[None])

    v.assign([5.0, 6.0, 7.0])
    v.assign_add([1.0, 1.0, 1.0])

    assert v.shape == tf.TensorShape([None])
    assert v.value().shape == [3]
    assert v.numpy().tolist() == [6.0, 7.0, 8.0]
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign([[1.0]])
    with pytest.raises(errors.InvalidArgumentError, match="Expected the same shape"):
        v.assign_add([1.0])


def test_unknown_rank():
    v = tf.Variable([1.0, 2.0], shape=tf.TensorShape(None))

    v.assign([[1.0, 2.0, 3.0]])

    assert v.numpy().tolist() == [[1.0, 2.0, 3.0]]
    assert str(v.shape) == "<unknown>"


def test_assign_add_of_booleans_and_strings_raises():
    for v, delta in ((tf.Variable([True]), [True]), (tf.Variable(["a"]), ["b"])):
        with pytest.raises(errors.InvalidArgumentError, match="not supported"):
            v.assign_add(delta)


def test_integer_variables():
    v = tf.Variable(0, dtype=tf.int64)

    for _ in range(3):
        v.assign_add(1)

    assert (int(v), v.dtype) == (3, tf.int64)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.complex64, tf.uint8])
def test_updates_keep_the_dtype(dtype):
    for start in (1, [1, 2]):
        v = tf.Variable(start, dtype=dtype)

        v.assign_add(start)
        v.assign_sub(start)

        assert v.dtype is dtype
        np.testing.assert_array_equal(v.numpy(), np.array(start, dtype.as_numpy_dtype))


@pytest.mark.parametrize(
    ("sign", "replacement"),
    [
        ("+", "`var.assign_add(value)`"),
        ("-", "`var.assign_sub(value)`"),
        ("*", "`var.assign(var * value)`"),
        ("/", "`var.assign(var / value)`"),
        ("**", "`var.assign(var ** value)`"),
    ],
)
def test_in_place_operators_raise(sign, replacement):
    scope = {"v": tf.Variable(1.0)}

    with pytest.raises(RuntimeError) as raised:
        exec(f"v {sign}= 1.0", scope)

    assert str(raised.value) == (
        f"`var {sign}= value` with `tf.Variable`s is not supported. Use {replacement} to modify "
        f"the variable, or `out = var {sign} value` if you need to get a new output Tensor."
    )


def test_in_place_floor_division_rebinds_to_a_tensor():
    v = tf.Variable(7.0)
    w = v

    w //= 2.0

    assert isinstance(w, tf.Tensor)
    assert float(w) == 3.0


def test_assign_blocks_the_gradient():
    x, v = tf.constant(3.0), tf.Variable(0.0)

    with tf.GradientTape() as tape:
        tape.watch(x)
        v.assign(x * 2.0)
        y = v * v

    assert tape.gradient(y, [x, v])[0] is None


def test_gradients_use_the_values_read_before_and_after_an_assignment():
    v = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        a = v * v
        v.assign(10.0)
        y = a + v * v

    assert float(tape.gradient(y, v)) == 24.0


# Recorders


class CountingRecorder(Recorder):
    def __init__(self):
        self.reads, self.escapes = [], []

    def read(self, variable):
        self.reads.append(variable)

    def escape(self, tensor, how):  # noqa: ARG002
        self.escapes.append(how)


def test_recorders_observe_reads_and_assignments():
    v, x, recorder = tf.Variable([1.0, 2.0]), tf.constant([1.0, 1.0]), CountingRecorder()

    with use_recorders([recorder]):
        _ = v + x
        v.assign(x)
        v.assign_add(x)
        v[0].assign(x[0])

    assert [read is v for read in recorder.reads] == [True, True]  # `v + x` and `v[0]`
    assert recorder.escapes == ["assign", "assign_add", "assign"]


# Copying


def test_deepcopy_is_independent_and_keeps_the_attributes():
    v = tf.Variable([1.0, 2.0], trainable=False, name="w", shape=[None])

    w = copy.deepcopy(v)
    v.assign_add([1.0, 1.0])

    assert w.numpy().tolist() == [1.0, 2.0]
    assert (w.trainable, w.name, w.shape) == (False, "w:0", tf.TensorShape([None]))
    w.assign_add([5.0, 5.0])
    assert v.numpy().tolist() == [2.0, 3.0]
    with tf.GradientTape() as tape:
        tape.watch([v, w])
        y = w * w
    assert tape.gradient(y, v) is None


def test_deepcopy_of_a_structure_copies_each_variable_once():
    v = tf.Variable(1.0)

    a, b = copy.deepcopy([v, v])

    assert a is b
    assert a is not v


def test_a_shallow_copy_shares_the_value():
    v = tf.Variable(1.0)

    w = copy.copy(v)
    v.assign(5.0)

    assert float(w) == 5.0


@pytest.mark.parametrize("value", [1.5, [1.0, 2.0], [[1, 2]], True, "a"])
def test_pickling(value):
    v = tf.Variable(value, trainable=False, name="w")

    w = pickle.loads(pickle.dumps(v))

    assert isinstance(w, tf.Variable)
    assert repr(w) == repr(v)
    assert w.trainable is False


def test_pickling_bfloat16():
    w = pickle.loads(pickle.dumps(tf.Variable([1.5, 2.5], dtype=tf.bfloat16)))

    assert w.dtype is tf.bfloat16
    assert w.assign_add([1.0, 1.0]).numpy().tolist() == [2.5, 3.5]


# Signals

if hasattr(signal, "setitimer"):

    def test_a_signal_handler_can_read_a_variable_during_an_update():
        v = tf.Variable(np.zeros(1000))
        values_read = []

        def handler(*_):
            values_read.append(float(v[0]))

        before = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0005)
        try:
            while len(values_read) < 50:
                v.assign_add(np.ones(1000))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)

        assert values_read == sorted(values_read)
        assert float(v[0]) >= values_read[-1]
