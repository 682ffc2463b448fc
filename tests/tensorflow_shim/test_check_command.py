"""Tests `retrograde check`."""

import ast
import json

import pytest

from retrograde.tensorflow_shim.command_line import main
from retrograde.tensorflow_shim.compatibility import check, uses_in

PROGRAM = """\
import tensorflow as tf
import tensorflow_hub as hub
from tensorflow.python.framework import ops
import numpy as np

raise RuntimeError("never run")

def lookup(keys):
    table = tf.queue.FIFOQueue(keys, -1)
    return tf.math.log(tf.log(table))

tf.data.Dataset.from_nothing()
tf.data.Dataset.from_tensor_slices([1])
tf.mlir.experimental(1)
"""

FINDINGS = [
    "2: tensorflow_hub requires TensorFlow itself. Keras has pretrained models in "
    "keras.applications and keras_hub.",
    "3: tf.python is private to TensorFlow. Use the public name of the object.",
    "9: tf.queue is in TensorFlow but not supported by retrograde. Use Python's queue module or "
    "tf.data.",
    "10: tf.log is part of TensorFlow 1. Use tf.math.log.",
    "12: tf.data.Dataset.from_nothing is not in retrograde.",
    "14: tf.mlir is in TensorFlow but not supported by retrograde. It is part of TensorFlow's "
    "runtime.",
]


def paths_in(program):
    return [use.paths for use in uses_in(ast.parse(program))]


def test_unsupported_names_are_listed_with_file_and_line(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)

    assert main(["check", str(path)]) == 1
    *findings, summary = capsys.readouterr().out.splitlines()
    assert findings == [f"{path}:{finding}" for finding in FINDINGS]
    assert summary == "9 TensorFlow names in 1 file: 6 not supported"


def test_a_folder_is_checked_with_its_notebooks(tmp_path, capsys):
    (tmp_path / "good.py").write_text("import tensorflow as tf\ntf.reduce_sum(tf.float32.max)\n")
    cells = ["!pip install tensorflow\nimport tensorflow as tf", "x = 1\ntf.queue.FIFOQueue(x)"]
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "book.ipynb").write_text(
        json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]})
    )
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "bad.py").write_text("import tensorflow_text")
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()  # a virtual environment
    (tmp_path / "env" / "bad.py").write_text("import tensorflow_text")

    assert main(["check", str(tmp_path)]) == 1
    finding, summary = capsys.readouterr().out.splitlines()
    assert finding == (
        f"{tmp_path / 'sub' / 'book.ipynb'}, cell 2, line 2: tf.queue is in TensorFlow but "
        "not supported by retrograde. Use Python's queue module or tf.data."
    )
    assert summary == "4 TensorFlow names in 2 files: 1 not supported"


def test_supported_names_only(tmp_path, capsys):
    path = tmp_path / "good.py"
    path.write_text("import tensorflow as tf\nwith tf.GradientTape() as tape: pass\n")

    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == "2 TensorFlow names in 1 file: all supported\n"


def test_invalid_and_missing_files(tmp_path, capsys):
    path = tmp_path / "broken.py"
    path.write_text("import tensorflow\nx = = 1\n")

    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out == (
        f"{path}:2: cannot parse this as Python: invalid syntax\n"
        "0 TensorFlow names in 1 file: all supported, 1 unreadable part\n"
    )
    assert main(["check", str(tmp_path / "none.py")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_refused_options_and_backends_are_listed(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text(
        "import os\n"
        'os.environ["KERAS_BACKEND"] = "jax"\n'
        "import keras\n"
        "keras.Input((3,), sparse=True)\n"
        "keras.Input((3,), sparse=False)\n"
        "keras.layers.JaxLayer(print)\n"
        'os.environ["KERAS_BACKEND"] = "tensorflow"\n'
    )

    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[:-1] == [
        f"{path}:2: KERAS_BACKEND=jax selects another backend, but in a program that runs on "
        "retrograde in place of TensorFlow it must be 'tensorflow' or unset.",
        f"{path}:4: tf.keras.Input(sparse=True): Keras layers do not support sparse inputs on "
        "retrograde. Pass dense tensors.",
        f"{path}:6: tf.keras.layers.JaxLayer: It requires another Keras backend.",
    ]


def test_a_folder_without_programs_is_an_error(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("import tensorflow")

    assert main(["check", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"retrograde: {tmp_path} contains no Python files or notebooks\n"
    )


@pytest.mark.parametrize(
    ("program", "paths"),
    [
        ("import tensorflow.keras.layers as L\nL.A", ["tf.keras.layers", "tf.keras.layers.A"]),
        ("import tensorflow.math\ntensorflow.nn.relu", ["tf.math", "tf.nn.relu"]),
        ("from tensorflow import keras as k\nk.Model", ["tf.keras", "tf.keras.Model"]),
        ("import keras\nkeras.ops.add", ["tf.keras", "tf.keras.ops.add"]),
        ("import tensorflow as tf\nm = tf.math\nm.exp", ["tf", "tf.math", "tf.math.exp"]),
        ("from tensorflow import *", ["tf"]),
        ("from . import tensorflow\ntensorflow.x", []),
        ("import tensorflow as tf\ndef f(tf): return tf.x\ntf.y", ["tf", "tf.y"]),
        ("import tensorflow as tf\ndef f():\n  tf = 1\n  tf.x\ntf.y", ["tf", "tf.y"]),
        ("import tensorflow as tf\n[tf.x for tf in tf.y]", ["tf"]),
        ("import tensorflow as tf\ntf = 1\ntf.x", ["tf"]),
        ("import tensorflow as tf\ndef f(a: tf.Tensor = tf.x) -> tf.y: tf.z",
         ["tf", "tf.x", "tf.Tensor", "tf.y", "tf.z"]),
        ("import tensorflow as tf\nclass A(tf.Module):\n  tf.x\n  @tf.f\n  def g(self): tf.z",
         ["tf", "tf.Module", "tf.x", "tf.f", "tf.z"]),
        ("import tensorflow as tf\nf(tf.a(tf.b).c.d)", ["tf", "tf.a", "tf.b"]),
    ],
)  # fmt: skip
def test_names_are_resolved(program, paths):
    assert paths_in(program) == [(path,) for path in paths]


CONDITIONAL_IMPORT = """\
try:
    import tensorflow.compat.v1 as tf
except ImportError:
    import tensorflow as tf
tf.exp(1.0)
"""


def test_a_name_imported_in_two_ways_is_supported_if_one_is(tmp_path):
    path = tmp_path / "old.py"
    path.write_text(CONDITIONAL_IMPORT)

    assert check([str(path)]).findings == []
