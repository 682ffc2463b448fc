"""Branches, loops, TensorArray and py_function."""

import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.recorders import Recorder, use_recorders
from retrograde.testing import check_gradients
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_raises

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = {
    call: expected
    for name in ("control_flow_results.json", "tensor_array_results.json")
    for call, expected in json.loads((DATA / name).read_text()).items()
}


@pytest.mark.parametrize("call", EXPECTED)
def test_result_matches_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, EXPECTED[call]), f"got {actual}, expected {EXPECTED[call]}"


# Derivatives

X = tf.constant([0.5, -1.5, 2.0], tf.float64)
K = tf.constant(1.3, tf.float64)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, k: tf.map_fn(lambda q: tf.sin(q) * k, x),
        lambda x, k: tf.scan(lambda a, q: tf.tanh(a * k + q), x, initializer=k * k),
        lambda x, k: tf.scan(lambda a, q: a * q, x * k, reverse=True),
        lambda x, k: tf.foldl(lambda a, q: tf.sin(a) * q, x, initializer=k),
        lambda x, k: tf.foldr(lambda a, q: tf.sin(a) * q * k, x),
        lambda x, k: tf.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y) * k), (tf.constant(0), x)
        )[1],
        lambda x, k: tf.cond(k > 0.0, lambda: x * x * k, lambda: x),
        lambda x, k: tf.case([(k > 0.0, lambda: x * x * k)], default=lambda: x),
        lambda x, k: tf.switch_case(tf.constant(1), [lambda: x, lambda: x * x * k]),
        lambda x, k: tf.TensorArray(tf.float64, 3).unstack(x * k).write(1, k * k).stack(),
        lambda x, k: tf.TensorArray(tf.float64, 2).split(x * k, [2, 1]).concat() ** 2.0,
        lambda x, k: tf.py_function(lambda a, b: tf.sin(a) * b, [x, k], tf.float64),
    ],
)
def test_gradients_flow_to_second_order(f):
    check_gradients(f, [X, K], order=2, modes=("reverse", "forward"))


def test_py_function_passes_gradients_to_captured_variables():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.py_function(lambda x: x * v * v, [3.0], tf.float32)

    assert float(tape.gradient(y, v)) == 12.0


# Cost of loops


class Counter(Recorder):
    def __init__(self):
        self.calls = []
        self.escapes = []

    def record(self, primitive, inputs, attrs, y):  # noqa: ARG002
        self.calls.append(primitive.name)

    def escape(self, tensor, how):  # noqa: ARG002
        self.escapes.append(how)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tf.map_fn(lambda q: q * q, x),
        lambda x: tf.scan(lambda a, q: a * q, x, initializer=tf.constant(1.0)),
        lambda x: tf.foldl(lambda a, q: a * q, x, initializer=tf.constant(1.0)),
    ],
)
def test_a_loop_unstacks_its_elements_once(f):
    counter = Counter()
    with use_recorders([counter]):
        f(tf.ones([50]))

    assert counter.calls.count("multiply") == 50
    assert counter.calls.count("unstack") == 1
    assert len(counter.calls) <= 52
    assert counter.escapes == []


def test_recorders_observe_which_branch_was_taken():
    counter = Counter()
    with use_recorders([counter]):
        tf.cond(tf.constant(True), lambda: 1, lambda: 2)
        tf.case([(tf.constant(True), lambda: 1)])
        tf.switch_case(tf.constant(0), [lambda: 1])
        tf.while_loop(lambda i: i < 1, lambda i: [i + 1], [tf.constant(0)])
        tf.TensorArray(tf.float32, 1, element_shape=[]).read(tf.constant(0))
        tf.numpy_function(lambda x: x, [tf.constant(0)], tf.int32)

    assert counter.escapes == ["bool", "bool", "int", "bool", "bool", "index", "numpy"]


# State of TensorArray


def test_an_element_can_be_read_once():
    ta = tf.TensorArray(tf.float32, size=2).write(0, 1.0)

    assert float(ta.read(0)) == 1.0
    assert_raises(
        lambda: ta.read(0),
        tf.errors.InvalidArgumentError,
        "Could not read index 0 twice because it was cleared after a previous read (perhaps try "
        "setting clear_after_read = false?)",
    )
    assert float(ta.write(0, 2.0).read(0)) == 2.0


def test_stack_gather_and_concat_keep_elements():
    ta = tf.TensorArray(tf.float32, size=2).unstack([[1.0], [2.0]])

    for _ in range(2):
        assert ta.stack().numpy().tolist() == [[1.0], [2.0]]
        assert ta.gather([1, 0]).numpy().tolist() == [[2.0], [1.0]]
        assert ta.concat().numpy().tolist() == [1.0, 2.0]


def test_elements_remain_without_clear_after_read():
    ta = tf.TensorArray(tf.float32, size=1, clear_after_read=False).write(0, 1.0)

    assert [float(ta.read(0)), float(ta.read(0))] == [1.0, 1.0]


