"""Internal names that tests use often, written with public ones."""

from __future__ import annotations

import functools
import inspect

from tensorflow_suite.absent import Absent, not_applicable
from tensorflow_suite.modules import INTERNALS, tf
from tensorflow_suite.test_case import (
    GOOGLETEST,
    TEST_UTIL,
    _false,
    _nothing,
    _true,
    max_error,
    no_context,
)

# Gradients: TensorFlow's earlier functional interface


def _with_tape(function, parameters):
    """Returns a function that returns the value and the gradients of `function`."""

    def value_and_gradients(*arguments, dy=None):
        indices = _indices(function, parameters, len(arguments))
        arguments = [_argument(argument) for argument in arguments]
        with tf.GradientTape() as tape:
            for i in indices:
                if arguments[i] is not None:
                    arguments[i] = tf.identity(arguments[i])
                    tape.watch(arguments[i])
            y = _value(function(*arguments))
            y = tf.nest.map_structure(tf.identity, y)
        return y, tape.gradient(y, [arguments[i] for i in indices], dy)

    return value_and_gradients


def _indices(function, parameters, count):
    if not parameters:
        return range(count)
    if all(isinstance(name, str) for name in parameters):
        names = list(inspect.signature(function).parameters)
        return [names.index(name) for name in parameters]
    if all(isinstance(index, int) for index in parameters):
        return parameters
    raise ValueError(f"params must be all strings or all integers; got {parameters}.")


def _argument(value):
    if value is None or isinstance(value, (tf.Tensor, tf.Variable, tf.IndexedSlices)):
        return value
    return tf.convert_to_tensor(value)


def _value(y):
    if y is None:
        raise ValueError("Cannot differentiate a function that returns None")
    return y


def gradients_function(function, params=None):
    """Returns a function that returns the gradients of `function`."""
    return lambda *arguments, dy=None: _with_tape(function, params)(*arguments, dy=dy)[1]


def implicit_val_and_grad(function):
    """Returns a function that returns the value and (gradient, variable) pairs."""

    def value_and_gradients(*arguments, **keywords):
        with tf.GradientTape() as tape:
            y = _value(function(*arguments, **keywords))
        variables = tape.watched_variables()
        if not variables:
            raise ValueError("No trainable variables were used")
        return y, list(zip(tape.gradient(y, variables), variables, strict=True))

    return value_and_gradients


def implicit_grad(function):
    """Returns a function that returns (gradient, variable) pairs."""
    return lambda *args, **kwargs: implicit_val_and_grad(function)(*args, **kwargs)[1]


def make_vjp(function, params=None, persistent=True):
    """Returns a function that returns the value and the vjp of `function`."""

    def value_and_vjp(*arguments):
        arguments = [tf.convert_to_tensor(argument) for argument in arguments]
        with tf.GradientTape(persistent=persistent) as tape:
            for argument in arguments:
                tape.watch(argument)
            y = function(*arguments)
        return y, lambda dy=None: tape.gradient(y, arguments, dy)

    return value_and_vjp


# Nested structures of datasets, in which a list is a value


class _List:
    def __init__(self, value):
        self.value = value


def _wrap(value):
    if isinstance(value, list):
        return _List(value)
    if isinstance(value, tuple):
        items = map(_wrap, value)
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, dict):
        return type(value)((key, _wrap(item)) for key, item in value.items())
    return value


def _unwrap(value):
    return value.value if isinstance(value, _List) else value


def _map_structure(function, *structures, **keywords):
    return tf.nest.map_structure(
        lambda *values: function(*map(_unwrap, values)), *map(_wrap, structures)
    )


DATA_NEST = {
    "assert_same_structure": lambda x, y, *a, **k: tf.nest.assert_same_structure(
        _wrap(x), _wrap(y)
    ),
    "flatten": lambda x: [_unwrap(value) for value in tf.nest.flatten(_wrap(x))],
    "is_nested": tf.nest.is_nested,
    "map_structure": _map_structure,
    "pack_sequence_as": lambda x, flat, *a: tf.nest.pack_sequence_as(_wrap(x), flat),
}


def _legacy(part):
    """Returns a function that returns a part of each spec of a dataset."""

    def parts(dataset):
        spec = getattr(dataset, "element_spec", dataset)
        return tf.nest.map_structure(part, spec)

    return parts


# Loops


def pfor(loop_fn, iters, fallback_to_while_loop=True, parallel_iterations=None, warn=False):
    """Vectorizes a loop."""
    is_partial = isinstance(loop_fn, functools.partial)
    if not is_partial and len(inspect.signature(loop_fn).parameters) != 1:
        not_applicable()
    indices = tf.range(int(iters))
    return tf.vectorized_map(loop_fn, indices, fallback_to_while_loop=fallback_to_while_loop)


