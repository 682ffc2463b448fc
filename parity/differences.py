"""Lists the intentional differences from TensorFlow, by function and stage.

The tests fail if an entry does not differ in the recorded results.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Difference(NamedTuple):
    """An entry of docs/differences.md, and a pattern for the calls that it applies to.

    `pattern` is searched for in `expression precision` of a call.
    """

    title: str
    pattern: str

    def explains(self, result: dict) -> bool:
        """Returns whether it applies to the call of `result`."""
        return bool(re.search(self.pattern, f"{result['expression']} {result['precision']}"))


_WRONG = "Corrected derivatives"
_IMAGES = "**Image functions** have gradients where TensorFlow has none"
_LABELS = "Cross entropy with labels that do not sum to one"
_ALGEBRA = "**Linear algebra** has the correct gradient"
_COMPLEX = "kind='c'|complex"
_HALF = "float16$"

DIFFERENCES = {
    ("tf.py_function", "second"): Difference("`py_function` is transparent to tapes", ""),
    ("tf.reduce_prod", "second"): Difference(_WRONG, _COMPLEX),
    ("tf.math.cumprod", "gradient"): Difference(_WRONG, f"{_COMPLEX}|hi=0"),
    ("tf.math.cumprod", "second"): Difference(_WRONG, f"{_COMPLEX}|hi=0"),
    ("tf.math.xlogy", "gradient"): Difference(_WRONG, _COMPLEX),
    ("tf.math.xlogy", "second"): Difference(_WRONG, _COMPLEX),
    ("tf.math.squared_difference", "gradient"): Difference(_WRONG, _COMPLEX),
    ("tf.math.squared_difference", "second"): Difference(_WRONG, _COMPLEX),
    ("tf.math.bessel_i1e", "second"): Difference(_WRONG, "hi=0"),
    ("tf.math.special.bessel_j1", "second"): Difference(_WRONG, "hi=0"),
    ("tf.math.special.spence", "second"): Difference(_WRONG, "hi=0"),
    ("tf.nn.moments", "second"): Difference(_WRONG, r"\[0\]\) "),
    ("tf.nn.softmax_cross_entropy_with_logits", "gradient"): Difference(_LABELS, "labels=S"),
    ("tf.nn.softmax_cross_entropy_with_logits", "second"): Difference(_LABELS, ""),
    ("tf.nn.max_pool3d", "gradient"): Difference(
        "Only the first maximum of a window gets the gradient", f"ones_like|{_HALF}"
    ),
    ("tf.nn.ctc_loss", "second"): Difference("`nn.ctc_loss` can be differentiated twice", ""),
    ("tf.image.hsv_to_rgb", "gradient"): Difference(_IMAGES, ""),
    ("tf.image.resize", "gradient"): Difference(_IMAGES, f"'bicubic'.*{_HALF}"),
    ("tf.image.rgb_to_hsv", "gradient"): Difference(_WRONG, _HALF),
    ("tf.image.rgb_to_hsv", "second"): Difference(_WRONG, _HALF),
    ("tf.linalg.det", "gradient"): Difference(_ALGEBRA, _COMPLEX),
    ("tf.linalg.det", "second"): Difference(_ALGEBRA, _COMPLEX),
    ("tf.linalg.sqrtm", "gradient"): Difference(_ALGEBRA, _COMPLEX),
    ("tf.linalg.sqrtm", "second"): Difference(_ALGEBRA, _COMPLEX),
    ("tf.linalg.eigh_tridiagonal", "gradient"): Difference(_ALGEBRA, ""),
    ("tf.linalg.eigh_tridiagonal", "second"): Difference(_ALGEBRA, ""),
}
