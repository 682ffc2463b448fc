"""Invalid input to every public function leads to a result or to a deliberate error.

The calls are also compared with TensorFlow. Their tensors are replaced by tensors of the
wrong rank, size, dtype or type, and their other arguments by invalid values. Exceptions must come
from a `raise` statement of the library and have a class that users catch. Errors of NumPy, or
Python errors caused by a bug, fail the test.
"""

import ast
import linecache
import pathlib

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import retrograde as tf
from parity.calls import namespaces
from parity.evaluation import Sources, find, leaves

PACKAGE = str(pathlib.Path(tf.__file__).parent)

ENDLESS = "tf.while_loop"  # with NaN, its condition never becomes false

# Exceptions that TensorFlow raises as well, in addition to those allowed everywhere
ALSO_ALLOWED = {
    "tf.image.": (AttributeError, IndexError),
    "tf.signal.": IndexError,
    "tf.gradients": RuntimeError,
    "tf.hessians": RuntimeError,
}

CALLS = {
    namespace: [
        (name, expression)
        for name, expressions in functions.items()
        for expression in expressions
        if find(tf, name) is not None and name != ENDLESS
    ]
    for namespace, functions in namespaces().items()
}

every_namespace = pytest.mark.parametrize("namespace", [key for key in CALLS if CALLS[key]])


bounded = settings(
    max_examples=15,
    phases=[Phase.generate, Phase.shrink],
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


# Invalid tensors


def of_dtype(dtype):
    return lambda x: tf.cast(tf.constant(3 * x), dtype)


def full(value):
    return lambda x: tf.constant(np.full(x.shape, value, np.float32))


def change_shapes(change):
    """Changes the shape of sources that are not scalars or empty."""
    return lambda x: tf.constant(change(x) if x.size and x.ndim else x)


DTYPES = [
    "float16",
    "bfloat16",
    "float64",
    "int32",
    "int64",
    "uint8",
    "bool",
    "complex64",
    "complex128",
]

FAULTS = {
    **{dtype: of_dtype(dtype) for dtype in DTYPES},
    "strings": lambda x: tf.fill(x.shape, "text"),
    "not_a_number": full(np.nan),
    "infinite": full(np.inf),
    "zero": full(0.0),
    "huge": full(-1e30),
    "scalar": lambda _: tf.constant(0.5),
    "one_leading_axis_more": change_shapes(lambda x: x[None]),
    "one_trailing_axis_more": change_shapes(lambda x: x[..., None]),
    "one_axis_fewer": change_shapes(lambda x: x[0]),
    "one_row_fewer": change_shapes(lambda x: x[1:]),
    "one_row_more": change_shapes(lambda x: np.concatenate([x, x[:1]])),
    "one_column_fewer": change_shapes(lambda x: x[..., 1:]),
    "one_column_more": change_shapes(lambda x: np.concatenate([x, x[..., :1]], -1)),
    "no_columns": change_shapes(lambda x: x[..., :0]),
    "no_rows": change_shapes(lambda x: x[:0]),
    "empty": lambda x: tf.zeros([0] * max(1, x.ndim)),
    "five_elements": lambda _: tf.ones([5]),
    "six_axes": lambda _: tf.ones([2, 1, 3, 1, 2, 1]),
    "none": lambda _: None,
    "text": lambda _: "text",
    "ragged_list": lambda _: [[1.0], [2.0, 3.0]],
    "object": lambda _: object(),
}


class FaultySources(Sources):
    """Sources that apply the next of `faults` to each new source."""

    def __init__(self, faults, tape):
        super().__init__(tf, np.random.default_rng(0), "float32")
        self.faults = iter(faults)
        self.tapes = (tape,)

    def __call__(self, *shape, **options):
        source = super().__call__(*shape, **options)
        if options.get("kind") in ("c", "cspd"):  # composed of sources that are already faulty
            return source
        fault = next(self.faults, None)
        if fault is None:
            return source
        faulty = FAULTS[fault](source.numpy() if source.ndim else np.asarray(source.numpy()))
        if isinstance(faulty, tf.Tensor) and is_inexact(faulty):
            self.tapes[0].watch(faulty)
            self.created[-1] = faulty
        return faulty


def is_inexact(x):
    return hasattr(x, "numpy") and (x.dtype.is_floating or x.dtype.is_complex)


def run(name, expression, faults=()):
    """Evaluates a call and its gradient."""
    with tf.GradientTape() as tape:
        sources = FaultySources(faults, tape)
        names = {"f": find(tf, name), "S": sources, "tf": tf, "np": np}
        result = leaves(tf, eval(expression, names))
    tape.gradient([y for y in result if is_inexact(y)], sources.created)


def describe_unintended(error, name):
    """Describes an error that no `raise` statement of the library raised; else `None`."""
    traceback = error.__traceback__
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    file, line = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
    if file == "<string>":  # raised by a function in the call expression
        return None
    code = linecache.getline(file, line).strip()
    allowed = (tf.errors.OpError, ValueError, TypeError)
    allowed += tuple(kind for prefix, kind in ALSO_ALLOWED.items() if name.startswith(prefix))
    if isinstance(error, allowed) and file.startswith(PACKAGE) and code.startswith("raise"):
        return None
    return f"{type(error).__name__}: {error}, at {file}:{line}: {code}"


@every_namespace
@bounded
@given(st.lists(st.sampled_from([None, *FAULTS]), min_size=1, max_size=3))
def test_invalid_tensors_raise_deliberate_errors(namespace, faults):
    for name, expression in CALLS[namespace]:
        try:
            run(name, expression, faults)
        except Exception as error:
            assert describe_unintended(error, name) is None, f"{name}: {expression} with {faults}"


# Invalid arguments

INVALID_VALUES = (
    "-9",
    "99",
    "1.5",
    "None",
    "'text'",
    "[]",
    "[[1]]",
    "[1.5]",
    "object()",
    "tf.constant(2.5)",
    "tf.constant([1, 2])",
    "tf.constant('text')",
    "tf.zeros([0], tf.int32)",
)


def plain_arguments(tree):
    """Yields the containers and keys of the arguments that are numbers, strings or lists."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") == "S":
            continue
        for i, argument in enumerate(node.args):
            if isinstance(argument, ast.Constant | ast.List | ast.Tuple | ast.UnaryOp):
                yield node.args, i
        for keyword in node.keywords:
            yield keyword, "value"


def with_invalid_argument(expression, number, value):
    """Replaces one of the plain arguments of a call; returns `None` if it has none."""
    tree = ast.parse(expression, mode="eval")
    arguments = list(plain_arguments(tree))
    if not arguments:
        return None
    container, key = arguments[number % len(arguments)]
    replacement = ast.parse(value, mode="eval").body
    if isinstance(container, list):
        container[key] = replacement
    else:
        setattr(container, key, replacement)
    return ast.unparse(tree)


def is_python_type_error(error):
    """Returns whether Python reports a wrong type, or a string that is not a number."""
    if type(error) is TypeError:
        return "ufunc" not in str(error) and "array" not in str(error)
    messages = ("invalid literal for int() with", "could not convert string to float")
    return type(error) is ValueError and str(error).startswith(messages)


@every_namespace
@bounded
@given(st.integers(0, 4), st.sampled_from(INVALID_VALUES))
def test_invalid_arguments_raise_deliberate_errors(namespace, number, value):
    for name, expression in CALLS[namespace]:
        call = with_invalid_argument(expression, number, value)
        if call is None:
            continue
        try:
            run(name, call)
        except Exception as error:
            allowed = is_python_type_error(error) or describe_unintended(error, name) is None
            assert allowed, f"{name}: {call}"
