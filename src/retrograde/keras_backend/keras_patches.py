"""Adds features to Keras 3 that programs written for `tf.keras` expect."""

import warnings

import keras
from keras.src import backend as keras_src_backend
from keras.src import ops
from keras.src.callbacks import tensorboard
from keras.src.distribution import distribution_lib as keras_distribution
from keras.src.export import tfsm_layer
from keras.src.layers.normalization import batch_normalization
from keras.src.optimizers.loss_scale_optimizer import LossScaleOptimizer
from keras.src.saving import saving_api

import retrograde
from retrograde.core.indexed_slices import as_dense
from retrograde.keras_backend import (
    adam,
    distribution_lib,
    gradients,
    replicas,
    saving,
    tensorflow_layers,
)
from retrograde.keras_backend.module_proxy import ModuleProxy
from retrograde.keras_backend.tensorflow_weights import wrap_load_weights
from retrograde.summary import _events


def patch_keras(tf_keras):
    """Patches Keras. `tf_keras` is the module that is `tf.keras`."""
    tf_keras.saving = keras.saving  # guides use `tf.keras.saving.register_keras_serializable`
    tensorflow_layers.patch()
    summaries = ModuleProxy(retrograde.summary, scalar=_scalar)
    tensorboard.TensorBoard.summary = property(lambda _: summaries)
    tensorboard.keras_model_summary = keras_model_summary
    LossScaleOptimizer.get_scaled_loss = get_scaled_loss
    LossScaleOptimizer.get_unscaled_gradients = get_unscaled_gradients
    LossScaleOptimizer.apply = _wrap_apply(LossScaleOptimizer.apply)
    tfsm_layer.backend = ModuleProxy(keras_src_backend, backend=lambda: "tensorflow")
    # Keras has no distribution for the backend that this one replaces.
    keras_src_backend.distribution_lib = keras_distribution.distribution_lib = distribution_lib
    distribute_dataset = distribution_lib.distribute_dataset
    keras_distribution.Distribution.distribute_tf_dataset = distribute_dataset
    # It supports `synchronized=True` with the backend of this name only.
    batch_normalization.backend = ModuleProxy(keras_src_backend, backend=lambda: "tensorflow")
    gradients.patch_optimizers()
    adam.patch_adam()
    replicas.patch_losses()
    saving.make_atomic()
    saving_api.load_weights = wrap_load_weights(saving_api.load_weights)


def _scalar(name, data, step=None, description=None):
    """Writes a scalar summary. Accepts steps of any dtype: Keras's steps are int32."""
    return retrograde.summary.scalar(name, data, None if step is None else int(step), description)


def keras_model_summary(name, data, step=None):
    """Writes a model's graph for TensorBoard. Returns whether it was written."""
    try:
        model = data.to_json()
    except Exception as error:  # a layer may not be serializable
        warnings.warn(f"TensorBoard does not show the graph of the model: {error}", stacklevel=2)
        return False
    metadata = _events.plugin_metadata("graph_keras_model", None, b"1")
    with retrograde.summary.experimental.summary_scope(name) as (tag, _):
        return retrograde.summary.write(tag, model, step, metadata)


def get_scaled_loss(self, loss):
    """Returns the loss, or a function that returns it, multiplied by the current scale."""
    if callable(loss):
        return lambda: self.scale_loss(loss())
    return self.scale_loss(loss)


def get_unscaled_gradients(self, grads):
    """Divides the gradients of a scaled loss by the current scale.

    The next `apply_gradients` expects unscaled gradients and does not divide them again.
    """
    self._has_unscaled = True
    scale = _scale(self)
    return [None if g is None else ops.divide(as_dense(g), scale) for g in grads]


def _wrap_apply(apply):
    """Wraps `apply`, which unscales gradients, to scale gradients that are already unscaled."""

    def apply_unscaled(self, grads, trainable_variables=None):
        if getattr(self, "_has_unscaled", False):
            self._has_unscaled = False
            scale = _scale(self)
            grads = [None if g is None else ops.multiply(as_dense(g), scale) for g in grads]
        return apply(self, grads, trainable_variables)

    return apply_unscaled


def _scale(optimizer):
    return optimizer.dynamic_scale if optimizer.built else optimizer.initial_scale
