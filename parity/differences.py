"""What differs from TensorFlow on purpose, by function and stage.

Each is given by the words under which docs/differences.md speaks of it. One that no longer differs
has to come off the list.
"""

from __future__ import annotations

_WRONG_THERE = "Derivatives that TensorFlow gets wrong are right"

_LINEAR_ALGEBRA = "**Linear algebra** has the right gradient"
_SIGNS = "**Signs of vectors.**"

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
    ("tf.nn.ctc_loss", "second"): "`nn.ctc_loss` can be differentiated twice",
    ("tf.image.hsv_to_rgb", "gradient"): "More derivatives exist",
    ("tf.linalg.det", "gradient"): _LINEAR_ALGEBRA,
    ("tf.linalg.det", "second"): _LINEAR_ALGEBRA,
    ("tf.linalg.eigh_tridiagonal", "gradient"): _LINEAR_ALGEBRA,
    ("tf.linalg.eigh_tridiagonal", "second"): _LINEAR_ALGEBRA,
    ("tf.eig", "value"): _SIGNS,
    ("tf.eig", "gradient"): _SIGNS,
    ("tf.eig", "second"): _SIGNS,
    ("tf.linalg.eigh", "value"): _SIGNS,
    ("tf.linalg.eigh", "gradient"): _SIGNS,
    ("tf.linalg.eigh", "second"): _SIGNS,
    ("tf.linalg.svd", "value"): _SIGNS,
    ("tf.linalg.svd", "gradient"): _SIGNS,
    ("tf.linalg.svd", "second"): _SIGNS,
    ("tf.linalg.experimental.conjugate_gradient", "value"): "**Linear operators.**",
    ("tf.linalg.experimental.conjugate_gradient", "gradient"): "**Linear operators.**",
    ("tf.linalg.experimental.conjugate_gradient", "second"): "**Linear operators.**",
}
