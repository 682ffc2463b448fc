"""What is said of a name that is TensorFlow's and not here.

`tensorflow_names.txt` lists TensorFlow's public names; it is read when a name is missing.
"""

from __future__ import annotations

import functools
import pathlib

_NO_GRAPHS = "Operations run as they are called; nothing builds graphs."
_NO_RECORDS = "Files of TensorFlow's own format of records are neither written nor read."
_ONE_DEVICE = "A program runs on one machine and one device."
_NO_REWRITING = "tf.function records what runs; no source code is rewritten."
_NO_LIBRARIES = "Operations compiled for TensorFlow cannot be loaded."
_NO_HEADERS = "Operations are written in Python; there is nothing to compile against."
_NO_PROTOCOL = "TensorFlow's protocol buffers are neither made nor read."
_RUNTIME = "It belongs to TensorFlow's own runtime."

# Why a name is not here, or what to use instead. A name stands for all below it as well.
REASONS = {
    "tf.Graph": _NO_GRAPHS,
    "tf.Operation": _NO_GRAPHS,
    "tf.audio": "Read sound with scipy.io.wavfile or the module wave of Python.",
    "tf.autograph.to_code": _NO_REWRITING,
    "tf.autograph.to_graph": _NO_REWRITING,
    "tf.compat.v1": "It is TensorFlow 1's interface of graphs and sessions. Write the program for "
    "TensorFlow 2: for logging take tf.get_logger(), for set_random_seed tf.random.set_seed, and "
    "leave sessions and their configuration out.",
    "tf.data.TFRecordDataset": _NO_RECORDS,
    "tf.data.experimental.service": _ONE_DEVICE,
    "tf.debugging.experimental": "Look into a program with tf.print, tf.debugging and Python's "
    "own debugger.",
    "tf.distribute.DistributedDataset": _ONE_DEVICE,
    "tf.distribute.DistributedIterator": _ONE_DEVICE,
    "tf.distribute.DistributedValues": _ONE_DEVICE,
    "tf.distribute.InputOptions": _ONE_DEVICE,
    "tf.distribute.InputReplicationMode": _ONE_DEVICE,
    "tf.distribute.MultiWorkerMirroredStrategy": _ONE_DEVICE,
    "tf.distribute.ParameterServerStrategy": _ONE_DEVICE,
    "tf.distribute.RunOptions": _ONE_DEVICE,
    "tf.distribute.Server": _ONE_DEVICE,
    "tf.distribute.StrategyExtended": _ONE_DEVICE,
    "tf.distribute.TPUStrategy": _ONE_DEVICE,
    "tf.distribute.coordinator": _ONE_DEVICE,
    "tf.distribute.experimental": _ONE_DEVICE,
    "tf.distribute.experimental_set_strategy": _ONE_DEVICE,
    "tf.distribute.cluster_resolver.ClusterResolver": _ONE_DEVICE,
    "tf.estimator": "TensorFlow 2.16 removed it. Use tf.keras.",
    "tf.experimental.BatchableExtensionType": "Use a class of Python, or a dataclass of tensors.",
    "tf.experimental.extension_type": "Use a class of Python, or a dataclass of tensors.",
    "tf.experimental.ExtensionType": "Use a class of Python, or a dataclass of tensors.",
    "tf.experimental.dtensor": _ONE_DEVICE,
    "tf.experimental.tensorrt": _RUNTIME,
    "tf.feature_column": "Use Keras's preprocessing layers.",
    "tf.graph_util": _NO_GRAPHS,
    "tf.import_graph_def": _NO_GRAPHS,
    "tf.io.TFRecordOptions": _NO_RECORDS,
    "tf.io.TFRecordWriter": _NO_RECORDS,
    "tf.io.parse_example": _NO_RECORDS,
    "tf.io.parse_single_example": _NO_RECORDS,
    "tf.io.write_graph": _NO_GRAPHS,
    "tf.linalg.LinearOperator": "Use the matrix itself, with tf.linalg.matmul and tf.linalg.solve.",
    "tf.lite": _RUNTIME,
    "tf.load_library": _NO_LIBRARIES,
    "tf.load_op_library": _NO_LIBRARIES,
    "tf.lookup": "Look values up in a Python dict before they become tensors.",
    "tf.make_ndarray": _NO_PROTOCOL,
    "tf.make_tensor_proto": _NO_PROTOCOL,
    "tf.mlir": _RUNTIME,
    "tf.profiler": "Measure with cProfile or time.perf_counter.",
    "tf.queue": "Use the module queue of Python, or tf.data.",
    "tf.raw_ops": "Use the function of the public namespaces that does the same.",
    "tf.sets": "Use sets of Python, or tf.unique and tf.sparse.",
    "tf.summary.graph": "There are no graphs to be drawn.",
    "tf.sysconfig.get_compile_flags": _NO_HEADERS,
    "tf.sysconfig.get_include": _NO_HEADERS,
    "tf.sysconfig.get_link_flags": _NO_HEADERS,
    "tf.test.create_local_cluster": _ONE_DEVICE,
    "tf.tpu": _RUNTIME,
    "tf.train.Coordinator": "Use the module threading of Python.",
    "tf.train.Example": _NO_RECORDS,
    "tf.train.SequenceExample": _NO_RECORDS,
    "tf.types.experimental.distributed": _ONE_DEVICE,
    "tf.xla": "Use tf.function(jit_compile=True).",
}