def test_a_closed_array_is_empty():
    ta = tf.TensorArray(tf.float32, size=2)
    ta.close()

    assert int(ta.size()) == 0


def test_writing_a_variable_stores_its_current_value():
    v = tf.Variable(1.0)
    ta = tf.TensorArray(tf.float32, size=1).write(0, v)
    v.assign(5.0)

    assert float(ta.read(0)) == 1.0


def test_elements_have_the_dtype_of_the_array():
    assert tf.TensorArray(tf.int64, 2).unstack([1, 2]).stack().dtype is tf.int64
    assert_raises(
        lambda: tf.TensorArray(tf.float32, 2).unstack(tf.constant([1, 2])),
        tf.errors.InvalidArgumentError,
        "TensorArray dtype is float32 but Op is trying to write dtype int32 ",
    )


def test_specs_are_hashable():
    spec = tf.TensorArraySpec([2], tf.float32)

    assert {spec: 1}[tf.TensorArraySpec([2], tf.float32)] == 1
    assert spec.value_type is tf.TensorArray


def test_results_are_new_tensors():
    v = tf.Variable([1.0])
    (looped,) = tf.while_loop(lambda _: False, lambda x: [x], [v])
    folded = tf.foldl(lambda a, _: a, tf.zeros([0]), initializer=v)
    v.assign([2.0])

    assert looped.numpy().tolist() == folded.numpy().tolist() == [1.0]


