"""Bad input to every public function ends in a result, or in an error that says what is wrong.

The calls are those that are compared with TensorFlow. Their tensors are replaced by others of
wrong rank, size, dtype or kind, and their plain arguments by nonsense. Whatever is raised must be
raised on purpose, by a statement of the library, and be of a class that users catch: never an error
of NumPy's, nor one of Python's that a mistake of ours lets through.
"""

import ast
import linecache
import pathlib

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import retrograde as tf
from parity.answers import Sources, find, leaves
from parity.calls import namespaces

PACKAGE = str(pathlib.Path(tf.__file__).parent)

ENDLESS = "tf.while_loop"  # with a condition that NaN never ends

# Errors that TensorFlow raises too, beside those that are fine everywhere
ALSO = {
    "tf.image.": AttributeError,
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


# Bad tensors


def of_dtype(dtype):
    return lambda x: tf.cast(tf.constant(3 * x), dtype)


def full(value):
    return lambda x: tf.constant(np.full(x.shape, value, np.float32))


def shaped(change):
    """Another shape, for sources that have axes."""
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
    "one_axis_more": shaped(lambda x: x[None]),
    "one_axis_behind": shaped(lambda x: x[..., None]),
    "one_axis_fewer": shaped(lambda x: x[0]),
    "one_row_fewer": shaped(lambda x: x[1:]),
    "one_row_more": shaped(lambda x: np.concatenate([x, x[:1]])),
    "one_column_fewer": shaped(lambda x: x[..., 1:]),
    "one_column_more": shaped(lambda x: np.concatenate([x, x[..., :1]], -1)),
    "no_columns": shaped(lambda x: x[..., :0]),
    "no_rows": shaped(lambda x: x[:0]),
    "nothing": lambda x: tf.zeros([0] * max(1, x.ndim)),
    "five_elements": lambda _: tf.ones([5]),
    "six_axes": lambda _: tf.ones([2, 1, 3, 1, 2, 1]),
    "none": lambda _: None,
    "text": lambda _: "text",
    "uneven": lambda _: [[1.0], [2.0, 3.0]],
    "object": lambda _: object(),
}


class FaultySources(Sources):
    """Sources of which each has the next of `faults`, as long as there are any."""

    def __init__(self, faults, tape):
        super().__init__(tf, np.random.default_rng(0), "float32")
        self.faults = iter(faults)
        self.tapes = (tape,)

    def __call__(self, *shape, **options):
        source = super().__call__(*shape, **options)
        if options.get("kind") in ("c", "cspd"):  # made of sources that came this way
            return source
        fault = next(self.faults, None)
        if fault is None:
            return source
        faulty = FAULTS[fault](source.numpy() if source.ndim else np.asarray(source.numpy()))
        if isinstance(faulty, tf.Tensor) and is_inexact(faulty):
            self.tapes[0].watch(faulty)
            self.made[-1] = faulty
        return faulty


def is_inexact(x):
    return hasattr(x, "numpy") and (x.dtype.is_floating or x.dtype.is_complex)


def run(name, expression, faults=()):
    """Evaluates a call, and its gradient if there is a result."""
    with tf.GradientTape() as tape:
        sources = FaultySources(faults, tape)
        names = {"f": find(tf, name), "S": sources, "tf": tf, "np": np}
        result = leaves(tf, eval(expression, names))
    tape.gradient([y for y in result if is_inexact(y)], sources.made)


def accident(error, name):
    """Where an error came from, if nobody meant to raise it; else `None`."""
    traceback = error.__traceback__
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    file, line = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
    if file == "<string>":  # in a function that is part of the call itself
        return None
    code = linecache.getline(file, line).strip()
    fine = (tf.errors.OpError, ValueError, TypeError)
    fine += tuple(kind for prefix, kind in ALSO.items() if name.startswith(prefix))
    if isinstance(error, fine) and file.startswith(PACKAGE) and code.startswith("raise"):
        return None
    return f"{type(error).__name__}: {error}, at {file}:{line}: {code}"


@every_namespace
@bounded
@given(st.lists(st.sampled_from([None, *FAULTS]), min_size=1, max_size=3))
def test_bad_tensors_are_refused_in_words(namespace, faults):
    for name, expression in CALLS[namespace]:
        try:
            run(name, expression, faults)
        except Exception as error:
            assert accident(error, name) is None, f"{name}: {expression} with {faults}"


# Bad arguments

NONSENSE = (
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
    """The places in a call that hold numbers, strings and lists, outside of sources."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") == "S":
            continue
        for place, argument in enumerate(node.args):
            if isinstance(argument, ast.Constant | ast.List | ast.Tuple | ast.UnaryOp):
                yield node.args, place
        for keyword in node.keywords:
            yield keyword, "value"


def with_nonsense(expression, number, nonsense):
    """The call with one of its plain arguments replaced; `None` if it has none."""
    tree = ast.parse(expression, mode="eval")
    places = list(plain_arguments(tree))
    if not places:
        return None
    holder, place = places[number % len(places)]
    replacement = ast.parse(nonsense, mode="eval").body
    if isinstance(holder, list):
        holder[place] = replacement
    else:
        setattr(holder, place, replacement)
    return ast.unparse(tree)


def in_words_of_python(error):
    """Whether Python itself says that a type is wrong, or that a string is no number."""
    if type(error) is TypeError:
        return "ufunc" not in str(error) and "array" not in str(error)
    words = ("invalid literal for int() with", "could not convert string to float")
    return type(error) is ValueError and str(error).startswith(words)


@every_namespace
@bounded
@given(st.integers(0, 4), st.sampled_from(NONSENSE))
def test_nonsense_for_an_argument_is_refused(namespace, place, nonsense):
    for name, expression in CALLS[namespace]:
        call = with_nonsense(expression, place, nonsense)
        if call is None:
            continue
        try:
            run(name, call)
        except Exception as error:
            fine = in_words_of_python(error) or accident(error, name) is None
            assert fine, f"{name}: {call}"
