"""Lists the facts that do not hold in retrograde: not implemented, or different on purpose."""

# Reasons, with the names of the facts
_NOT_IMPLEMENTED: dict[str, list[str]] = {}

NOT_IMPLEMENTED = {name: reason for reason, names in _NOT_IMPLEMENTED.items() for name in names}

# Entries of docs/differences.md
INTENTIONAL = {
    "edge.zero_upstream": "NaN-safe zero cotangents",
    "fn.numpy_in_function": "Tensors have values inside a function",
    "fn.autograph_dtype_change": "Tensors have values inside a function",
    "fn.input_signature": "Shapes are concrete",
    "fn.reduce_retracing": "Shapes are concrete",
    "fwd.cond_other_branch": "A branch not taken",
    "cf.while_zero_iterations": "A branch not taken",
    "fn.gradient_of_cond_in_function_tape_inside": "A branch not taken",
}