# Messages


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tf.cond(True), TypeError, "cond(): 'true_fn' argument required"),
        (
            lambda: tf.cond(True, 1, lambda: 2),
            TypeError,
            "'true_fn' must be callable. Received: 1.",
        ),
        (
            lambda: tf.case([(tf.constant(False), int)] * 2),
            tf.errors.InvalidArgumentError,
            "case: none of 2 predicates is true. Expected one, or a `default`.",
        ),
        (
            lambda: tf.case([(tf.constant(True), int)] * 3, exclusive=True),
            tf.errors.InvalidArgumentError,
            "case: 3 of 3 predicates are true. With exclusive=True, at most one may be true.",
        ),
        (lambda: tf.case([(True, int)]), TypeError, "pred must be a Tensor, got: True"),
        (
            lambda: tf.case([(tf.constant(1), int)]),
            TypeError,
            "pred must be of type bool, got: int32",
        ),
        (
            lambda: tf.case([]),
            ValueError,
            "case: 'pred_fn_pairs' is empty. Expected at least one pair.",
        ),
        (
            lambda: tf.case({}),
            ValueError,
            "case: 'pred_fn_pairs' must be a list of pairs: tensors cannot be keys of a dict.",
        ),
        (
            lambda: tf.case(3),
            TypeError,
            "'pred_fn_pairs' must be a list or a tuple. Received: <class 'int'>",
        ),
        (
            lambda: tf.case([3]),
            TypeError,
            "Each entry in 'pred_fn_pairs' must be a 2-tuple. Received 3.",
        ),
        (
            lambda: tf.switch_case(0, [int]),
            TypeError,
            "'branch_index' must be a Tensor, got <class 'int'>",
        ),
        (
            lambda: tf.switch_case(tf.constant(0.0), [int]),
            TypeError,
            "'branch_index' must be an integer Tensor, got float32",
        ),
        (
            lambda: tf.switch_case(tf.constant([0]), [int]),
            tf.errors.InvalidArgumentError,
            "switch_case: 'branch_index' has shape (1,). Expected ().",
        ),
        (
            lambda: tf.switch_case(tf.constant(0), {0: int, 2: int}),
            ValueError,
            "branch indices (keys) must form contiguous range of [0 to 2) but found {0,2}",
        ),
        (
            lambda: tf.switch_case(tf.constant(0), {"a": int}),
            TypeError,
            "key must be a Python `int`, got <class 'str'>",
        ),
        (
            lambda: tf.switch_case(tf.constant(0), [1]),
            TypeError,
            "Each entry in 'branch_fns' must be a 2-tuple. Received 1.",
        ),
        (
            lambda: tf.switch_case(tf.constant(0), []),
            ValueError,
            "Must provide at least one item in 'branch_fns'",
        ),
        (
            lambda: tf.switch_case(tf.constant(0), 3),
            TypeError,
            "'branch_fns' must be a list, tuple, or dict",
        ),
        (
            lambda: tf.while_loop(lambda _: True, lambda i: i + 1, [0]),
            TypeError,
            "'body' must return a list or a tuple with a value for each loop variable. "
            "Received: 1.",
        ),
        (
            lambda: tf.while_loop(lambda _: True, lambda i: [i], 0),
            ValueError,
            "'loop_vars' must be provided: a list or a tuple with at least one value. Received: 0.",
        ),
        (
            lambda: tf.while_loop(lambda _: True, lambda i: [i], [0], maximum_iterations=[1]),
            ValueError,
            "'maximum_iterations' must be a scalar. Received shape: (1,)",
        ),
        (
            lambda: tf.while_loop(lambda _: True, lambda i: [i], [0], parallel_iterations=0),
            TypeError,
            "'parallel_iterations' must be a positive integer.",
        ),
        (
            lambda: tf.map_fn(lambda x: x, [1.0]),
            ValueError,
            "Elements in elems must be 1+ dimensional Tensors, not scalars. Received: [1.0]; a "
            "list is a structure here, so convert it with tf.constant.",
        ),
        (
            lambda: tf.map_fn(lambda x: x, []),
            ValueError,
            "elems must be a Tensor or (possibly nested) sequence of Tensors. Got [], which does "
            "not contain any Tensors.",
        ),
        (
            lambda: tf.scan(lambda a, _: a, (tf.zeros([3]), tf.zeros([2]))),
            ValueError,
            "Dimensions 3 and 2 are not compatible",
        ),
        (
            lambda: tf.scan(lambda a, _: a, tf.zeros([0])),
            tf.errors.OutOfRangeError,
            "scan: `elems` has no slices. Expected at least one, or an initializer.",
        ),
        (
            lambda: tf.foldr(lambda a, _: a, tf.zeros([0])),
            tf.errors.OutOfRangeError,
            "foldr: `elems` has no slices. Expected at least one, or an initializer.",
        ),
        (
            lambda: tf.py_function(lambda: [1.0, 2.0], [], tf.float32),
            tf.errors.InvalidArgumentError,
            "py_function: the function returned 2 values, but `Tout` has 1. To return one value "
            "with several elements, return an array or a tensor.",
        ),
        (
            lambda: tf.py_function(lambda: {}["a"], [], tf.float32),
            tf.errors.UnknownError,
            "KeyError: 'a'",
        ),
        (
            lambda: tf.py_function(3, [], tf.float32),
            ValueError,
            "Expected func to be callable. Received func=3 of type <class 'int'>.",
        ),
        (
            lambda: tf.numpy_function(len, []),
            TypeError,
            "`Tout` is missing. Expected the dtype of the result.",
        ),
        (
            lambda: tf.numpy_function(),
            TypeError,
            "numpy_function: `Tout` is missing. Expected the dtype of the result.",
        ),
        (
            lambda: tf.py_function(len, None, tf.float32),
            TypeError,
            "py_function: `inp` is missing. Expected the list of arguments for `func`.",
        ),
        (
            lambda: tf.TensorArray(tf.float32),
            ValueError,
            "TensorArray: `size` is required. Use 0 with dynamic_size=True.",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 2, handle=3),
            ValueError,
            "TensorArray handles are not supported: there are no graphs.",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 2.5),
            TypeError,
            "TensorArray: expected an integer for the size. Received: 2.5.",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 2).read("a"),
            TypeError,
            "TensorArray: expected an integer for the index. Received: 'a'.",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 2).read(2),
            tf.errors.OutOfRangeError,
            "Tried to read from index 2 but array size is: 2 ",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 2).write(2, 1.0),
            tf.errors.OutOfRangeError,
            "Tried to write to index 2 but array is not resizeable and size is: 2 ",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 2).gather([-1]),
            tf.errors.OutOfRangeError,
            "Reading from negative indices (index -1) is not allowed.",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 2).write(-1, 1.0),
            tf.errors.OutOfRangeError,
            "Writing to negative indices (index -1) is not allowed.",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 2).write(0, [1.0]).write(1, 1.0),
            ValueError,
            "Incompatible shape for value (()), expected ((1,))",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 2).read(0),
            ValueError,
            "TensorArray: index 0 was never written, and the element shape <unknown> is not fully "
            "known, so it cannot be filled with zeros. Write it first, or pass a full "
            "`element_shape`.",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 1).unstack([1.0, 2.0]),
            ValueError,
            "Cannot unstack 2 tensors into a TensorArray of static size 1 ",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 1).split([1.0], 1),
            tf.errors.InvalidArgumentError,
            "Expected lengths to be a vector, received shape: [] ",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 1).split(1.0, [1]),
            tf.errors.InvalidArgumentError,
            "Expected value to be at least a vector, but received shape: [] ",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 1).split([1.0, 2.0], [1]),
            tf.errors.InvalidArgumentError,
            "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is 1 and "
            "value's shape is: [2] ",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 1).split([1.0, 2.0], [1, 1]),
            tf.errors.InvalidArgumentError,
            "TensorArray's size is not equal to the size of lengths (1 vs. 2), and the TensorArray "
            "is not marked as dynamically resizeable.",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 1).write(0, 1.0).concat(),
            tf.errors.InvalidArgumentError,
            "Concat saw a scalar shape at index 0 but requires at least vectors.",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 1).grad("g"),
            NotImplementedError,
            "TensorArray.grad is not supported: use a tf.GradientTape, which records the elements.",
        ),
    ],
)
def test_message(call, error, message):
    assert_raises(call, error, message)


def test_an_error_in_py_function_keeps_its_cause():
    with pytest.raises(tf.errors.UnknownError) as caught:
        tf.py_function(lambda: np.zeros(1)[5], [], tf.float32)

    assert isinstance(caught.value.__cause__, IndexError)
