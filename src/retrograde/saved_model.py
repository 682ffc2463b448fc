"""tf.saved_model: saves and loads functions and variables without their Python code."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from retrograde import ops
from retrograde._api.lazy import from_all
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.files.atomic import (
    TOKEN,
    Staging,
    full_disk_as_resource_exhausted,
    remove_superseded,
    sync,
    sync_directory,
    write_bytes,
)
from retrograde.files.checked_json import dump_with_checksum, read_with_checksum
from retrograde.files.tensors import SUFFIX, TensorFile, write_tensors_in_place
from retrograde.io.files import tensorflow_errors
from retrograde.program.concrete_function import ConcreteFunction
from retrograde.program.function import Function
from retrograde.program.unknown_sizes import unknown_axes
from retrograde.saved_functions.encoding import boolean, decode, encode, integer, item, text
from retrograde.saved_functions.loaded_function import load_function
from retrograde.saved_functions.loading import tensor_of
from retrograde.saved_functions.saving import FunctionWriter, save_function
from retrograde.toplevel.module import Module
from retrograde.values.arguments import expect, shown
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import DataLossError, OpError

# TensorFlow's names of files, tags and signatures. Files of retrograde have other names.
ASSETS_DIRECTORY = "assets"
ASSETS_KEY = "saved_model_assets"
CLASSIFY_INPUTS = PREDICT_INPUTS = REGRESS_INPUTS = "inputs"
CLASSIFY_METHOD_NAME = "tensorflow/serving/classify"
CLASSIFY_OUTPUT_CLASSES = "classes"
CLASSIFY_OUTPUT_SCORES = "scores"
DEBUG_DIRECTORY = "debug"
DEBUG_INFO_FILENAME_PB = "saved_model_debug_info.pb"
DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
GPU = "gpu"
PREDICT_METHOD_NAME = "tensorflow/serving/predict"
PREDICT_OUTPUTS = REGRESS_OUTPUTS = "outputs"
REGRESS_METHOD_NAME = "tensorflow/serving/regress"
SAVED_MODEL_FILENAME_PB = "saved_model.pb"
SAVED_MODEL_FILENAME_PBTXT = "saved_model.pbtxt"
SAVED_MODEL_SCHEMA_VERSION = 1
SERVING = "serve"
TPU = "tpu"
TRAINING = "train"
VARIABLES_DIRECTORY = VARIABLES_FILENAME = "variables"

__all__ = [
    "ASSETS_DIRECTORY",
    "ASSETS_KEY",
    "CLASSIFY_INPUTS",
    "CLASSIFY_METHOD_NAME",
    "CLASSIFY_OUTPUT_CLASSES",
    "CLASSIFY_OUTPUT_SCORES",
    "DEBUG_DIRECTORY",
    "DEBUG_INFO_FILENAME_PB",
    "DEFAULT_SERVING_SIGNATURE_DEF_KEY",
    "GPU",
    "PREDICT_INPUTS",
    "PREDICT_METHOD_NAME",
    "PREDICT_OUTPUTS",
    "REGRESS_INPUTS",
    "REGRESS_METHOD_NAME",
    "REGRESS_OUTPUTS",
    "SAVED_MODEL_FILENAME_PB",
    "SAVED_MODEL_FILENAME_PBTXT",
    "SAVED_MODEL_SCHEMA_VERSION",
    "SERVING",
    "TPU",
    "TRAINING",
    "VARIABLES_DIRECTORY",
    "VARIABLES_FILENAME",
    "LoadOptions",
    "SaveOptions",
    "contains_saved_model",
    "load",
    "save",
]

__path__: list[str] = []  # allows imports of submodules, as in TensorFlow
__getattr__, __dir__ = from_all(__name__)

_FILE = "saved_model.json"
_TENSORS = f"tensors-({TOKEN}){re.escape(SUFFIX)}"  # the name is in `_FILE`
_KIND = "saved model"
_VERSION = 1
_DEFAULT = "serving_default"


class SaveOptions:
    """Options for saving.

    With `experimental_custom_gradients`, the gradient functions of `custom_gradient`s are saved.
    Without it, the loaded functions use the gradients of their operations. Other options apply to
    TensorFlow's files only and have no effect.
    """

    def __init__(
        self,
        namespace_whitelist: Any = None,
        save_debug_info: bool = False,
        function_aliases: Any = None,
        experimental_debug_stripper: bool = False,
        experimental_io_device: str | None = None,
        experimental_variable_policy: Any = None,
        experimental_custom_gradients: bool = True,
        experimental_image_format: bool = False,
        experimental_skip_saver: bool = False,
        experimental_sharding_callback: Any = None,
        extra_tags: Any = None,
    ) -> None:
        self.experimental_custom_gradients = experimental_custom_gradients


class LoadOptions:
    """Options for loading. They apply to TensorFlow's files only and have no effect."""

    def __init__(
        self,
        allow_partial_checkpoint: bool = False,
        experimental_io_device: str | None = None,
        experimental_skip_checkpoint: bool = False,
        experimental_variable_policy: Any = None,
        experimental_load_function_aliases: bool = False,
    ) -> None:
        pass