# Names that programs for TensorFlow 1 use, and what TensorFlow 2 has instead: a sentence, or what
# "Use" goes in front of.
OF_TENSORFLOW_1 = {
    "tf.ConfigProto": "tf.config",
    "tf.GraphKeys": "the attributes of objects",
    "tf.InteractiveSession": "Leave it out: operations run as they are called.",
    "tf.Session": "Leave it out: operations run as they are called.",
    "tf.app": "Python's module argparse",
    "tf.assign": "tf.Variable.assign",
    "tf.assign_add": "tf.Variable.assign_add",
    "tf.batch_matmul": "tf.linalg.matmul",
    "tf.contrib": "tf.keras",
    "tf.diag": "tf.linalg.diag",
    "tf.enable_eager_execution": "Leave it out: operations run as they are called.",
    "tf.flags": "Python's module argparse",
    "tf.get_default_graph": "Leave it out: operations run as they are called.",
    "tf.get_variable": "tf.Variable",
    "tf.gfile": "tf.io.gfile",
    "tf.global_variables": "tf.Module.variables",
    "tf.global_variables_initializer": "Leave it out: variables have values from the start.",
    "tf.is_nan": "tf.math.is_nan",
    "tf.layers": "tf.keras.layers",
    "tf.lgamma": "tf.math.lgamma",
    "tf.log": "tf.math.log",
    "tf.logging": "tf.get_logger",
    "tf.matrix_inverse": "tf.linalg.inv",
    "tf.mul": "tf.multiply",
    "tf.neg": "tf.negative",
    "tf.placeholder": "the arguments of a function",
    "tf.py_func": "tf.py_function",
    "tf.random_normal": "tf.random.normal",
    "tf.random_uniform": "tf.random.uniform",
    "tf.reset_default_graph": "Leave it out: operations run as they are called.",
    "tf.rsqrt": "tf.math.rsqrt",
    "tf.set_random_seed": "tf.random.set_seed",
    "tf.sub": "tf.subtract",
    "tf.to_float": "tf.cast",
    "tf.to_int32": "tf.cast",
    "tf.trainable_variables": "tf.Module.trainable_variables",
    "tf.truncated_normal": "tf.random.truncated_normal",
    "tf.variable_scope": "tf.Module",
}

# What belongs to TensorFlow's own machinery.
PRIVATE = ("tf.python", "tf.core", "tf.compiler", "tf.tools", "tf.security", "tf.dtensor")

# Packages that reach into TensorFlow, and so need it.
PACKAGES = {
    "tensorflow_addons": "It is no longer maintained; Keras has most of what it had.",
    "tensorflow_datasets": "Load the data otherwise, and pass arrays to "
    "tf.data.Dataset.from_tensor_slices.",
    "tensorflow_federated": "",
    "tensorflow_graphics": "",
    "tensorflow_hub": "Keras has models with weights in keras.applications and in keras_hub.",
    "tensorflow_io": "Read files with the library of their format, and pass arrays to tf.data.",
    "tensorflow_model_optimization": "",
    "tensorflow_probability": "Draw random numbers with tf.random, and write densities "
    "with tf.math.",
    "tensorflow_text": "Prepare text in Python, and pass arrays to tf.data.",
    "tf_keras": "It is Keras 2; tf.keras is Keras 3.",
}


@functools.cache
def names() -> dict[str, frozenset[str]]:
    """TensorFlow's public names, by module."""
    text = pathlib.Path(__file__).with_name("tensorflow_names.txt").read_text()
    found = {}
    for part in text.replace("\n  ", " ").splitlines():
        path, *of_module = part.split()
        found[path] = frozenset(name.rstrip(".") for name in of_module)
    return found


def is_module(path: str) -> bool:
    """Whether TensorFlow has a public module of this name; all below tf.keras count as such."""
    return path in names() or path.startswith("tf.keras.")


def is_tensorflows(path: str) -> bool:
    """Whether TensorFlow has this public name."""
    module, _, name = path.rpartition(".")
    return name in names().get(module, ())


def words(path: str) -> str:
    """What to say of a name that is not here; nothing if TensorFlow does not have it either."""
    if path.startswith("tf.keras."):
        return f"Keras 3 does not have {path}."
    above = [path]
    while "." in above[-1]:
        above.append(above[-1].rpartition(".")[0])
    for part in above:
        if part in PRIVATE:
            return f"{part} is private to TensorFlow. Use the public name of what it holds."
        if part in OF_TENSORFLOW_1:
            instead = OF_TENSORFLOW_1[part]
            advice = instead if instead.endswith(".") else f"Use {instead}."
            return f"{part} belongs to TensorFlow 1. {advice}"
        if part in REASONS:
            return f"{part} is TensorFlow's, and not here. {REASONS[part]}"
    if is_tensorflows(path):
        return f"{path} is TensorFlow's, and not here yet."
    return ""


def package_words(package: str) -> str:
    """What to say of a package that needs TensorFlow."""
    return f"{package} needs TensorFlow's own library. {PACKAGES[package]}".rstrip()


def absent(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have."""
    error = f"module {module!r} has no attribute {name!r}"
    if not name.startswith("_"):
        said = words(f"tf{module.removeprefix('retrograde')}.{name}")
        error = f"{error}. {said}" if said else error
    return AttributeError(error)
