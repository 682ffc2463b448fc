"""The causes for which a gradient is `None`: their names, what they mean, and their cures.

A cause is a short phrase that stays the same from one version to the next. `docs/why_none.md` shows
each with the message that a real program gets.
"""

from __future__ import annotations

import ast
import re

from retrograde.core.apply import PRIMITIVES
from retrograde.core.custom_gradient import CustomName
from retrograde.diagnose.missing_gradients.history import ObservedCall
from retrograde.diagnose.missing_gradients.source_code import Binding
from retrograde.diagnose.tape_notes import Exit

CONNECTED = "connected"

# What the source is
NO_TENSOR = "not a tensor"
SYMBOLIC = "symbolic tensor"
MODEL = "model or layer"
INTEGER_SOURCE = "integer source"
NOT_WATCHED = "not watched"
WATCHED_LATE = "watched too late"
NOT_TRAINABLE = "not trainable"
VARIABLES_NOT_WATCHED = "variables not watched"
REBOUND = "name rebound"
MADE_AFTERWARDS = "made afterwards"
MADE_ANEW = "variable made anew"

# What the target is
NO_TENSOR_TARGET = "target not a tensor"
INTEGER_TARGET = "integer target"
BEFORE_THE_BLOCK = "computed before the block"
AFTER_THE_BLOCK = "computed after the block"
INNER_GRADIENT = "inner gradient outside"
STOP_RECORDING = "stop_recording"
RESET = "reset"
ANOTHER_THREAD = "another thread"

# What is between them
INDEPENDENT = "independent"
COMPUTED_APART = "computed apart"
LINEAR = "constant first derivative"
LEFT = "left for Python"
COPIED = "copied into a variable"
ASSIGN = "assign"
INTEGER_HOP = "integer hop"
STOP_GRADIENT = "stop_gradient"
NO_SLOPE = "no slope"
NO_GRADIENT = "no gradient defined"
CUSTOM_GRADIENT = "custom gradient"

ALL = tuple(v for name, v in vars().copy().items() if name.isupper() and isinstance(v, str))

_COMPARISONS = (
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
    "logical_not any all is_nan is_inf is_finite in_top_k"
)
_ROUNDINGS = "floor ceil round rint floor_divide truncate_divide bins"
_POSITIONS = "argmax argmin argsort top_places max_pool_index"

_STEP_CURES = {
    _COMPARISONS: (
        "replace the comparison, which is a step, by a smooth one, as tf.sigmoid(k * (a - b)); or "
        "choose with tf.where(condition, a, b), which passes gradients to a and b"
    ),
    _ROUNDINGS: (
        "leave the rounding out while training, or let the gradient pass as if it were not there: "
        "tf.grad_pass_through(tf.round)(x)"
    ),
    _POSITIONS: (
        "use the value in place of its position (tf.reduce_max, tf.sort, the values of "
        "tf.math.top_k), or a soft choice by tf.nn.softmax"
    ),
    "one_hot": "use probabilities, as from tf.nn.softmax, in place of one_hot positions",
    "zeros_like ones_like": "use the value itself: this takes only its shape",
}


def of_dead_end(call: ObservedCall, position: int) -> tuple[str, str, str]:
    """The cause, what it means and its cure, for a call that passes no gradient on."""
    name = str(call.name)
    if isinstance(call.name, CustomName):
        return (
            CUSTOM_GRADIENT,
            f"the gradient function of `{name}` returned None for its argument {position}",
            f"return a gradient for that argument from the function that `{name}` returns beside "
            "its result",
        )
    if name == "stop_gradient":
        return (
            STOP_GRADIENT,
            "tf.stop_gradient lets the value through and no gradient",
            "leave tf.stop_gradient out if the gradient is to flow here, or put in it only what is "
            "to be constant. To round and let the gradient pass, only the rounding belongs in it: "
            "x + tf.stop_gradient(tf.round(x) - x)",
        )
    if name == "cast_discrete":
        return (
            INTEGER_HOP,
            "the value is cast to integers or bool, where no gradient flows, and back later",
            "keep the value in floating point: leave the cast out, or cast a copy for what needs "
            "integers",
        )
    for names, cure in _STEP_CURES.items():
        if name in names.split():
            return NO_SLOPE, f"`{name}` is flat between its steps and passes no gradient", cure
    primitive = PRIMITIVES.get(name)
    if primitive is not None and primitive.vjps is not None and any(primitive.vjps):
        meaning = f"`{name}` passes no gradient to its argument {position}, as in TensorFlow"
    else:
        meaning = f"`{name}` has no gradient"
    return (
        NO_GRADIENT,
        meaning,
        "use another operation there, or give this one a gradient with tf.custom_gradient",
    )


