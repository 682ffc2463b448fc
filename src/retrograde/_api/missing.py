"""Error messages for names of TensorFlow that retrograde does not have.

`tensorflow_names.txt` lists TensorFlow's public names. It is read when a name is missing.
"""

from __future__ import annotations

import functools
import pathlib

_NO_GRAPHS = "Operations run eagerly; there are no graphs."
_ONE_DEVICE = "A program runs on one machine and one device."
_NO_PARAMETER_SERVERS = (
    "Every worker has a copy of each variable, and all workers train in step. Use "
    "tf.distribute.MultiWorkerMirroredStrategy."
)
_NO_REWRITING = "tf.function traces operations; it does not rewrite source code."
_NO_LIBRARIES = "Operations compiled for TensorFlow cannot be loaded."
_NO_HEADERS = "Operations are written in Python; there is nothing to compile against."
_RUNTIME = "It is part of TensorFlow's runtime."
_NO_CLUSTER = "Use tf.distribute.MultiWorkerMirroredStrategy and `retrograde launch`."
_NO_SMALL_DTYPES = "Use tf.float16, tf.bfloat16 or tf.int8."
_NO_RAGGED_PARTS = "Use the methods of tf.RaggedTensor, such as from_row_splits and row_lengths."
_NO_QUANTIZED_TENSORS = "Use tf.quantization.fake_quant_with_min_max_args, or tf.cast."
_NO_SHARDS = "A checkpoint is one file. Use tf.train.CheckpointOptions without sharding."
_NO_TABLES = "Create a tf.lookup.StaticHashTable from the keys and values of the dataset."
_NO_VARIANTS = "Pass the dataset itself; datasets are not tensors here."
_MESSAGES = "Use the protobuf package in tf.py_function."

