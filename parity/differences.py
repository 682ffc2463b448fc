"""What differs from TensorFlow on purpose, by function and stage.

Each is given by the words under which docs/differences.md speaks of it. One that no longer differs
has to come off the list.
"""

from __future__ import annotations

_WRONG_THERE = "Derivatives that TensorFlow gets wrong are right"

DIFFERENCES = {
    ("tf.reduce_prod", "second"): _WRONG_THERE,
    ("tf.math.cumprod", "gradient"): _WRONG_THERE,
    ("tf.math.cumprod", "second"): _WRONG_THERE,
    ("tf.math.xlogy", "gradient"): _WRONG_THERE,
    ("tf.math.xlogy", "second"): _WRONG_THERE,
    ("tf.py_function", "second"): "`py_function` is transparent to tapes",
    ("tf.nn.moments", "second"): _WRONG_THERE,
    ("tf.nn.softmax_cross_entropy_with_logits", "gradient"): (
        "Cross entropy with labels that do not sum to one"
    ),
    ("tf.nn.softmax_cross_entropy_with_logits", "second"): (
        "Cross entropy with labels that do not sum to one"
    ),
    ("tf.image.hsv_to_rgb", "gradient"): "More derivatives exist",
}
