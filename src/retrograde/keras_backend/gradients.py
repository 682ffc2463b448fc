"""Passes dense gradients to Keras's optimizers and explains missing gradients."""

import contextlib
import functools
import sys
import warnings

from keras.src.optimizers.base_optimizer import BaseOptimizer
from keras.src.optimizers.loss_scale_optimizer import LossScaleOptimizer

from retrograde.core.indexed_slices import as_dense
from retrograde.diagnose.missing_gradients.explain import reasons_for
from retrograde.distribute.collectives import all_reduce
from retrograde.distribute.context import context
from retrograde.distribute.reduction import ReduceOp

_OPTIMIZERS = [BaseOptimizer, LossScaleOptimizer]
with contextlib.suppress(ModuleNotFoundError):  # new in Keras 3.15
    from keras.src.optimizers.multi_optimizer import MultiOptimizer

    _OPTIMIZERS.append(MultiOptimizer)


def patch_optimizers():
    """Patches all Keras optimizers to densify gradients and explain missing ones."""
    BaseOptimizer._filter_empty_gradients = _wrap_filter(BaseOptimizer._filter_empty_gradients)
    for optimizer_class in _OPTIMIZERS:
        optimizer_class.apply = _sum_over_replicas(optimizer_class.apply)


def _sum_over_replicas(apply):
    """Wraps an optimizer's `apply` to sum the gradients of all replicas.

    Updates run in the cross-replica context, because they are the same in all replicas.
    """

    @functools.wraps(apply)
    def apply_in_replica(self, grads, trainable_variables=None):
        strategy = context.strategy
        if strategy is None or not context.in_replica or strategy.num_replicas_in_sync == 1:
            return apply(self, grads, trainable_variables)
        grads = all_reduce(ReduceOp.SUM, list(grads), strategy._bytes_per_pack(None))
        return strategy._merge_call(
            lambda s, grads: apply(self, s._first(grads), trainable_variables), (grads,), {}
        )

    return apply_in_replica


def _wrap_filter(filter_empty):
    @functools.wraps(filter_empty)
    def filter_gradients(self, grads, vars):
        grads, vars = [as_dense(g) for g in grads], list(vars)
        missing = [v for g, v in zip(grads, vars, strict=True) if g is None]
        if not missing:
            return filter_empty(self, grads, vars)
        reasons = reasons_for(missing, sys._getframe(1))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                filtered = filter_empty(self, grads, vars)
            except ValueError as error:
                raise ValueError(f"{error}{reasons}") from None
        for warning in caught:
            warnings.warn(f"{warning.message}{reasons}", warning.category, stacklevel=3)
        return filtered

    return filter_gradients