# The reason why a name is missing, or the replacement. An entry covers all names below it.
REASONS = {
    **{
        f"tf.experimental.{name}": _NO_SMALL_DTYPES
        for name in (
            "float4_e2m1fn",
            "float8_e4m3b11fnuz",
            "float8_e4m3fn",
            "float8_e4m3fnuz",
            "float8_e5m2",
            "float8_e5m2fnuz",
            "int2",
            "int4",
            "uint2",
            "uint4",
        )
    },
    "tf.Graph": _NO_GRAPHS,
    "tf.Operation": _NO_GRAPHS,
    "tf.autograph.to_code": _NO_REWRITING,
    "tf.autograph.to_graph": _NO_REWRITING,
    "tf.check_pinned": "Tensors have no pinned memory.",
    "tf.compat.v1": "It is the graph and session API of TensorFlow 1. Port the program to "
    "TensorFlow 2: replace logging with tf.get_logger() and set_random_seed with "
    "tf.random.set_seed, and remove sessions and their configuration.",
    "tf.config.experimental.ClusterDeviceFilters": _NO_CLUSTER,
    "tf.config.experimental_connect_to_cluster": _NO_CLUSTER,
    "tf.config.experimental_connect_to_host": _NO_CLUSTER,
    "tf.data.IteratorSpec": "Use the attribute element_spec of the iterator.",
    "tf.data.experimental.DatasetInitializer": _NO_TABLES,
    "tf.data.experimental.RandomDataset": "Use tf.data.Dataset.random.",
    "tf.data.experimental.Reducer": "Use tf.data.Dataset.group_by_window.",
    "tf.data.experimental.SHARD_HINT": "Use tf.data.Dataset.shard.",
    "tf.data.experimental.SqlDataset": "Read rows with Python's sqlite3 module, and pass them to "
    "tf.data.Dataset.from_generator.",
    "tf.data.experimental.TFRecordWriter": "Use tf.io.TFRecordWriter.",
    "tf.data.experimental.at": "Use tf.data.Dataset.skip and take.",
    "tf.data.experimental.distributed_save": _ONE_DEVICE,
    "tf.data.experimental.from_variant": _NO_VARIANTS,
    "tf.data.experimental.get_model_proto": "Use the profile of the program, such as cProfile.",
    "tf.data.experimental.group_by_reducer": "Use tf.data.Dataset.group_by_window.",
    "tf.data.experimental.index_table_from_dataset": _NO_TABLES,
    "tf.data.experimental.make_saveable_from_iterator": "Pass the iterator to tf.train.Checkpoint.",
    "tf.data.experimental.pad_to_cardinality": "Use tf.data.Dataset.concatenate.",
    "tf.data.experimental.service": _ONE_DEVICE,
    "tf.data.experimental.table_from_dataset": _NO_TABLES,
    "tf.data.experimental.to_variant": _NO_VARIANTS,
    "tf.debugging.experimental": "Use tf.print, tf.debugging and Python's debugger.",
    "tf.distribute.ParameterServerStrategy": _NO_PARAMETER_SERVERS,
    "tf.distribute.Server": _NO_PARAMETER_SERVERS,
    "tf.distribute.cluster_resolver.GCEClusterResolver": "Use "
    "tf.distribute.cluster_resolver.SimpleClusterResolver.",
    "tf.distribute.coordinator": _NO_PARAMETER_SERVERS,
    "tf.distribute.experimental.CentralStorageStrategy": "Every replica has a copy of each "
    "variable. Use tf.distribute.MirroredStrategy.",
    "tf.distribute.experimental.ParameterServerStrategy": _NO_PARAMETER_SERVERS,
    "tf.distribute.experimental.PreemptionWatcher": "Use "
    "tf.distribute.experimental.PreemptionCheckpointHandler.",
    "tf.distribute.experimental.coordinator": _NO_PARAMETER_SERVERS,
    "tf.distribute.experimental.partitioners": _NO_PARAMETER_SERVERS,
    "tf.distribute.experimental.rpc": "JAX connects the workers of a strategy.",
    "tf.dtypes.experimental": _NO_SMALL_DTYPES,
    "tf.estimator": "TensorFlow 2.16 removed it. Use tf.keras.",
    "tf.experimental.DynamicRaggedShape": _NO_RAGGED_PARTS,
    "tf.experimental.RowPartition": _NO_RAGGED_PARTS,
    "tf.experimental.StructuredTensor": "Use a dict of tensors, or tf.experimental.ExtensionType.",
    "tf.experimental.async_clear_error": "Operations run synchronously.",
    "tf.experimental.async_scope": "Operations run synchronously.",
    "tf.experimental.dtensor": _ONE_DEVICE,
    "tf.experimental.enable_strict_mode": "Run Python with -W error.",
    "tf.experimental.function_executor_type": _RUNTIME,
    "tf.experimental.register_filesystem_plugin": "Open files of other systems with fsspec.",
    "tf.experimental.tensorrt": _RUNTIME,
    "tf.feature_column": "Use Keras's preprocessing layers.",
    "tf.graph_util": _NO_GRAPHS,
    "tf.image.decode_jxl": "Decode the image with another library, such as pillow-jxl-plugin.",
    "tf.image.decode_webp": "Decode the image with Pillow in tf.py_function.",
    "tf.image.generate_bounding_box_proposals": "Use tf.image.non_max_suppression.",
    "tf.import_graph_def": _NO_GRAPHS,
    "tf.io.decode_json_example": "Parse the text with Python's json module, and create a "
    "tf.train.Example.",
    "tf.io.decode_jxl": "Decode the image with another library, such as pillow-jxl-plugin.",
    "tf.io.decode_proto": _MESSAGES,
    "tf.io.decode_webp": "Decode the image with Pillow in tf.py_function.",
    "tf.io.encode_proto": _MESSAGES,
    "tf.io.write_graph": _NO_GRAPHS,
    "tf.lite": _RUNTIME,
    "tf.load_library": _NO_LIBRARIES,
    "tf.load_op_library": _NO_LIBRARIES,
    "tf.mlir": _RUNTIME,
    "tf.nn.RNNCellDeviceWrapper": "Call the layer in a tf.device block.",
    "tf.nn.RNNCellDropoutWrapper": "Use the arguments dropout and recurrent_dropout of Keras's "
    "recurrent layers.",
    "tf.nn.RNNCellResidualWrapper": "Add the inputs to the result of the layer.",
    "tf.nondifferentiable_batch_function": "Call the function on a batch of inputs.",
    "tf.profiler.experimental.client": "Call tf.profiler.experimental.start in the program.",
    "tf.profiler.experimental.server": "Call tf.profiler.experimental.start in the program.",
    "tf.quantization.dequantize": _NO_QUANTIZED_TENSORS,
    "tf.quantization.experimental": _NO_QUANTIZED_TENSORS,
    "tf.quantization.quantize": _NO_QUANTIZED_TENSORS,
    "tf.quantization.quantized_concat": _NO_QUANTIZED_TENSORS,
    "tf.queue": "Use Python's queue module or tf.data.",
    "tf.raw_ops": "Use the corresponding public function.",
    "tf.saved_model.Asset": "Copy the file to the directory of the model.",
    "tf.saved_model.experimental": "Its classes describe TensorFlow's own files.",
    "tf.strings.unicode_script": "Use Python's unicodedata module in tf.py_function.",
    "tf.summary.graph": "There are no graphs to draw.",
    "tf.sysconfig.get_compile_flags": _NO_HEADERS,
    "tf.sysconfig.get_include": _NO_HEADERS,
    "tf.sysconfig.get_link_flags": _NO_HEADERS,
    "tf.test.Benchmark": "Use Python's timeit module.",
    "tf.test.assert_equal_graph_def": _NO_GRAPHS,
    "tf.test.benchmark_config": "Use Python's timeit module.",
    "tf.test.create_local_cluster": _ONE_DEVICE,
    "tf.test.experimental": "Use numpy() of a tensor to wait for its value.",
    "tf.test.with_eager_op_as_function": "Remove the decorator.",
    "tf.tpu": _RUNTIME,
    "tf.train.CheckpointView": "Use tf.train.list_variables.",
    "tf.train.ClusterDef": "Use tf.train.ClusterSpec.",
    "tf.train.Coordinator": "Use Python's threading module.",
    "tf.train.JobDef": "Use tf.train.ClusterSpec.",
    "tf.train.ServerDef": _NO_PARAMETER_SERVERS,
    "tf.train.TrackableView": "Use the attributes of the object.",
    "tf.train.experimental.MaxShardSizePolicy": _NO_SHARDS,
    "tf.train.experimental.ShardByTaskPolicy": _NO_SHARDS,
    "tf.train.experimental.ShardableTensor": _NO_SHARDS,
    "tf.train.experimental.ShardingCallback": _NO_SHARDS,
    "tf.types.experimental.AtomicFunction": "Use tf.types.experimental.ConcreteFunction.",
    "tf.types.experimental.SupportsTracingProtocol": "Define the method __tf_tracing_type__.",
    "tf.types.experimental.distributed": _ONE_DEVICE,
    "tf.xla": "Use tf.function(jit_compile=True).",
}

