"""The causes of `None` gradients: their names, explanations and fixes.

A cause is a short phrase that does not change between versions. `docs/why_none.md` shows each cause
with an example program and its output.
"""

from __future__ import annotations

import ast
import re

from retrograde.core.apply import PRIMITIVES
from retrograde.core.custom_gradient import CustomName
from retrograde.diagnose.missing_gradients.history import ObservedCall
from retrograde.diagnose.missing_gradients.source_code import Binding
from retrograde.diagnose.tape_notes import Escape

CONNECTED = "connected"

# The source
NOT_A_TENSOR = "not a tensor"
SYMBOLIC = "symbolic tensor"
MODEL = "model or layer"
INTEGER_SOURCE = "integer source"
NOT_WATCHED = "not watched"
WATCHED_LATE = "watched too late"
NOT_TRAINABLE = "not trainable"
VARIABLES_NOT_WATCHED = "variables not watched"
REBOUND = "name rebound"
CREATED_AFTER_TARGET = "created after the target"
RECREATED = "variable re-created"

# The target
TARGET_NOT_A_TENSOR = "target not a tensor"
INTEGER_TARGET = "integer target"
BEFORE_THE_BLOCK = "computed before the block"
AFTER_THE_BLOCK = "computed after the block"
INNER_GRADIENT = "inner gradient outside the block"
STOP_RECORDING = "stop_recording"
RESET = "reset"
ANOTHER_THREAD = "another thread"

# The path between them
INDEPENDENT = "independent"
COMPUTED_SEPARATELY = "computed separately"
CONSTANT_DERIVATIVE = "constant first derivative"
CONVERTED = "converted to Python/NumPy"
COPIED = "copied into a variable"
ASSIGN = "assign"
INTEGER_CAST = "cast through an integer dtype"
STOP_GRADIENT = "stop_gradient"
NON_DIFFERENTIABLE = "non-differentiable operation"
NO_GRADIENT = "no gradient defined"
CUSTOM_GRADIENT = "custom gradient"

ALL = tuple(v for name, v in vars().copy().items() if name.isupper() and isinstance(v, str))

_COMPARISONS = (
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
    "logical_not any all is_nan is_inf is_finite in_top_k"
)
_ROUNDING = "floor ceil round rint floor_divide truncate_divide bins"
_INDICES = "argmax argmin argsort top_k_indices max_pool_index"

_NON_DIFFERENTIABLE_FIXES = {
    _COMPARISONS: (
        "replace the comparison with a smooth approximation, such as tf.sigmoid(k * (a - b)), or "
        "select with tf.where(condition, a, b), which passes gradients to a and b"
    ),
    _ROUNDING: (
        "do not round during training, or use a straight-through gradient: "
        "tf.grad_pass_through(tf.round)(x)"
    ),
    _INDICES: (
        "use the value instead of its index (tf.reduce_max, tf.sort, the values of "
        "tf.math.top_k), or a soft selection with tf.nn.softmax"
    ),
    "one_hot": "use probabilities, for example from tf.nn.softmax, instead of one-hot vectors",
    "zeros_like ones_like": "use the tensor itself: only its shape is used here",
}


def explain_blocking_call(call: ObservedCall, position: int) -> tuple[str, str, str]:
    """Returns the cause, message and fix for a call that does not propagate the gradient."""
    name = str(call.name)
    if isinstance(call.name, CustomName):
        return (
            CUSTOM_GRADIENT,
            f"the gradient function of `{name}` returned None for argument {position}",
            f"return a gradient for that argument from the gradient function of `{name}`",
        )
    if name == "stop_gradient":
        return (
            STOP_GRADIENT,
            "tf.stop_gradient passes the value but blocks the gradient",
            "remove tf.stop_gradient if the gradient should flow here, or apply it only to the "
            "part that should be constant. For a straight-through gradient of rounding, write x + "
            "tf.stop_gradient(tf.round(x) - x)",
        )
    if name == "cast_discrete":
        return (
            INTEGER_CAST,
            "the value is cast to an integer or bool dtype, which has no gradient, and cast back "
            "later",
            "keep the value in floating point: remove the cast, or cast a copy where integers are "
            "needed",
        )
    for names, fix in _NON_DIFFERENTIABLE_FIXES.items():
        if name in names.split():
            return (
                NON_DIFFERENTIABLE,
                f"`{name}` is piecewise constant, so its derivative is zero or undefined",
                fix,
            )
    primitive = PRIMITIVES.get(name)
    if primitive is not None and primitive.vjps is not None and any(primitive.vjps):
        message = f"`{name}` has no gradient with respect to argument {position}, as in TensorFlow"
    else:
        message = f"`{name}` has no gradient"
    return (
        NO_GRADIENT,
        message,
        "use a different operation, or define a gradient with tf.custom_gradient",
    )


