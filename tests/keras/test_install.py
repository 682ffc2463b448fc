"""Keras runs on retrograde as its backend, and importing it changes nothing else."""

import os
import subprocess
import sys

import retrograde as tf
from retrograde import keras


def run(program, **environment):
    """The last line that `program` prints, or the error it ends with, by itself."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | environment,
    )
    return (result.stderr or result.stdout).strip().splitlines()[-1]


def test_the_backend_goes_by_its_own_name():
    assert keras.config.backend() == "retrograde"
    assert "KERAS_BACKEND" not in os.environ


def test_it_is_the_real_package_as_tensorflow_shows_it():
    import keras as real
    from retrograde.keras.layers import Dense

    assert keras.Model is real.Model and Dense is real.layers.Dense
    assert keras.layers.ThresholdedReLU and keras.losses.mse  # names of the older API
    assert tf.keras is keras
    assert tf.optimizers is keras.optimizers and tf.losses is keras.losses
    assert tf.metrics is keras.metrics and tf.initializers is keras.initializers


def test_modules_below_it_are_keras_own():
    import retrograde.keras.optimizers.schedules as schedules

    assert schedules is keras.optimizers.schedules
    assert schedules.__spec__.name == "keras.optimizers.schedules"


def test_importing_it_imports_no_jax():
    program = "import sys, retrograde.keras; print('jax' in sys.modules, 'scipy' in sys.modules)"

    assert run(program) == "False False"


def test_importing_it_draws_no_random_numbers_of_a_program_that_has_chosen_a_seed():
    program = (
        "import random; import numpy as np; import retrograde as tf\n"
        "def drawn(): return random.random(), np.random.rand(), float(tf.random.uniform(()))\n"
        "def seed(): random.seed(1); np.random.seed(1); tf.random.set_seed(1)\n"
        "seed(); drawn(); expected = drawn()\n"
        "seed(); drawn(); tf.keras.layers; print(drawn() == expected)"
    )

    assert run(program) == "True"


def test_jax_can_be_imported_afterwards():
    assert run("import retrograde.keras, jax; print(jax.numpy.add(1, 2))") == "3"


def test_the_backend_can_be_imported_first():
    program = "import retrograde.keras_backend.ops.core as core; print(core.__name__)"

    assert run(program) == "retrograde.keras_backend.ops.core"


def test_keras_imported_before_on_another_backend_is_an_error():
    program = "import keras, retrograde; retrograde.keras"

    assert run(program, KERAS_BACKEND="jax") == (
        "ImportError: Keras was imported already on the backend 'jax', and cannot change it. "
        "Import retrograde.keras before keras, and before packages that import keras."
    )


def test_another_backend_in_the_environment_is_an_error():
    assert run("import retrograde.keras", KERAS_BACKEND="tensorflow") == (
        "ImportError: The environment variable KERAS_BACKEND asks for 'tensorflow'; "
        "retrograde.keras is Keras on retrograde. Unset it, or set it to 'retrograde'."
    )
    assert run("import retrograde.keras; print(1)", KERAS_BACKEND="retrograde") == "1"


def test_a_missing_keras_is_named_with_what_to_do():
    program = "import sys; sys.modules['keras'] = None; import retrograde.keras"

    assert run(program) == (
        "ImportError: retrograde.keras needs the package keras: pip install 'retrograde[keras]'."
    )


def test_layers_that_work_on_several_backends_find_this_one():
    from keras.src.utils.backend_utils import DynamicBackend

    backend = DynamicBackend()
    assert backend.name == "retrograde"
    assert backend.convert_to_tensor(1.0).dtype == tf.float32
    backend.set_backend("tensorflow")
    backend.set_backend("retrograde")
    assert backend.core.convert_to_tensor is backend.convert_to_tensor


def test_64_bits_stay_as_in_keras_on_tensorflow():
    meet = keras.backend.result_type

    assert meet("float64", "float32") == meet("float64", float) == meet("float64") == "float64"
    assert meet("int64", int) == meet("int64", "int32") == "int64"
    assert meet("complex64", "float64") == "complex128"
    assert meet("uint32", "int32") == "int32" and meet("int64", "uint64") == "float32"
    both = [keras.KerasTensor((2,), "float64")] * 2
    assert keras.ops.add(*both).dtype == "float64"


def test_layers_of_the_older_api_compute_without_tensorflow():
    x = tf.ones([2, 6, 5, 3])

    assert keras.layers.ThresholdedReLU(2.0)(x).shape == x.shape
    assert keras.layers.RandomHeight((0.5, 0.5))(x, training=True).shape == (2, 9, 5, 3)
    assert keras.layers.RandomWidth((0.4, 0.4))(x, training=True).shape == (2, 6, 7, 3)
    assert keras.layers.AlphaDropout(0.5)(x, training=True).shape == x.shape
