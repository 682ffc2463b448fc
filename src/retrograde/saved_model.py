"""tf.saved_model: functions and variables in a directory, without the Python code behind them."""

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
from retrograde.files.checked_json import read_sealed, sealed
from retrograde.files.tensors import SUFFIX, TensorFile, put_tensors
from retrograde.io.files import tensorflow_errors
from retrograde.program.concrete_function import ConcreteFunction
from retrograde.program.function import Function
from retrograde.program.loaded_function import unpacked_function
from retrograde.program.loading import tensor_of
from retrograde.program.saving import Packing, packed_function
from retrograde.program.saving_values import boolean, decoded, encoded, integer, item, text
from retrograde.program.symbolic_sizes import unknown_axes
from retrograde.toplevel.module import Module
from retrograde.values.arguments import expect, shown
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import DataLossError, OpError

__all__ = ["LoadOptions", "SaveOptions", "contains_saved_model", "load", "save"]

__path__: list[str] = []  # of TensorFlow's, modules can be imported
__getattr__, __dir__ = from_all(__name__)

_FILE = "saved_model.json"
_TENSORS = f"tensors-({TOKEN}){re.escape(SUFFIX)}"  # as `_FILE` names them
_KIND = "saved model"
_VERSION = 1
_DEFAULT = "serving_default"


class SaveOptions:
    """How to save.

    With `experimental_custom_gradients`, the rules of `custom_gradient`s are saved, too; without,
    the derivatives of what they compute take their place. The rest concerns TensorFlow's own files
    and is accepted and ignored.
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
    """How to load. All of it concerns TensorFlow's own files and is accepted and ignored."""

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
    """Writes the variables and functions of a module into a directory.

    A function is saved as what was recorded of it: for the shapes it was called with, or those of
    `get_concrete_function`. Where the specs of a signature leave sizes open, so does what is saved,
    if the function does the same for all of them. What loads it needs none of the Python code, and
    runs none. Random numbers are drawn anew in each call, and a `custom_gradient` keeps its
    gradient. Functions that run Python code on their way (`py_function`, datasets) cannot be saved.

    `signatures` is a function, or a dict of them, to be found under `signatures` after loading;
    without it, the only function of the module, if that has an `input_signature`.

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
    packing = Packing(rules=options is None or options.experimental_custom_gradients)
    seen: dict[int, int] = {}
    objects: list[dict] = []
    try:
        root = _packed(obj, packing, seen, objects)
    except RecursionError:
        raise ValueError(
            "saved_model.save: a list or dict is nested too deeply, or contains itself."
        ) from None
    if not isinstance(root, dict) or "object" not in root:
        raise ValueError(
            f"saved_model.save takes a tf.Module or another object with attributes. Received: "
            f"{shown(obj)}."
        )
    description = {
        "format": "retrograde saved model",
        "version": _VERSION,
        "objects": objects,
        "signatures": {
            n: _packed_signature(f, packing) for n, f in _named(signatures, obj).items()
        },
        "variables": [_described(variable) for variable in packing.variables],
    }
    arrays = {f"variable {i}": v.numpy() for i, v in enumerate(packing.variables)}
    tensors = packing.tensors | {name: np.asarray(x) for name, x in arrays.items()}
    _write(os.fspath(export_dir), description, tensors)


def _write(directory: str, description: dict, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes the tensors under a new name, then the file that names them: one rename decides."""
    with tensorflow_errors(directory), full_disk_as_resource_exhausted(directory):
        os.makedirs(directory, exist_ok=True)
        with Staging(directory) as staging:
            name = f"tensors-{staging.token}{SUFFIX}"
            made = os.path.join(staging.path, name)
            put_tensors(made, _KIND, tensors, {"count": len(tensors)})
            sync(made)
            content = sealed(description | {"tensors": name})
            write_bytes(os.path.join(staging.path, _FILE), content)
            staging.move(name)
            staging.move(_FILE)
            sync_directory(directory)
    remove_superseded(directory, _TENSORS, lambda: _read(directory)["tensors"])


def _read(directory: str) -> dict:
    """The description of a saved model, whose checksum is right."""
    path = os.path.join(directory, _FILE)
    description = read_sealed(path, f"{path} as a saved model")
    version, tensors = description.get("version"), description.get("tensors")
    if version != _VERSION:
        raise _damaged(directory, f"its version is {version}, not {_VERSION}")
    if not isinstance(tensors, str) or not re.fullmatch(_TENSORS, tensors):
        raise _damaged(directory, f"{shown(tensors)} is not a name of its tensors")
    return description


def _damaged(directory: str, reason: str) -> DataLossError:
    path = os.path.join(directory, _FILE)
    return DataLossError(None, None, f"Cannot read {path} as a saved model: {reason}.")


def _opened(directory: str) -> tuple[dict, TensorFile]:
    """The description of a saved model and its tensors."""
    description = _read(directory)
    path = os.path.join(directory, description["tensors"])
    if not os.path.exists(path):
        again = _read(directory)
        if again["tensors"] != description["tensors"]:  # saved again in this moment
            return _opened(directory)
    return description, TensorFile(path, _KIND)


def _named(signatures: Any, obj: Any) -> dict[str, Any]:
    if signatures is None:
        found = [getattr(obj, name) for name in {*_functions_of(type(obj)), *vars(obj)}]
        functions = [f for f in found if isinstance(f, Function)]
        only = len(functions) == 1 and functions[0]._input_signature is not None
        return {_DEFAULT: functions[0]} if only else {}
    return dict(signatures) if isinstance(signatures, Mapping) else {_DEFAULT: signatures}


