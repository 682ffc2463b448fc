"""A compiled function leaves NumPy's global random state as it is."""

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
drawn = np.random.random()
np.random.seed(3)
assert drawn == np.random.random()
"""


def test_the_import_of_jax_draws_no_numbers_from_numpy():
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 0, found.stderr
