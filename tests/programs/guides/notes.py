"""Records the values and errors of the programs in this folder, for comparison."""

import contextlib
import json
import pathlib
import sys

import tensorflow as tf

_noted = {}


def note(**values):
    """Prints and records values by name; a name can be used only once."""
    for name, value in values.items():
        if name in _noted:
            raise ValueError(f"{name} is already recorded.")
        _noted[name] = to_json(value)
        print(f"{name}: {_noted[name]}")


@contextlib.contextmanager
def expect_error(name, *errors):
    """Checks that the block raises one of `errors`, and records the name of the first."""
    try:
        yield
    except errors as error:
        print(f"    {type(error).__name__}: {str(error).splitlines()[0]}")
        note(**{name: f"raises {errors[0].__name__}"})
    else:
        raise AssertionError(f"{name}: expected one of {errors}, but nothing was raised.")


def save_notes():
    """Writes the recorded values to the file after `--numbers`, if there is one."""
    if "--numbers" in sys.argv:
        file = pathlib.Path(sys.argv[sys.argv.index("--numbers") + 1])
        file.write_text(json.dumps(_noted))


def to_json(value):
    """Converts a value to JSON types."""
    if isinstance(value, dict):
        return {str(key): to_json(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, tf.TensorShape):
        return [to_json(part) for part in value]
    if isinstance(value, tf.IndexedSlices):
        return to_json(tf.convert_to_tensor(value))
    if isinstance(value, tf.SparseTensor):
        return to_json({"indices": value.indices, "values": value.values})
    if isinstance(value, tf.RaggedTensor):
        return to_json(value.to_list())
    if isinstance(value, tf.DType):
        return value.name
    if isinstance(value, tf.TensorShape):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, complex):
        return [value.real, value.imag]
    if hasattr(value, "numpy"):
        return to_json(value.numpy())
    if hasattr(value, "tolist"):
        return to_json(value.tolist())
    return value