def save(
    obj: Any, export_dir: str, signatures: Any = None, options: SaveOptions | None = None
) -> None:
    """Saves the variables and functions of a module to a directory.

    The traces of a function are saved: for the shapes of its calls and of
    `get_concrete_function`. Unknown dimensions of an `input_signature` stay unknown if the trace
    is the same for all sizes. Loading needs and executes none of the Python code. Each call draws
    new random numbers, and a `custom_gradient` keeps its gradient. Functions that run Python code
    at run time (`py_function`, datasets) cannot be saved.

    `signatures` is a function or a dict of functions; the loaded object has them as `signatures`.
    The default is the only function of the module, if that has an `input_signature`.

    >>> import tempfile
    >>> class Scale(tf.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.k = tf.Variable(3.0)
    ...
    ...     @tf.function
    ...     def __call__(self, x):
    ...         return self.k * x
    >>> scale = Scale()
    >>> _ = scale(tf.ones([2]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.saved_model.save(scale, folder)
    ...     loaded = tf.saved_model.load(folder)
    >>> loaded(tf.constant([1.0, 2.0])).numpy()
    array([3., 6.], dtype=float32)
    """
    if options is not None:
        expect(options, SaveOptions, "saved_model.save", "tf.saved_model.SaveOptions")
    obj = obj.__saved_module__() if hasattr(obj, "__saved_module__") else obj
    writer = FunctionWriter(rules=options is None or options.experimental_custom_gradients)
    seen: dict[int, int] = {}
    objects: list[dict] = []
    try:
        root = _pack(obj, writer, seen, objects)
    except RecursionError:
        raise ValueError(
            "saved_model.save: a list or dict is nested too deeply or contains itself."
        ) from None
    if not isinstance(root, dict) or "object" not in root:
        raise ValueError(f"saved_model.save: expected a tf.Module. Received: {shown(obj)}.")
    description = {
        "format": "retrograde saved model",
        "version": _VERSION,
        "objects": objects,
        "signatures": {
            n: _pack_signature(f, writer) for n, f in _named_signatures(signatures, obj).items()
        },
        "variables": [_describe(variable) for variable in writer.variables],
    }
    arrays = {f"variable {i}": v.numpy() for i, v in enumerate(writer.variables)}
    tensors = writer.tensors | {name: np.asarray(x) for name, x in arrays.items()}
    _write(os.fspath(export_dir), description, tensors)


