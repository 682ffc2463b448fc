"""Functions that need SciPy, in a process without SciPy."""

import subprocess
import sys

import pytest

from retrograde.values.scipy_import import import_scipy

PROGRAM = """
import sys
sys.modules["scipy"] = None  # as if it were not installed
import numpy as np
import retrograde as tf

one, matrix = tf.constant([1.5]), tf.constant([[2.0, 1.0], [1.0, 3.0]])
x = tf.Variable([1.0, 2.0])
calls = {
    "lgamma": lambda: tf.math.lgamma(one),
    "erf": lambda: tf.math.erf(one),
    "erfinv": lambda: tf.math.erfinv([0.5]),
    "ndtri": lambda: tf.math.ndtri([0.5]),
    "digamma": lambda: tf.math.digamma(one),
    "igamma": lambda: tf.math.igamma(one, one),
    "betainc": lambda: tf.math.betainc(one, one, [0.5]),
    "zeta": lambda: tf.math.zeta(one, one),
    "bessel_i0": lambda: tf.math.bessel_i0(one),
    "expint": lambda: tf.math.special.expint(one),
    "lu": lambda: tf.linalg.lu(tf.eye(9)),
    "logm": lambda: tf.linalg.logm(tf.cast(matrix, tf.complex64)),
    "sqrtm": lambda: tf.linalg.sqrtm(matrix),
    "triangular_solve": lambda: tf.linalg.triangular_solve(matrix, matrix),
    "eigh_tridiagonal": lambda: tf.linalg.eigh_tridiagonal([1.0, 2.0], [1.0]),
    "a Fourier transform": lambda: tf.signal.rfft(one),
    "sobol_sample": lambda: tf.math.sobol_sample(2, 3),
    "optimize.minimize": lambda: tf.optimize.minimize(lambda: tf.reduce_sum(x * x), x),
    "optimize.least_squares": lambda: tf.optimize.least_squares(lambda: x, x),
}
for name, call in calls.items():
    try:
        call()
    except ModuleNotFoundError as error:
        expected = f"{name} needs SciPy, which is not installed. Install it with: pip install scipy"
        if str(error) != expected or error.name != "scipy":
            print(name, "raised", error)
    else:
        print(name, "does not need SciPy")
"""


def test_error_of_every_function_says_how_to_install_scipy():
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=120
    )

    assert result.stderr == ""
    assert result.stdout == ""


def test_other_import_errors_are_not_changed():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'scipy.nowhere'"):
        import_scipy("nowhere", "nowhere")
    assert import_scipy("special", "erf").erf(0.0) == 0.0
