"""What programs written for `tf.keras` look for in Keras, and Keras 3 by itself does not have."""

from keras.src import ops
from keras.src.legacy import backend as legacy_backend
from keras.src.optimizers.loss_scale_optimizer import LossScaleOptimizer

import retrograde
from retrograde.core.indexed_slices import whole


def make():
    """Puts them there."""
    # The functions of `keras.backend` in Keras 1 and 2 are written with TensorFlow's.
    legacy_backend.tf = retrograde
    LossScaleOptimizer.get_scaled_loss = get_scaled_loss
    LossScaleOptimizer.get_unscaled_gradients = get_unscaled_gradients
    LossScaleOptimizer.apply = _applying(LossScaleOptimizer.apply)


def get_scaled_loss(self, loss):
    """The loss, or a function that returns it, times the present scale."""
    if callable(loss):
        return lambda: self.scale_loss(loss())
    return self.scale_loss(loss)


def get_unscaled_gradients(self, grads):
    """The gradients of a scaled loss, divided by the present scale.

    The next `apply_gradients` takes what it is given for such gradients, and does not divide them
    once more.
    """
    self._has_unscaled = True
    scale = _scale(self)
    return [None if g is None else ops.divide(whole(g), scale) for g in grads]


def _applying(apply):
    """`apply`, which divides gradients itself: those that are divided already go back first."""

    def apply_scaled(self, grads, trainable_variables=None):
        if getattr(self, "_has_unscaled", False):
            self._has_unscaled = False
            scale = _scale(self)
            grads = [None if g is None else ops.multiply(whole(g), scale) for g in grads]
        return apply(self, grads, trainable_variables)

    return apply_scaled


def _scale(optimizer):
    return optimizer.dynamic_scale if optimizer.built else optimizer.initial_scale
