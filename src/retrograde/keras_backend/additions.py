"""What programs written for `tf.keras` look for in Keras, and Keras 3 by itself does not have."""

import types

import keras
from keras.src import ops
from keras.src.callbacks import tensorboard
from keras.src.legacy import backend as legacy_backend
from keras.src.legacy import layers as legacy_layers
from keras.src.optimizers.loss_scale_optimizer import LossScaleOptimizer
from keras.src.saving import serialization_lib
from keras.src.utils import rng_utils

import retrograde
from retrograde.core.indexed_slices import whole
from retrograde.keras_backend import gradients, saving
from retrograde.summary import _events


def make(view):
    """Puts them there. `view` is what is `tf.keras`."""
    view.saving = keras.saving  # where guides take `register_keras_serializable` from
    # These modules use TensorFlow where it is installed, whatever the backend. Ours has the names.
    legacy_backend.tf = legacy_layers.tf = retrograde
    serialization_lib.tf = rng_utils.tf = _Ours(retrograde, available=True)
    summaries = _Ours(retrograde.summary, scalar=_scalar)
    tensorboard.TensorBoard.summary = property(lambda _: summaries)
    tensorboard.keras_model_summary = keras_model_summary
    LossScaleOptimizer.get_scaled_loss = get_scaled_loss
    LossScaleOptimizer.get_unscaled_gradients = get_unscaled_gradients
    LossScaleOptimizer.apply = _applying(LossScaleOptimizer.apply)
    gradients.prepare_in_optimizers()
    saving.make_atomic()


class _Ours(types.SimpleNamespace):
    """A module of ours, with a few names in place of its own."""

    def __init__(self, module, **names):
        super().__init__(_module=module, **names)

    def __getattr__(self, name):
        return getattr(self._module, name)


def _scalar(name, data, step=None, description=None):
    """`summary.scalar` for steps of any dtype: Keras counts in int32."""
    return retrograde.summary.scalar(name, data, None if step is None else int(step), description)


def keras_model_summary(name, data, step=None):
    """Writes the layers of a model down for TensorBoard to draw. Returns whether it did."""
    metadata = _events.plugin_metadata("graph_keras_model", None, b"1")
    with retrograde.summary.experimental.summary_scope(name) as (tag, _):
        return retrograde.summary.write(tag, data.to_json(), step, metadata)


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