def for_loop(loop_fn, loop_fn_dtypes, iters, parallel_iterations=None):
    """Runs a loop and stacks the results."""
    results = [loop_fn(tf.constant(i)) for i in range(int(iters))]
    return tf.nest.map_structure(lambda *values: tf.stack(values), *results)


def _name_scope(name, *arguments, skip_on_eager=True, **keywords):
    return tf.name_scope(name)


def _tensor_or_ragged(value, dtype=None, preferred_dtype=None, name=None):
    if isinstance(value, tf.RaggedTensor):
        return value
    return tf.convert_to_tensor(value, dtype, preferred_dtype)


def _functions(namespace, names):
    return {name: getattr(namespace, name) for name in names.split()}


GRAPH = Absent("Graph", "of graph mode")
REDUCTIONS = "reduce_sum reduce_prod reduce_min reduce_max reduce_mean reduce_any reduce_all"
SEGMENTS = ("sum", "prod", "min", "max", "mean", "sqrt_n")
CONVERSIONS = ["convert_to_tensor_v1_with_dispatch", "convert_to_tensor_v2_with_dispatch"]
GFILE = {
    "Copy": "copy",
    "DeleteRecursively": "rmtree",
    "Exists": "exists",
    "FastGFile": "GFile",
    "GFile": "GFile",
    "Glob": "glob",
    "IsDirectory": "isdir",
    "ListDirectory": "listdir",
    "MakeDirs": "makedirs",
    "MkDir": "mkdir",
    "Open": "GFile",
    "Remove": "remove",
    "Rename": "rename",
    "Stat": "stat",
    "Walk": "walk",
}
LOG = ["debug", "error", "info", "log", "log_first_n", "set_verbosity", "vlog", "warn", "warning"]
INITIALIZERS = [
    "global_variables_initializer",
    "initialize_all_variables",
    "local_variables_initializer",
    "variables_initializer",
]

