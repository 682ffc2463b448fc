"""Generates `src/retrograde/_api/tensorflow_names.txt`: TensorFlow's public names, by module.

    python parity/make_names.py

Run it with a Python that has TensorFlow. The names inside `tf.keras`, `tf.lite` and `tf.compat` are
not listed.
"""

from __future__ import annotations

import pathlib
import textwrap
import types

FILE = pathlib.Path(__file__).parents[1] / "src" / "retrograde" / "_api" / "tensorflow_names.txt"
CLOSED = ("tf.keras", "tf.lite", "tf.compat.v1", "tf.compat.v2")
PRIVATE = ("tf.python", "tf.tools", "tf.core", "tf.compiler", "tf.security", "tf.dtensor")


def names_of(module: types.ModuleType, path: str) -> dict[str, list[str]]:
    """Returns the public names of a module and its submodules, whose names end with a dot."""
    names: dict[str, list[str]] = {path: []}
    for name in sorted({*dir(module), *getattr(module, "__all__", ())}):
        full = f"{path}.{name}"
        if name.startswith("_") or full in PRIVATE or not hasattr(module, name):
            continue
        value = getattr(module, name)
        if not isinstance(value, types.ModuleType):
            names[path].append(name)
        elif "tensorflow" in value.__name__ or value.__name__.startswith("keras"):
            names[path].append(f"{name}.")
            names |= {full: []} if full in CLOSED else names_of(value, full)
    return names


def text(names: dict[str, list[str]]) -> str:
    """Formats the names: each module on a line, its names indented below it."""
    lines = []
    for path in sorted(names):
        lines.append(path)
        lines += textwrap.wrap(
            " ".join(names[path]), 98, initial_indent="  ", subsequent_indent="  "
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    import tensorflow

    FILE.write_text(text(names_of(tensorflow, "tf")))
