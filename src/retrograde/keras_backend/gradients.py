"""Passes dense gradients to Keras's optimizers and explains missing gradients."""

import functools
import sys
import warnings

from keras.src.optimizers.base_optimizer import BaseOptimizer

from retrograde.core.indexed_slices import as_dense
from retrograde.diagnose.missing_gradients.explain import reasons_for


def patch_optimizers():
    """Patches all Keras optimizers to densify gradients and explain missing ones."""
    BaseOptimizer._filter_empty_gradients = _wrap_filter(BaseOptimizer._filter_empty_gradients)


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
