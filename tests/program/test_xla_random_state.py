"""Tests that compiling a function does not change NumPy's global random state."""

import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
import retrograde as tf

np.random.seed(3)
assert "jax" not in sys.modules
tf.function(lambda x: x + 1.0, jit_compile=True)(tf.constant(1.0))
assert "jax" in sys.modules
first = np.random.random()
np.random.seed(3)
assert first == np.random.random()
"""


def test_importing_jax_does_not_change_the_random_state_of_numpy():
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120
    )
    assert process.returncode == 0, process.stderr