_HOW = {
    "numpy": "its value left through .numpy()",
    "__array__": "NumPy took its value",
    "__dlpack__": "its value left through DLPack",
    "__buffer__": "NumPy took its value",  # as it does from Python 3.12 on; few others ask for it
    "bytes": "its value left through bytes()",
    "bitcast": "tf.bitcast reads its bits anew",
}


def of_exit(exit: Exit, expression: str) -> tuple[str, str, str]:
    """The cause, what it means and its cure, for a value that left and came back."""
    if exit.variable is not None:
        return (
            ASSIGN,
            "its value went into a variable by an assignment, which tapes do not follow",
            "use the value itself where the block reads the variable, and assign it afterwards",
        )
    if exit.how == "Variable":
        return (
            COPIED,
            "it became the initial value of a new variable, which is a copy that tapes do not "
            "follow",
            "use the tensor itself, or tf.identity of it, in place of a new variable",
        )
    if exit.how == "bool":
        return (
            LEFT,
            "Python decided by its value, with bool(), and a decision has no slope",
            "choose with tf.where(condition, a, b) between tensors that depend on it",
        )
    meaning = _HOW.get(exit.how, f"its value left through {exit.how}()")
    return (
        LEFT,
        f"{meaning}, and what came back is a constant",
        _instead_of(expression),
    )


def _instead_of(expression: str) -> str:
    used = re.findall(r"\b(?:np|numpy)\.(\w+)\(", expression)
    named = [f"{ours} for np.{name}" for name in used if (ours := _ours(name))]
    hint = f" ({', '.join(named)})" if named else ""
    return f"compute this with tensors and tf operations{hint}, so that the tape can follow"


def _ours(name: str) -> str | None:
    import retrograde
    from retrograde.experimental import numpy as tnp

    by_another_name = {"sum": "reduce_sum", "mean": "reduce_mean", "max": "reduce_max",
                       "min": "reduce_min", "prod": "reduce_prod", "array": "convert_to_tensor",
                       "asarray": "convert_to_tensor", "concatenate": "concat"}  # fmt: skip
    name = by_another_name.get(name, name)
    for space, prefix in ((retrograde, "tf"), (retrograde.math, "tf.math")):
        if name in space.__all__:
            return f"{prefix}.{name}"
    return f"tf.experimental.numpy.{name}" if name in tnp.__all__ else None


def assignment_instead_of(binding: Binding) -> str:
    """What to write in place of a statement that binds a variable's name to a tensor."""
    name, value = binding.name, binding.value
    if binding.sign in ("+=", "-="):
        method = "assign_add" if binding.sign == "+=" else "assign_sub"
        return f"{name}.{method}({ast.unparse(value)})"
    if binding.sign != "=":
        return f"{name}.assign({name} {binding.sign[0]} {ast.unparse(value)})"
    match value:
        case ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=right) if left == name:
            return f"{name}.assign_add({ast.unparse(right)})"
        case ast.BinOp(left=ast.Name(id=left), op=ast.Sub(), right=right) if left == name:
            return f"{name}.assign_sub({ast.unparse(right)})"
    return f"{name}.assign({ast.unparse(value)})"