def _write(directory: str, description: dict, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes the tensors to a new file, then the file with its name. The last rename commits."""
    with tensorflow_errors(directory), full_disk_as_resource_exhausted(directory):
        os.makedirs(directory, exist_ok=True)
        with Staging(directory) as staging:
            name = f"tensors-{staging.token}{SUFFIX}"
            path = os.path.join(staging.path, name)
            write_tensors_in_place(path, _KIND, tensors, {"count": len(tensors)})
            sync(path)
            content = dump_with_checksum(description | {"tensors": name})
            write_bytes(os.path.join(staging.path, _FILE), content)
            staging.move(name)
            staging.move(_FILE)
            sync_directory(directory)
    remove_superseded(directory, _TENSORS, lambda: _read(directory)["tensors"])


def _read(directory: str) -> dict:
    """Reads the description of a saved model and checks its checksum."""
    path = os.path.join(directory, _FILE)
    description = read_with_checksum(path, f"{path} as a saved model")
    version, tensors = description.get("version"), description.get("tensors")
    if version != _VERSION:
        raise _corrupt_model_error(directory, f"its version is {version}, not {_VERSION}")
    if not isinstance(tensors, str) or not re.fullmatch(_TENSORS, tensors):
        raise _corrupt_model_error(directory, f"{shown(tensors)} is not a valid tensor file name")
    return description


def _corrupt_model_error(directory: str, reason: str) -> DataLossError:
    path = os.path.join(directory, _FILE)
    return DataLossError(None, None, f"Cannot read {path} as a saved model: {reason}.")


def _open(directory: str) -> tuple[dict, TensorFile]:
    """Opens a saved model. Returns its description and its tensor file."""
    description = _read(directory)
    path = os.path.join(directory, description["tensors"])
    if not os.path.exists(path):
        latest = _read(directory)
        if latest["tensors"] != description["tensors"]:  # it was saved again in the meantime
            return _open(directory)
    return description, TensorFile(path, _KIND)


def _named_signatures(signatures: Any, obj: Any) -> dict[str, Any]:
    if signatures is None:
        values = [getattr(obj, name) for name in {*_functions_of(type(obj)), *vars(obj)}]
        functions = [f for f in values if isinstance(f, Function)]
        has_default = len(functions) == 1 and functions[0]._input_signature is not None
        return {_DEFAULT: functions[0]} if has_default else {}
    return dict(signatures) if isinstance(signatures, Mapping) else {_DEFAULT: signatures}


def _pack_signature(f: Any, writer: FunctionWriter) -> dict:
    """Packs a function with the constants and specs of its arguments."""
    function = f.function if isinstance(f, ConcreteFunction) else f
    if not isinstance(function, Function):
        raise TypeError(f"A signature must be a tf.function. Received: {shown(f)}.")
    packed = save_function(function, writer)
    if isinstance(f, ConcreteFunction):
        args, kwargs = f.structured_input_signature
    elif f._input_signature and (packed["common forms"] or not unknown_axes(f._input_signature)):
        args, kwargs = f._input_signature, {}
    else:
        args, kwargs = next(p.arguments for p in f._signatures.values() if p.all)
    description = f"The signature {f.name}"
    args, kwargs = (encode(value, description) for value in (list(args), kwargs))
    return {"function": packed, "args": args, "kwargs": kwargs}


class Signature(ConcreteFunction):
    """A function of a saved model that takes tensors by name and returns a dict of tensors."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        return _outputs_by_name(super().__call__(*args, **kwargs))

    @property
    def structured_outputs(self) -> dict[str, Any]:
        """The specs of the outputs by name."""
        return _outputs_by_name(super().structured_outputs)


def _outputs_by_name(outputs: Any) -> dict[str, Any]:
    if isinstance(outputs, Mapping):
        return dict(outputs)
    parts = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return {f"output_{i}": part for i, part in enumerate(parts)}


def _describe(variable: Variable) -> dict:
    return {
        "name": variable._name,
        "trainable": variable.trainable,
        "shape": None if variable._shape is None else variable._shape.as_list(),
    }


def _pack(value: Any, writer: FunctionWriter, seen: dict[int, int], objects: list[dict]) -> Any:
    """Returns the JSON description of an attribute, or `None` if it is not saved."""
    tensor_or_var = tensor_or_variable(value)
    if isinstance(tensor_or_var, Variable):
        return {"variable": writer.variable(tensor_or_var)}
    if isinstance(tensor_or_var, Tensor):
        return {"tensor": writer.constant(tensor_or_var._array)}
    if isinstance(value, Function):
        has_traces = any(paths.all for paths in value._signatures.values())
        can_save = has_traces or value._input_signature is not None
        return {"function": save_function(value, writer)} if can_save else None
    if type(value) in (list, tuple, dict):
        items = value.values() if type(value) is dict else value
        parts = [_pack(item, writer, seen, objects) for item in items]
        if all(part is None for part in parts):
            return None
        keys = list(value) if type(value) is dict else None
        return {type(value).__name__: parts, "keys": keys}
    if not isinstance(value, Module):
        return None
    if id(value) not in seen:
        seen[id(value)] = len(objects)
        objects.append({})
        names = {**dict.fromkeys(_functions_of(type(value))), **vars(value)}
        values = {n: _pack(getattr(value, n), writer, seen, objects) for n in sorted(names)}
        objects[seen[id(value)]] |= {n: part for n, part in values.items() if part is not None}
    return {"object": seen[id(value)]}


def _functions_of(kind: type) -> list[str]:
    return [n for base in kind.__mro__ for n, x in vars(base).items() if isinstance(x, Function)]


def contains_saved_model(export_dir: str) -> bool:
    """Returns whether a directory contains a saved model."""
    return os.path.isfile(os.path.join(export_dir, _FILE))


def load(export_dir: str, tags: Any = None, options: Any = None) -> Any:
    """Loads the variables and functions that `save` wrote to a directory.

    Loading never executes code from the files. The functions replay their traces on NumPy and can
    be differentiated. Calls with other shapes raise a `ValueError`.
    """
    path = os.path.join(export_dir, _FILE)
    if not os.path.isfile(path):
        raise OSError(
            f"SavedModel file does not exist at: {path}. Expected a directory that "
            "tf.saved_model.save wrote."
        )
    try:
        return _build(*_open(os.fspath(export_dir)))
    except (OSError, OpError):
        raise
    except Exception as error:  # any other error means that the file is corrupt
        raise _corrupt_model_error(export_dir, f"it is corrupt ({error!r})") from None


def _build(description: Mapping, file: TensorFile) -> Any:
    for module in pkgutil.iter_modules(ops.__path__):  # registers all primitives
        importlib.import_module(f"{ops.__name__}.{module.name}")
    tensors = {key: file.array(key) for key in file.keys}
    variables = [
        Variable(
            tensor_of(tensors[f"variable {i}"]),
            trainable=boolean(data["trainable"]),
            name=text(data["name"]),
            shape=None if data["shape"] is None else _sizes(data["shape"]),
        )
        for i, data in enumerate(description["variables"])
    ]
    classes = [_make_class(data) for data in description["objects"]]
    objects = [kind() for kind in classes]
    for loaded, data in zip(objects, description["objects"], strict=True):
        for name, part in data.items():
            value = _unpack(part, objects, variables, tensors)
            if name == "__call__" and isinstance(value, Function):
                type(loaded)._call = value
            elif name.startswith("__") or hasattr(Module, name):
                raise ValueError(f"an object has an attribute {name!r}")
            elif name not in ("_name", "_name_scope"):
                setattr(loaded, name, value)
    root = objects[0]
    root.signatures = {
        name: _unpack_signature(data, variables, tensors)
        for name, data in description["signatures"].items()
    }
    return root


def _sizes(data: list) -> list[int | None]:
    return [None if size is None else integer(size) for size in data]


def _unpack_signature(data: Mapping, variables: list, tensors: Mapping) -> Signature:
    function = load_function(data["function"], variables, tensors)
    args, kwargs = decode(data["args"]), decode(data["kwargs"])
    concrete = function.get_concrete_function(*args, **kwargs)
    return Signature(
        function, tuple(args), kwargs, concrete._trace, concrete._traces_with_other_sizes
    )


def _make_class(data: Mapping) -> type:
    """Creates a class for one loaded object, with `__call__` if the saved object had it."""
    methods = {"__call__": lambda self, *a, **k: type(self)._call(*a, **k)}
    return type("Loaded", (Module,), methods if "__call__" in data else {})


def _unpack(part: Any, objects: list, variables: list, tensors: Mapping) -> Any:
    if part is None:
        return None
    kind = next(iter(part), None)
    value = part[kind]
    match kind:
        case "variable":
            return item(variables, value)
        case "tensor":
            return tensor_of(tensors[value])
        case "function":
            return load_function(value, variables, tensors)
        case "object":
            return item(objects, value)
    parts = [_unpack(item, objects, variables, tensors) for item in value]
    if kind == "dict":
        return dict(zip(part["keys"], parts, strict=True))
    return {"list": list, "tuple": tuple}[kind](parts)
