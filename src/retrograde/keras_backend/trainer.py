"""Implements `fit`, `evaluate` and `predict`."""

import functools
import importlib.util
import warnings

import numpy as np
from keras.src import optimizers as optimizers_module
from keras.src import tree
from keras.src.backend import config
from keras.src.callbacks import CallbackList as KerasCallbackList
from keras.src.trainers import trainer as base_trainer
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import pythonify_logs

import retrograde
from retrograde.distribute.context import context
from retrograde.keras_backend import replicas
from retrograde.keras_backend.batches import EpochIterator, to_tensors, trace_step
from retrograde.keras_backend.callback_list import CallbackList
from retrograde.keras_backend.conversion import convert_to_numpy
from retrograde.keras_backend.distribution_lib import current_distribution


class RetrogradeTrainer(base_trainer.Trainer):
    """A mixin of every Keras model.

    The steps are Python code with tapes, like a `train_step` that a user overrides. Unless the
    model runs eagerly, each step becomes a `retrograde.function`.
    """

    def __init__(self):
        super().__init__()
        self.train_function = None
        self.test_function = None
        self.predict_function = None
        self._distribute_strategy = context.strategy

    @property
    def distribute_strategy(self):
        """The strategy whose scope the model was created in."""
        return self._distribute_strategy or retrograde.distribute.get_strategy()

    def _resolve_auto_jit_compile(self):
        """Returns "auto" if XLA can compile the model: the faster of XLA and replay runs it."""
        return "auto" if super()._resolve_auto_jit_compile() else False

    # Steps on one batch

    def train_step(self, data):
        """Updates the weights once. Returns the metrics by name."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        with retrograde.GradientTape() as tape:
            y_pred = self._call_model(x, training=True)
            loss = self._compute_loss(
                x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True
            )
            scaled = loss if self.optimizer is None else self.optimizer.scale_loss(loss)
        self._loss_tracker.update_state(replicas.unscale_loss(loss), sample_weight=_batch_size(x))
        weights = self.trainable_weights
        if weights:
            self.optimizer.apply(tape.gradient(scaled, weights), weights)
        else:
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data):
        """Returns the metrics of one batch by name."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        y_pred = self._call_model(x, training=False)
        loss = self._compute_loss(
            x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False
        )
        self._loss_tracker.update_state(replicas.unscale_loss(loss), sample_weight=_batch_size(x))
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data):
        """Returns the predictions for one batch."""
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return self._call_model(x, training=False)

    def _call_model(self, x, training):
        return self(x, training=training) if self._call_has_training_arg else self(x)

    # Functions of one or more batches

    def make_train_function(self, force=False):
        """Creates `train_function` unless it exists."""
        if self.train_function is None or force:
            self.train_function = _return_last(self._step_function(self.train_step))
        return self.train_function

    def make_test_function(self, force=False):
        """Creates `test_function` unless it exists."""
        if self.test_function is None or force:
            self.test_function = _return_last(self._step_function(self.test_step))
        return self.test_function

    def make_predict_function(self, force=False):
        """Creates `predict_function` unless it exists."""
        if self.predict_function is None or force:
            self.predict_function = _concat_results(
                self._step_function(self.predict_step, gathers=True)
            )
        return self.predict_function

    def _step_function(self, step, gathers=False):
        """Returns `step` as a function of a batch, traced unless the model runs eagerly.

        With several replicas, each one gets its shard of the batch. If `gathers` is true, the
        result has the rows of all replicas.
        """
        if replicas.strategy_of(self) is None:
            return self._local_step_function(step)
        return replicas.distributed_step(self, step, self._local_step_function, gathers)

    def _local_step_function(self, step):
        if self.run_eagerly:
            return lambda batch: step(to_tensors(batch))
        return trace_step(step, self._step_compilation())

    def _step_compilation(self):
        """Returns whether XLA compiles the steps, or "auto".

        XLA runs several replicas, and arrays with layouts, on all devices at once.
        """
        is_distributed = replicas.strategy_of(self) or current_distribution()
        if self.jit_compile == "auto" and is_distributed is not None:
            return _has_jax()
        return self.jit_compile

    def _aggregate_additional_loss(self, loss):
        return replicas.scale_loss(super()._aggregate_additional_loss(loss))

    # Loops over batches

    @traceback_utils.filter_traceback
    @replicas.in_scope
    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        initial_epoch=0,
        steps_per_epoch=None,
        validation_steps=None,
        validation_batch_size=None,
        validation_freq=1,
    ):
        """Trains the model. Returns the history of the metrics."""
        self._assert_compile_called("fit")
        epochs = _limit_epochs(epochs, config.max_epochs())
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split
            )
        batches = EpochIterator(
            x=x,
            y=y,
            sample_weight=sample_weight,
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            shuffle=shuffle,
            class_weight=class_weight,
            steps_per_execution=self.steps_per_execution,
        )
        self._build_for("train_step", batches)
        callbacks = self._callbacks(callbacks, verbose, batches, epochs=epochs, add_history=True)
        validation = {
            "batch_size": validation_batch_size or batch_size,
            "steps": validation_steps,
            "callbacks": callbacks,
        }
        self._eval_epoch_iterator = None
        self.stop_training = False
        self.make_train_function()
        logs = {}
        replicas.begin_training(self, callbacks)
        for epoch in range(self._initial_epoch or initial_epoch, epochs):
            self.reset_metrics()
            callbacks.on_epoch_begin(epoch)
            logs = self._train_epoch(batches, callbacks)
            if replicas.strategy_of(self) is not None:
                replicas.synchronize_epoch(self)
            if validation_data is not None and self._should_eval(epoch, validation_freq):
                logs |= self._validate(validation_data, **validation)
            callbacks.on_epoch_end(epoch, logs)
            if self._stops_training():
                break
        self._eval_epoch_iterator = None
        if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        callbacks.on_train_end(logs=logs)
        return self.history

    def _stops_training(self):
        """Returns whether a callback stopped the training, in any worker."""
        if replicas.strategy_of(self) is not None:
            self.stop_training = replicas.any_worker(self.stop_training)
        return self.stop_training

    def _train_epoch(self, batches, callbacks):
        logs = {}
        for first, last, data in batches:
            callbacks.on_train_batch_begin(first)
            logs = self.train_function(data)
            callbacks.on_train_batch_end(last, logs)
            if self.stop_training:
                break
        return dict(self._get_metrics_result_or_logs(logs))

    def _validate(self, data, **options):
        """Evaluates the validation data. The iterator is reused in later epochs."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        if self._eval_epoch_iterator is None:
            self._eval_epoch_iterator = EpochIterator(
                x=x,
                y=y,
                sample_weight=sample_weight,
                batch_size=options["batch_size"],
                steps_per_epoch=options["steps"],
                steps_per_execution=self.steps_per_execution,
            )
        logs = self.evaluate(
            x=x,
            y=y,
            sample_weight=sample_weight,
            return_dict=True,
            _use_cached_eval_dataset=True,
            **options,
        )
        return {f"val_{name}": value for name, value in logs.items()}

    @traceback_utils.filter_traceback
    @replicas.in_scope
    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=None,
        verbose="auto",
        sample_weight=None,
        steps=None,
        callbacks=None,
        return_dict=False,
        **kwargs,
    ):
        """Computes the metrics of the data. Returns them in a list or by name."""
        self._assert_compile_called("evaluate")
        cached = kwargs.pop("_use_cached_eval_dataset", False)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        batches = self._eval_epoch_iterator if cached else None
        if batches is None:
            batches = EpochIterator(
                x=x,
                y=y,
                sample_weight=sample_weight,
                batch_size=batch_size,
                steps_per_epoch=steps,
                steps_per_execution=self.steps_per_execution,
            )
        self._build_for("test_step", batches)
        callbacks = self._callbacks(callbacks, verbose, batches)
        self.make_test_function()
        self.stop_evaluating = False
        logs = {}
        callbacks.on_test_begin()
        self.reset_metrics()
        for first, last, data in batches:
            callbacks.on_test_batch_begin(first)
            logs = self.test_function(data)
            callbacks.on_test_batch_end(last, logs)
            if self.stop_evaluating:
                break
        logs = pythonify_logs(self._get_metrics_result_or_logs(logs))
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback
    @replicas.in_scope
    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        """Returns the predictions as arrays in the structure of the model's outputs."""
        batches = EpochIterator(
            x=x,
            batch_size=batch_size,
            steps_per_epoch=steps,
            steps_per_execution=self.steps_per_execution,
        )
        callbacks = self._callbacks(callbacks, verbose, batches)
        self.make_predict_function()
        self.stop_predicting = False
        results = []
        callbacks.on_predict_begin()
        for first, last, data in batches:
            callbacks.on_predict_batch_begin(first)
            outputs = self.predict_function(data)
            results.append(tree.map_structure(convert_to_numpy, outputs))
            callbacks.on_predict_batch_end(last, {"outputs": outputs})
            if self.stop_predicting:
                break
        callbacks.on_predict_end()
        return tree.map_structure(lambda *parts: np.concatenate(parts), *results)

    # Functions of a single batch

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        """Updates the weights once. Returns the metrics in a list or by name."""
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError(
                    "Arguments `sample_weight` and `class_weight` cannot be specified at the same "
                    f"time. Received: sample_weight={sample_weight}, class_weight={class_weight}"
                )
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        return self._on_batch("train", (x, y, sample_weight), return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        """Returns the metrics of the batch in a list or by name."""
        self._assert_compile_called("test_on_batch")
        return self._on_batch("test", (x, y, sample_weight), return_dict)

    @replicas.in_scope
    def _on_batch(self, mode, batch, return_dict):
        batch = to_tensors(batch)
        self._build_for(f"{mode}_step", batch=batch)
        function = getattr(self, f"make_{mode}_function")()
        self.reset_metrics()
        logs = function([batch])
        if replicas.strategy_of(self) is not None:
            logs = self._get_metrics_result_or_logs(logs)
        logs = pythonify_logs(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @replicas.in_scope
    def predict_on_batch(self, x):
        """Returns the predictions for the batch."""
        outputs = self.make_predict_function()([(x,)])
        return tree.map_structure(convert_to_numpy, outputs)

    # Helpers

    def _build_for(self, step, batches=None, batch=None):
        """Builds the model, the metrics and the optimizer from one batch.

        If the user overrides `step`, they are built when it first runs: it may use the model
        differently.
        """
        if getattr(type(self), step) is getattr(RetrogradeTrainer, step):
            if batches is None:
                self._symbolic_build(data_batch=batch)
            else:
                first = next(batches.single_batches(), None)
                if first is not None:  # the data may be empty
                    self._symbolic_build(data_batch=first[-1][0])
                batches.reset()

    def _callbacks(self, callbacks, verbose, batches, epochs=1, add_history=False):
        if isinstance(callbacks, KerasCallbackList):
            return callbacks
        if replicas.strategy_of(self) is not None:
            callbacks, verbose = replicas.callbacks_of_worker(callbacks, verbose)
        return CallbackList(
            callbacks,
            add_history=add_history,
            add_progbar=verbose != 0,
            verbose=verbose,
            epochs=epochs,
            steps=batches.num_batches,
            model=self,
        )


def _batch_size(x):
    return next(leaf for leaf in tree.flatten(x) if leaf is not None).shape[0]


@functools.cache
def _has_jax():
    return importlib.util.find_spec("jax") is not None


def _return_last(step):
    """Returns a function of a list of batches that returns the result of the last step."""

    def function(batches):
        for batch in batches:
            result = step(batch)
        return result

    return function


def _concat_results(step):
    """Returns a function of a list of batches that concatenates the results."""

    def function(batches):
        results = [step(batch) for batch in batches]
        if len(results) == 1:
            return results[0]
        return tree.map_structure(lambda *parts: retrograde.concat(parts, 0), *results)

    return function


def _limit_epochs(epochs, limit):
    if limit and limit < epochs:
        warnings.warn(f"Limiting epochs to {limit}", stacklevel=3)
        return limit
    return epochs
