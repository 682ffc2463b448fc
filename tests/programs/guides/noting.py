"""What the programs of this folder share: they note values, and errors, for others to compare."""

import contextlib
import json
import pathlib
import sys

import tensorflow as tf

_noted = {}


def note(**values):
    """Prints values under their names and keeps them; a name can be used once."""
    for name, value in values.items():
        if name in _noted:
            raise ValueError(f"{name} is noted already.")
        _noted[name] = plain(value)
        print(f"{name}: {_noted[name]}")


@contextlib.contextmanager
def refused(name, *kinds):
    """A block that must raise one of `kinds`; the name of the first is noted."""
    try:
        yield
    except kinds as error:
        print(f"    {type(error).__name__}: {str(error).splitlines()[0]}")
        note(**{name: f"raises {kinds[0].__name__}"})
    else:
        raise AssertionError(f"{name}: nothing was raised, but {kinds} was expected.")


def save_notes():
    """Writes what was noted to the file after `--numbers`, if there is one."""
    if "--numbers" in sys.argv:
        file = pathlib.Path(sys.argv[sys.argv.index("--numbers") + 1])
        file.write_text(json.dumps(_noted))


def plain(value):
    """A value in the words of JSON."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, tf.TensorShape):
        return [plain(part) for part in value]
    if isinstance(value, tf.IndexedSlices):
        return plain(tf.convert_to_tensor(value))
    if isinstance(value, tf.SparseTensor):
        return plain({"indices": value.indices, "values": value.values})
    if isinstance(value, tf.RaggedTensor):
        return plain(value.to_list())
    if isinstance(value, tf.DType):
        return value.name
    if isinstance(value, tf.TensorShape):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, complex):
        return [value.real, value.imag]
    if hasattr(value, "numpy"):
        return plain(value.numpy())
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value
