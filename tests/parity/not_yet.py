"""Facts that do not hold: those waiting for something, and those that differ on purpose."""

_WAITING = {
    "function() is not here yet": [
        "jac.inside_function",
        "grads.stop_gradients",
        "grads.second",
        "grads.hessians",
        "fwd.function",
        "fwd.cond_other_branch",
        "fwd.unused_argument",
        "fwd.custom_gradient_function",
        "custom.tape_around_function",
        "fn.tape_outside",
        "fn.captured_variable",
        "fn.captured_nontrainable",
        "fn.mixed_second_order",
        "fn.unused_argument",
        "fn.stop_gradient_argument",
        "fn.trace_count",
        "fn.trace_variable_arg",
        "fn.trace_numpy_arg",
        "fn.input_signature",
        "fn.reduce_retracing",
        "fn.variable_created_once",
        "fn.assign_and_gradient",
        "fn.shape_error",
        "fn.dtype_error",
        "fn.tensor_leak",
        "fn.numpy_in_function",
        "fn.autograph_while",
        "fn.autograph_for",
        "fn.autograph_dtype_change",
        "fn.tape_across_boundary",
        "fn.nonpersistent_twice_in_function",
        "fn.jit_compile",
        "fn.structures",
        "fn.returns_python",
        "fn.python_arg_kw",
        "fn.py_function_gradient",
        "fn.executing_eagerly",
        "cf.while_function",
        "cf.while_second_order",
        "cf.while_zero_iterations",
        "cf.tensorarray",
        "fn.closure_tensor",
        "fn.tape_in_loop",
        "fn.gradient_of_cond_in_function_tape_inside",
        "e2e.sgd_function",
    ],
}

NOT_YET = {name: reason for reason, names in _WAITING.items() for name in names}

# The words under which docs/differences.md speaks of each
DIFFERS = {
    "edge.zero_upstream": "The guarded zero",
}