# Names of TensorFlow 1 and their replacements in TensorFlow 2: a full sentence, or the object of
# "Use".
TENSORFLOW_1 = {
    "tf.ConfigProto": "tf.config",
    "tf.GraphKeys": "the attributes of objects",
    "tf.InteractiveSession": "Remove it: operations run eagerly.",
    "tf.Session": "Remove it: operations run eagerly.",
    "tf.app": "Python's argparse module",
    "tf.assign": "tf.Variable.assign",
    "tf.assign_add": "tf.Variable.assign_add",
    "tf.batch_matmul": "tf.linalg.matmul",
    "tf.contrib": "tf.keras",
    "tf.diag": "tf.linalg.diag",
    "tf.enable_eager_execution": "Remove it: operations run eagerly.",
    "tf.flags": "Python's argparse module",
    "tf.get_default_graph": "Remove it: operations run eagerly.",
    "tf.get_variable": "tf.Variable",
    "tf.gfile": "tf.io.gfile",
    "tf.global_variables": "tf.Module.variables",
    "tf.global_variables_initializer": "Remove it: variables are initialized on creation.",
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
    "tf.reset_default_graph": "Remove it: operations run eagerly.",
    "tf.rsqrt": "tf.math.rsqrt",
    "tf.set_random_seed": "tf.random.set_seed",
    "tf.sub": "tf.subtract",
    "tf.to_float": "tf.cast",
    "tf.to_int32": "tf.cast",
    "tf.trainable_variables": "tf.Module.trainable_variables",
    "tf.truncated_normal": "tf.random.truncated_normal",
    "tf.variable_scope": "tf.Module",
}