def _packed_signature(f: Any, packing: Packing) -> dict:
    """A function, and the arguments that are fixed or known by their specs."""
    function = f.function if isinstance(f, ConcreteFunction) else f
    if not isinstance(function, Function):
        raise TypeError(f"A signature must be a tf.function. Received: {shown(f)}.")
    packed = packed_function(function, packing)
    if isinstance(f, ConcreteFunction):
        args, kwargs = f.structured_input_signature
    elif f._input_signature and (packed["opened"] or not unknown_axes(f._input_signature)):
        args, kwargs = f._input_signature, {}
    else:
        args, kwargs = next(p.arguments for p in f._signatures.values() if p.all)
    what = f"The signature {f.name}"
    return {"function": packed, "args": encoded(list(args), what), "kwargs": encoded(kwargs, what)}


class Signature(ConcreteFunction):
    """A function of a saved model: it takes tensors by name, and returns a dict of tensors."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        return _by_name(super().__call__(*args, **kwargs))

    @property
    def structured_outputs(self) -> dict[str, Any]:
        """The specs of what it returns, by name."""
        return _by_name(super().structured_outputs)


def _by_name(returned: Any) -> dict[str, Any]:
    if isinstance(returned, Mapping):
        return dict(returned)
    parts = returned if isinstance(returned, (list, tuple)) else [returned]
    return {f"output_{i}": part for i, part in enumerate(parts)}


def _described(variable: Variable) -> dict:
    return {
        "name": variable._name,
        "trainable": variable.trainable,
        "shape": None if variable._shape is None else variable._shape.as_list(),
    }


def _packed(value: Any, packing: Packing, seen: dict[int, int], objects: list[dict]) -> Any:
    """What to write for a value of an attribute; `None` for what is not saved."""
    held = tensor_or_variable(value)
    if isinstance(held, Variable):
        return {"variable": packing.variable(held)}
    if isinstance(held, Tensor):
        return {"tensor": packing.constant(held._array)}
    if isinstance(value, Function):
        recorded = any(paths.all for paths in value._signatures.values())
        known = recorded or value._input_signature is not None
        return {"function": packed_function(value, packing)} if known else None
    if type(value) in (list, tuple, dict):
        items = value.values() if type(value) is dict else value
        parts = [_packed(item, packing, seen, objects) for item in items]
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
        found = {n: _packed(getattr(value, n), packing, seen, objects) for n in sorted(names)}
        objects[seen[id(value)]] |= {n: part for n, part in found.items() if part is not None}
    return {"object": seen[id(value)]}


def _functions_of(kind: type) -> list[str]:
    return [n for base in kind.__mro__ for n, x in vars(base).items() if isinstance(x, Function)]


def contains_saved_model(export_dir: str) -> bool:
    """Whether there is something to load in a directory."""
    return os.path.isfile(os.path.join(export_dir, _FILE))


def load(export_dir: str, tags: Any = None, options: Any = None) -> Any:
    """An object with the variables and functions that `save` wrote into a directory.

    Nothing in the files is run as code. The functions replay what was recorded, on NumPy, and can
    be differentiated. Called with other shapes than those, they raise a `ValueError`.
    """
    path = os.path.join(export_dir, _FILE)
    if not os.path.isfile(path):
        raise OSError(
            f"SavedModel file does not exist at: {path}. Expected a directory that save made."
        )
    try:
        return _loaded(*_opened(os.fspath(export_dir)))
    except (OSError, OpError):
        raise
    except Exception as error:  # in an untrusted file, any other error is damage
        raise _damaged(export_dir, f"it is damaged ({error!r})") from None


def _loaded(description: Mapping, file: TensorFile) -> Any:
    for module in pkgutil.iter_modules(ops.__path__):  # all primitives, by their names
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
    kinds = [_kind(data) for data in description["objects"]]
    objects = [kind() for kind in kinds]
    for loaded, data in zip(objects, description["objects"], strict=True):
        for name, part in data.items():
            value = _unpacked(part, objects, variables, tensors)
            if name == "__call__" and isinstance(value, Function):
                type(loaded)._call = value
            elif name.startswith("__") or hasattr(Module, name):
                raise ValueError(f"an object has an attribute {name!r}")
            elif name not in ("_name", "_name_scope"):
                setattr(loaded, name, value)
    root = objects[0]
    root.signatures = {
        name: _unpacked_signature(data, variables, tensors)
        for name, data in description["signatures"].items()
    }
    return root


def _sizes(data: list) -> list[int | None]:
    return [None if size is None else integer(size) for size in data]


def _unpacked_signature(data: Mapping, variables: list, tensors: Mapping) -> Signature:
    function = unpacked_function(data["function"], variables, tensors)
    args, kwargs = decoded(data["args"]), decoded(data["kwargs"])
    concrete = function.get_concrete_function(*args, **kwargs)
    return Signature(function, tuple(args), kwargs, concrete._trace, concrete._others)


def _kind(data: Mapping) -> type:
    """A class for one loaded object, so that it can be called if the saved one could."""
    methods = {"__call__": lambda self, *a, **k: type(self)._call(*a, **k)}
    return type("Loaded", (Module,), methods if "__call__" in data else {})


def _unpacked(part: Any, objects: list, variables: list, tensors: Mapping) -> Any:
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
            return unpacked_function(value, variables, tensors)
        case "object":
            return item(objects, value)
    parts = [_unpacked(item, objects, variables, tensors) for item in value]
    if kind == "dict":
        return dict(zip(part["keys"], parts, strict=True))
    return {"list": list, "tuple": tuple}[kind](parts)