_CONVERSIONS = {
    "numpy": "the value was converted by .numpy()",
    "__array__": "NumPy converted the value to an array",
    "__dlpack__": "the value was exported through DLPack",
    "__buffer__": "NumPy converted the value to an array",  # since Python 3.12; rarely others
    "bytes": "the value was converted by bytes()",
    "bitcast": "tf.bitcast reinterprets its bits",
}


def explain_escape(escape: Escape, expression: str) -> tuple[str, str, str]:
    """Returns the cause, message and fix for a value that left the tape and was used again."""
    if escape.variable is not None:
        return (
            ASSIGN,
            "its value was assigned to a variable, and tapes do not record assignments",
            "use the value itself where the block reads the variable, and assign it afterwards",
        )
    if escape.how == "Variable":
        return (
            COPIED,
            "it is the initial value of a new variable; tapes do not record this copy",
            "use the tensor itself, or tf.identity of it, instead of a new variable",
        )
    if escape.how == "bool":
        return (
            CONVERTED,
            "Python branched on its value, with bool(), and a branch is not differentiable",
            "select with tf.where(condition, a, b) between tensors that depend on it",
        )
    conversion = _CONVERSIONS.get(escape.how, f"the value was converted by {escape.how}()")
    return CONVERTED, f"{conversion}, and the result is a constant", _use_tf_operations(expression)


def _use_tf_operations(expression: str) -> str:
    used = re.findall(r"\b(?:np|numpy)\.(\w+)\(", expression)
    replacements = [f"{tf_name} for np.{name}" for name in used if (tf_name := _tf_name(name))]
    hint = f" ({', '.join(replacements)})" if replacements else ""
    return f"compute this with tensors and tf operations{hint}, so that the tape records it"


def _tf_name(name: str) -> str | None:
    """Returns the public name that corresponds to a NumPy function."""
    import retrograde
    from retrograde.experimental import numpy as tnp

    different_names = {"sum": "reduce_sum", "mean": "reduce_mean", "max": "reduce_max",
                       "min": "reduce_min", "prod": "reduce_prod", "array": "convert_to_tensor",
                       "asarray": "convert_to_tensor", "concatenate": "concat"}  # fmt: skip
    name = different_names.get(name, name)
    for namespace, prefix in ((retrograde, "tf"), (retrograde.math, "tf.math")):
        if name in namespace.__all__:
            return f"{prefix}.{name}"
    return f"tf.experimental.numpy.{name}" if name in tnp.__all__ else None


def in_place_assignment(binding: Binding) -> str:
    """Returns the in-place form of a statement that rebinds a variable's name to a tensor."""
    name, value = binding.name, binding.value
    if binding.operator in ("+=", "-="):
        method = "assign_add" if binding.operator == "+=" else "assign_sub"
        return f"{name}.{method}({ast.unparse(value)})"
    if binding.operator != "=":
        return f"{name}.assign({name} {binding.operator[0]} {ast.unparse(value)})"
    match value:
        case ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=right) if left == name:
            return f"{name}.assign_add({ast.unparse(right)})"
        case ast.BinOp(left=ast.Name(id=left), op=ast.Sub(), right=right) if left == name:
            return f"{name}.assign_sub({ast.unparse(right)})"
    return f"{name}.assign({ast.unparse(value)})"
