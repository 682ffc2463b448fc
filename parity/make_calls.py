"""Generates `calls.json` from a list of TensorFlow's public callables.

    python parity/make_calls.py RECORD

The list maps namespaces to lists of `{"name": ..., "kind": ..., "call": ...}`. Functions are kept,
each with its sample call, if it has one.
"""

from __future__ import annotations

import json
import pathlib
import sys

# The numerical namespaces. The others have datasets, devices, files and so on.
NAMESPACES = (
    "tf",
    "tf.math",
    "tf.math.special",
    "tf.linalg",
    "tf.linalg.experimental",
    "tf.nn",
    "tf.nn.experimental",
    "tf.random",
    "tf.random.experimental",
    "tf.signal",
    "tf.image",
    "tf.sparse",
    "tf.bitwise",
    "tf.debugging",
    "tf.dtypes",
)


def main(record: str) -> None:
    """Writes `calls.json`, with one line for each function, by namespace."""
    namespaces = json.loads(pathlib.Path(record).read_text())["namespaces"]
    blocks = []
    for namespace in NAMESPACES:
        functions = [entry for entry in namespaces[namespace] if entry["kind"] == "function"]
        lines = [f"  {json.dumps(f['name'])}: {json.dumps(f.get('call'))}" for f in functions]
        blocks.append(f"{json.dumps(namespace)}: {{\n" + ",\n".join(lines) + "\n}")
    path = pathlib.Path(__file__).with_name("calls.json")
    path.write_text("{\n" + ",\n".join(blocks) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
