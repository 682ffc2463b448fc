"""Facts that do not hold: those waiting for something, and those that differ on purpose."""

_WAITING = {
    "function() is not complete yet": [
        "fwd.cond_other_branch",
        "fn.input_signature",
        "fn.reduce_retracing",
        "fn.numpy_in_function",
        "fn.autograph_dtype_change",
        "cf.while_zero_iterations",
        "fn.gradient_of_cond_in_function_tape_inside",
    ],
}

NOT_YET = {name: reason for reason, names in _WAITING.items() for name in names}

# The words under which docs/differences.md speaks of each
DIFFERS = {
    "edge.zero_upstream": "The guarded zero",
}
