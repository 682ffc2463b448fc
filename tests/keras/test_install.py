"""Importing Keras with the retrograde backend."""

import os
import subprocess
import sys

import retrograde as tf
from retrograde import keras


def run(program, **environment):
    """Runs `program` in a subprocess. Returns the last line of stderr, or of stdout if empty."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | environment,
    )
    return (result.stderr or result.stdout).strip().splitlines()[-1]


def test_backend_name_is_retrograde():
    assert keras.config.backend() == "retrograde"
    assert "KERAS_BACKEND" not in os.environ


def test_keras_is_the_real_package():
    import keras as real
    from retrograde.keras.layers import Dense

    assert keras.Model is real.Model and Dense is real.layers.Dense
    assert keras.layers.ThresholdedReLU and keras.losses.mse  # names of the legacy API
    assert tf.keras is keras
    assert tf.optimizers is keras.optimizers and tf.losses is keras.losses
    assert tf.metrics is keras.metrics and tf.initializers is keras.initializers


def test_submodules_are_keras_modules():
    import retrograde.keras.optimizers.schedules as schedules

    assert schedules is keras.optimizers.schedules
    assert schedules.__spec__.name == "keras.optimizers.schedules"


def test_import_does_not_import_jax_or_scipy():
    program = "import sys, retrograde.keras; print('jax' in sys.modules, 'scipy' in sys.modules)"

    assert run(program) == "False False"


def test_import_preserves_random_state():
    program = (
        "import random; import numpy as np; import retrograde as tf\n"
        "def draw(): return random.random(), np.random.rand(), float(tf.random.uniform(()))\n"
        "def seed(): random.seed(1); np.random.seed(1); tf.random.set_seed(1)\n"
        "seed(); draw(); expected = draw()\n"
        "seed(); draw(); tf.keras.layers; print(draw() == expected)"
    )

    assert run(program) == "True"


def test_jax_can_be_imported_after_keras():
    assert run("import retrograde.keras, jax; print(jax.numpy.add(1, 2))") == "3"


def test_backend_can_be_imported_before_keras():
    program = "import retrograde.keras_backend.ops.core as core; print(core.__name__)"

    assert run(program) == "retrograde.keras_backend.ops.core"


def test_keras_already_imported_with_another_backend_raises():
    program = "import keras, retrograde; retrograde.keras"

    assert run(program, KERAS_BACKEND="jax") == (
        "ImportError: Keras was already imported with the backend 'jax' and cannot change its "
        "backend. Import retrograde.keras before keras and before packages that import keras."
    )


def test_another_backend_in_the_environment_raises():
    assert run("import retrograde.keras", KERAS_BACKEND="tensorflow") == (
        "ImportError: The environment variable KERAS_BACKEND is 'tensorflow', but "
        "retrograde.keras uses the backend 'retrograde'. Unset it or set it to 'retrograde'."
    )
    assert run("import retrograde.keras; print(1)", KERAS_BACKEND="retrograde") == "1"


def test_keras_imported_after_retrograde_has_its_backend(tmp_path):
    program = "import retrograde, keras; print(keras.config.backend())"

    assert run(program, KERAS_HOME=str(tmp_path)) == "retrograde"
    assert run(program, KERAS_BACKEND="retrograde") == "retrograde"
    assert run(program, KERAS_BACKEND="jax") == "jax"
    assert run(program, KERAS_BACKEND="tensorflow") == (
        "ImportError: The environment variable KERAS_BACKEND is 'tensorflow', but "
        "retrograde.keras uses the backend 'retrograde'. Unset it or set it to 'retrograde'."
    )
    (tmp_path / "keras.json").write_text('{"backend": "jax"}')
    assert run(program, KERAS_HOME=str(tmp_path)) == "jax"
    (tmp_path / "keras.json").write_text("not JSON")
    assert run(program + "; import keras.layers", KERAS_HOME=str(tmp_path)) == "retrograde"


def test_keras_imported_after_retrograde_keeps_tensorflow_if_it_is_installed(tmp_path):
    (tmp_path / "tensorflow.py").write_text("raise ImportError('the real TensorFlow')")
    program = "import retrograde, keras"

    error = run(program, PYTHONPATH=str(tmp_path), KERAS_HOME=str(tmp_path))
    assert error == "ImportError: the real TensorFlow"


def test_programs_for_tensorflow_can_select_its_backend():
    program = (
        "import retrograde; retrograde.install_as_tensorflow()\n"
        "import os; os.environ['KERAS_BACKEND'] = {!r}\n"
        "import keras, tensorflow as tf\n"
        "print(keras.config.backend(), keras.backend.backend(), tf.keras.backend.backend())\n"
    )

    assert run(program.format("tensorflow")) == "tensorflow tensorflow tensorflow"
    assert run(program.format("")) == "tensorflow tensorflow tensorflow"
    for name in ("jax", "torch"):
        assert run(program.format(name)) == (
            f"ImportError: KERAS_BACKEND is {name!r}, but in a program that runs on retrograde in "
            "place of TensorFlow it must be 'tensorflow' or unset."
        )


def test_missing_keras_raises_with_install_command():
    program = "import sys; sys.modules['keras'] = None; import retrograde.keras"

    assert run(program) == (
        "ImportError: retrograde.keras needs the package keras: pip install 'retrograde[keras]'."
    )


def test_dynamic_backend_supports_retrograde():
    from keras.src.utils.backend_utils import DynamicBackend

    backend = DynamicBackend()
    assert backend.name == "retrograde"
    assert backend.convert_to_tensor(1.0).dtype == tf.float32
    backend.set_backend("tensorflow")
    backend.set_backend("retrograde")
    assert backend.core.convert_to_tensor is backend.convert_to_tensor


def test_type_promotion_keeps_64_bits_as_on_tensorflow():
    result_type = keras.backend.result_type

    assert (
        result_type("float64", "float32")
        == result_type("float64", float)
        == result_type("float64")
        == "float64"
    )
    assert result_type("int64", int) == result_type("int64", "int32") == "int64"
    assert result_type("complex64", "float64") == "complex128"
    assert result_type("uint32", "int32") == "int32" and result_type("int64", "uint64") == "float32"
    inputs = [keras.KerasTensor((2,), "float64")] * 2
    assert keras.ops.add(*inputs).dtype == "float64"


def test_legacy_layers_work_without_tensorflow():
    x = tf.ones([2, 6, 5, 3])

    assert keras.layers.ThresholdedReLU(2.0)(x).shape == x.shape
    assert keras.layers.RandomHeight((0.5, 0.5))(x, training=True).shape == (2, 9, 5, 3)
    assert keras.layers.RandomWidth((0.4, 0.4))(x, training=True).shape == (2, 6, 7, 3)
    assert keras.layers.AlphaDropout(0.5)(x, training=True).shape == x.shape
