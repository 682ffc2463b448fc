"""Facts that do not hold: those waiting for something, and those that differ on purpose."""

_WAITING: dict[str, list[str]] = {}

NOT_YET = {name: reason for reason, names in _WAITING.items() for name in names}

# The words under which docs/differences.md speaks of each
DIFFERS = {
    "edge.zero_upstream": "The guarded zero",
    "fn.numpy_in_function": "Tensors have values inside a function",
    "fn.autograph_dtype_change": "Tensors have values inside a function",
    "fn.input_signature": "Shapes are those of the call",
    "fn.reduce_retracing": "Shapes are those of the call",
    "fwd.cond_other_branch": "The branch not taken",
    "cf.while_zero_iterations": "The branch not taken",
    "fn.gradient_of_cond_in_function_tape_inside": "The branch not taken",
}
