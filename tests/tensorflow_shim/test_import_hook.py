"""Tests the import hook for `tensorflow`, and messages about unsupported names."""

import importlib
import re
import subprocess
import sys
import types

import pytest

import retrograde
from retrograde._api import missing
from retrograde.tensorflow_shim.import_hook import install_as_tensorflow, retrograde_as_tensorflow


@pytest.fixture
def tensorflow():
    with retrograde_as_tensorflow():
        yield importlib.import_module("tensorflow")


def test_tensorflow_has_the_names_of_retrograde(tensorflow):
    assert tensorflow.GradientTape is retrograde.GradientTape
    assert tensorflow.math is retrograde.math
    assert importlib.import_module("tensorflow.math") is retrograde.math
    assert importlib.import_module("tensorflow.config.experimental").__name__ == (
        "retrograde.config.experimental"
    )
    assert {"Variable", "math", "__version__"} <= set(dir(tensorflow))


@pytest.mark.usefixtures("tensorflow")
def test_imports_do_not_change_the_modules():
    importlib.import_module("tensorflow.linalg")

    assert retrograde.linalg.__name__ == retrograde.linalg.__spec__.name == "retrograde.linalg"
    assert retrograde.__name__ == "retrograde"


def test_version_matches_tensorflow(tensorflow):
    assert tensorflow.__version__ == tensorflow.version.VERSION == "2.21.0"
    assert retrograde.__version__ != tensorflow.__version__


@pytest.mark.usefixtures("tensorflow")
def test_star_import_has_the_public_names():
    scope = {}
    exec("from tensorflow import *", scope)

    assert scope["Variable"] is retrograde.Variable
    assert "__version__" not in scope


@pytest.mark.usefixtures("tensorflow")
@pytest.mark.parametrize("path", sorted(missing.tensorflow_names()))
def test_every_public_module_is_imported_or_explained(path):
    name = path.replace("tf", "tensorflow", 1)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        assert "is in TensorFlow but not" in str(error)
    else:
        assert isinstance(module, types.ModuleType)
        assert module.__name__.startswith(("retrograde", "keras", "tensorflow"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "tensorflow.python.ops",
            "No module named 'tensorflow.python'. tf.python is private to TensorFlow. Use the "
            "public name of the object.",
        ),
        (
            "tensorflow.compat.v1",
            "No module named 'tensorflow.compat.v1'. tf.compat.v1 is in TensorFlow but not "
            "supported by retrograde. It is the graph and session API of TensorFlow 1. Port the "
            "program to TensorFlow 2: replace logging with tf.get_logger() and set_random_seed "
            "with tf.random.set_seed, and remove sessions and their configuration.",
        ),
        ("tensorflow.ops", "No module named 'tensorflow.ops'"),
        ("tensorflow.math.elementary", "No module named 'tensorflow.math.elementary'"),
        (
            "tensorflow_probability",
            "No module named 'tensorflow_probability'. tensorflow_probability requires TensorFlow "
            "itself. Sample with tf.random, and compute densities with tf.math.",
        ),
        (
            "tensorflow_graphics.geometry",
            "No module named 'tensorflow_graphics'. tensorflow_graphics requires TensorFlow "
            "itself.",
        ),
    ],
)
@pytest.mark.usefixtures("tensorflow")
def test_import_error_messages(name, message):
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(name)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        (
            retrograde,
            "queue",
            "module 'retrograde' has no attribute 'queue'. tf.queue is in TensorFlow but not "
            "supported by retrograde. Use Python's queue module or tf.data.",
        ),
        (
            retrograde,
            "Session",
            "module 'retrograde' has no attribute 'Session'. tf.Session is part of "
            "TensorFlow 1. Remove it: operations run eagerly.",
        ),
        (
            retrograde.linalg,
            "LinearOperatorDiagonal",
            "module 'retrograde.linalg' has no attribute 'LinearOperatorDiagonal'",
        ),
        (
            retrograde.bitwise,
            "bitwise_nand",
            "module 'retrograde.bitwise' has no attribute 'bitwise_nand'",
        ),
        (retrograde, "_private", "module 'retrograde' has no attribute '_private'"),
    ],
)
def test_attribute_error_messages(module, name, message):
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert str(caught.value) == message