# TensorFlow's private packages.
PRIVATE = ("tf.python", "tf.core", "tf.compiler", "tf.tools", "tf.security", "tf.dtensor")

# Packages that depend on TensorFlow itself.
PACKAGES = {
    "tensorflow_addons": "It is no longer maintained; Keras has most of its features.",
    "tensorflow_federated": "",
    "tensorflow_graphics": "",
    "tensorflow_hub": "Keras has pretrained models in keras.applications and keras_hub.",
    "tensorflow_io": "Read files with another library, and pass arrays to tf.data.",
    "tensorflow_model_optimization": "",
    "tensorflow_probability": "Sample with tf.random, and compute densities with tf.math.",
    "tensorflow_text": "Preprocess text in Python, and pass arrays to tf.data.",
    "tf_keras": "It is Keras 2; tf.keras is Keras 3.",
}


@functools.cache
def tensorflow_names() -> dict[str, frozenset[str]]:
    """Returns TensorFlow's public names by module."""
    text = pathlib.Path(__file__).with_name("tensorflow_names.txt").read_text()
    by_module = {}
    for line in text.replace("\n  ", " ").splitlines():
        path, *names = line.split()
        by_module[path] = frozenset(name.rstrip(".") for name in names)
    return by_module


def is_module(path: str) -> bool:
    """Returns whether TensorFlow has this public module; all names below tf.keras count."""
    return path in tensorflow_names() or path.startswith("tf.keras.")


def is_tensorflow_name(path: str) -> bool:
    """Returns whether TensorFlow has this public name."""
    module, _, name = path.rpartition(".")
    return name in tensorflow_names().get(module, ())


def message_for(path: str) -> str:
    """Returns the message for a missing name; empty if TensorFlow does not have it either."""
    if path.startswith("tf.keras."):
        return f"Keras 3 does not have {path}."
    prefixes = [path]
    while "." in prefixes[-1]:
        prefixes.append(prefixes[-1].rpartition(".")[0])
    for part in prefixes:
        if part in PRIVATE:
            return f"{part} is private to TensorFlow. Use the public name of the object."
        if part in TENSORFLOW_1:
            replacement = TENSORFLOW_1[part]
            advice = replacement if replacement.endswith(".") else f"Use {replacement}."
            return f"{part} is part of TensorFlow 1. {advice}"
        if part in REASONS:
            return f"{part} is in TensorFlow but not supported by retrograde. {REASONS[part]}"
    return ""


def package_message(package: str) -> str:
    """Returns the message for a package that requires TensorFlow."""
    return f"{package} requires TensorFlow itself. {PACKAGES[package]}".rstrip()


def missing_attribute(module: str, name: str) -> AttributeError:
    """Returns the error for a name that a module does not have."""
    message = f"module {module!r} has no attribute {name!r}"
    if not name.startswith("_"):
        reason = message_for(f"tf{module.removeprefix('retrograde')}.{name}")
        message = f"{message}. {reason}" if reason else message
    return AttributeError(message)
