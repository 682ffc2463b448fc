"""Keras's complaints about missing gradients, with the reasons that the tape knows."""

import functools
import sys
import warnings

from keras.src.optimizers.base_optimizer import BaseOptimizer

from retrograde.testimony.none.explaining import reasons_for


def explain_in_optimizers():
    """Makes all optimizers of Keras name the reasons."""
    BaseOptimizer._filter_empty_gradients = _explaining(BaseOptimizer._filter_empty_gradients)


def _explaining(filter_empty):
    @functools.wraps(filter_empty)
    def filter_and_explain(self, grads, vars):
        grads, vars = list(grads), list(vars)
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

    return filter_and_explain