@pytest.mark.parametrize("path", sorted({*missing.REASONS, *missing.TENSORFLOW_1}))
def test_explained_names_are_not_in_retrograde(path):
    *parents, name = path.split(".")[1:]
    module = retrograde
    for part in parents:
        module = getattr(module, part, None)

    assert not hasattr(module, name)


@pytest.mark.parametrize("path", sorted(missing.tensorflow_names()))
def test_every_public_name_exists_or_says_what_to_use_instead(path):
    if path.startswith(("tf.keras", "tf.raw_ops", "tf.losses", "tf.metrics", "tf.optimizers")):
        return  # Keras's own names; raw_ops has one explanation
    module = retrograde
    for part in path.split(".")[1:]:
        module = getattr(module, part, None)
    for name in missing.tensorflow_names()[path]:
        if not hasattr(module, name):
            message = missing.message_for(f"{path}.{name}")
            assert re.fullmatch(
                r"tf\S+ is in TensorFlow but not supported by retrograde\. .+\.", message
            )


def test_tensorflow_datasets_is_the_installed_package(tmp_path, monkeypatch):
    (tmp_path / "tensorflow_datasets.py").write_text(
        "import tensorflow as tf\ndata = list(tf.data.Dataset.range(2).as_numpy_iterator())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with retrograde_as_tensorflow():
        package = importlib.import_module("tensorflow_datasets")
    assert package.data == [0, 1]
    sys.modules.pop("tensorflow_datasets")


@pytest.mark.parametrize("path", sorted(missing.REASONS))
def test_explained_names_are_in_tensorflow(path):
    assert missing.is_tensorflow_name(path) or path == "tf.estimator"


def test_context_manager_restores_the_import_system():
    with retrograde_as_tensorflow():
        importlib.import_module("tensorflow.math")
    before = list(sys.meta_path)
    with retrograde_as_tensorflow():
        install_as_tensorflow()  # a second time changes nothing
        assert len(sys.meta_path) == len(before) + 1
        importlib.import_module("tensorflow")

    assert sys.meta_path == before
    assert not [name for name in sys.modules if name.partition(".")[0] == "tensorflow"]


def test_the_real_tensorflow_is_not_replaced(monkeypatch):
    real = types.ModuleType("tensorflow")
    real.__version__ = "2.20.0"
    monkeypatch.setitem(sys.modules, "tensorflow", real)

    with pytest.raises(RuntimeError) as caught:
        install_as_tensorflow()
    assert str(caught.value) == (
        "TensorFlow 2.20.0 is already imported in this process, so retrograde cannot replace it. "
        "Call retrograde.install_as_tensorflow() in a new process, before anything imports "
        "tensorflow."
    )


def test_install_as_tensorflow():
    program = (
        "import retrograde; retrograde.install_as_tensorflow(); import tensorflow as tf; "
        "from tensorflow.math import exp; print(exp(0.0).numpy(), tf.__name__)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert result.stdout == "1.0 tensorflow\n"


def test_keras_uses_the_retrograde_backend():
    program = (
        "import retrograde; retrograde.install_as_tensorflow(); {}; import keras, sys; "
        "import tensorflow as tf; from tensorflow.keras import layers; "
        "import tensorflow.keras.backend as K; from tensorflow.keras.layers import Dense; "
        "print(keras.backend.backend(), tf.keras.layers is layers, Dense is keras.layers.Dense, "
        "tf.keras is retrograde.keras, tf.optimizers is tf.keras.optimizers)"
    )
    for first in ("import keras", "import tensorflow.keras"):
        result = subprocess.run(
            [sys.executable, "-c", program.format(first)],
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )

        assert result.stdout == "tensorflow True True True True\n"