INTERNALS.update(
    {
        "client.session": dict.fromkeys(("InteractiveSession", "Session"), GRAPH),
        "compat.compat": {
            "forward_compatible": _true,
            "forward_compatibility_horizon": no_context,
        },
        "compat.v2_compat": dict.fromkeys(("disable_v2_behavior", "enable_v2_behavior"), _nothing),
        "data.ops.dataset_ops": {
            "get_legacy_output_shapes": _legacy(lambda spec: spec.shape),
            "get_legacy_output_types": _legacy(lambda spec: spec.dtype),
            "make_one_shot_iterator": iter,
        },
        "data.ops.test_mode": {"toggle_test_mode": _nothing},
        "data.util.nest": DATA_NEST,
        "eager.backprop": {
            "gradients_function": gradients_function,
            "implicit_grad": implicit_grad,
            "implicit_val_and_grad": implicit_val_and_grad,
            "make_vjp": make_vjp,
            "val_and_grad_function": lambda function, params=None: _with_tape(function, params),
        },
        "eager.context": {
            **dict.fromkeys(("eager_mode", "execution_mode"), no_context),
            **dict.fromkeys(("_reset_context", "async_clear_error", "async_wait"), _nothing),
            **dict.fromkeys(("is_tfrt_enabled", "run_eager_op_as_function_enabled"), _false),
            "ASYNC": 1,
            "SYNC": 0,
            "config": tf.config,
            "device": tf.device,
            "ensure_initialized": _nothing,
            "executing_eagerly": tf.executing_eagerly,
            "graph_mode": not_applicable,
            "in_eager_mode": _true,
            "num_gpus": int,
            "set_global_seed": tf.random.set_seed,
        },
        "eager.test": GOOGLETEST,
        "framework.config": {
            **dict.fromkeys(
                ("disable_op_determinism", "set_logical_device_configuration"), _nothing
            ),
            "set_virtual_device_configuration": _nothing,
        },
        "framework.constant_op": {"constant_v1": tf.constant},
        "framework.ops": {
            **dict.fromkeys(("Graph", "Operation", "get_default_graph"), GRAPH),
            **dict.fromkeys(("name_scope", "name_scope_v1", "name_scope_v2"), _name_scope),
            **dict.fromkeys(("convert_to_tensor", "convert_to_tensor_v2"), tf.convert_to_tensor),
            **dict.fromkeys(("EagerTensor", "Tensor"), tf.Tensor),
            "IndexedSlices": tf.IndexedSlices,
            "colocate_with": no_context,
            "control_dependencies": tf.control_dependencies,
            "device": tf.device,
            "enable_eager_execution": _nothing,
            "executing_eagerly": tf.executing_eagerly,
            "executing_eagerly_outside_functions": _true,
            "inside_function": tf.inside_function,
            "register_tensor_conversion_function": tf.register_tensor_conversion_function,
            "reset_default_graph": _nothing,
        },
        "framework.random_seed": {"set_random_seed": tf.random.set_seed},
        "framework.sparse_tensor": {"is_sparse": lambda x: isinstance(x, tf.SparseTensor)},
        "framework.tensor_conversion": {
            **dict.fromkeys(CONVERSIONS, tf.convert_to_tensor),
            "convert_to_tensor_v2": tf.convert_to_tensor,
        },
        "framework.tensor_util": {"constant_value": tf.get_static_value},
        "framework.test_util": TEST_UTIL,
        "ops.array_ops": {
            "diag": tf.linalg.tensor_diag,
            "diag_part": tf.linalg.tensor_diag_part,
            "gather_v2": tf.gather,
            "placeholder_with_default": lambda input, shape, name=None: tf.convert_to_tensor(input),
            "tensor_scatter_add": tf.tensor_scatter_nd_add,
            "tensor_scatter_update": tf.tensor_scatter_nd_update,
            "where": tf.where,
            "where_v2": tf.where,
        },
        "ops.cond": {"cond": tf.cond},
        "ops.control_flow_util": {"ENABLE_CONTROL_FLOW_V2": True, "EnableControlFlowV2": _true},
        "ops.control_flow_v2_toggles": {
            "control_flow_v2_enabled": _true,
            "disable_control_flow_v2": _nothing,
            "enable_control_flow_v2": _nothing,
        },
        "ops.gradient_checker": dict.fromkeys(
            ("compute_gradient", "compute_gradient_error"),
            Absent("gradient_checker", "of TensorFlow 1"),
        ),
        "ops.gradient_checker_v2": {
            "compute_gradient": tf.test.compute_gradient,
            "max_error": max_error,
        },
        "ops.lookup_ops": {"tables_initializer": tf.no_op},
        "ops.math_ops": {"add_v2": tf.add},
        "ops.parallel_for.control_flow_ops": {"for_loop": for_loop, "pfor": pfor},
        "ops.ragged.ragged_array_ops": _functions(
            tf, "bitcast expand_dims rank reverse size split tile"
        ),
        "ops.ragged.ragged_concat_ops": {"concat": tf.concat},
        "ops.ragged.ragged_gather_ops": {"gather": tf.gather, "gather_nd": tf.gather_nd},
        "ops.ragged.ragged_map_ops": {"map_fn": tf.map_fn},
        "ops.ragged.ragged_math_ops": {
            **_functions(tf, REDUCTIONS),
            **_functions(tf.math, "reduce_std reduce_variance"),
            **{f"segment_{n}": getattr(tf.math, f"unsorted_segment_{n}") for n in SEGMENTS},
        },
        "ops.ragged.ragged_squeeze_op": {"squeeze": tf.squeeze},
        "ops.ragged.ragged_tensor": {
            "convert_to_tensor_or_ragged_tensor": _tensor_or_ragged,
            "is_ragged": lambda value: isinstance(value, tf.RaggedTensor),
        },
        "ops.ragged.ragged_util": {"repeat": tf.repeat},
        "ops.ragged.ragged_where_op": {"where_v2": tf.where},
        "ops.resource_variable_ops": dict.fromkeys(
            ("BaseResourceVariable", "ResourceVariable"), tf.Variable
        ),
        "ops.script_ops": {"eager_py_func": tf.py_function, "py_func": tf.numpy_function},
        "ops.variable_v1": {"VariableV1": tf.Variable},
        "ops.variables": {
            **dict.fromkeys(INITIALIZERS, lambda *arguments, **keywords: tf.no_op()),
            **dict.fromkeys(("Variable", "VariableV1"), tf.Variable),
        },
        "ops.while_loop": {"while_loop": tf.while_loop},
        "platform.gfile": {old: getattr(tf.io.gfile, new) for old, new in GFILE.items()},
        "platform.googletest": GOOGLETEST,
        "platform.test": GOOGLETEST,
        "platform.tf_logging": dict.fromkeys(LOG, _nothing),
        "tf2": {"enabled": _true},
        "util.deprecation": {"silence": no_context},
        "util.tf_export": {"tf_export": lambda *arguments, **keywords: lambda target: target},
        "util.tf_inspect": {k: v for k, v in vars(inspect).items() if not k.startswith("__")},
    }
)
