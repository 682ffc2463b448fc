"""Keras's Adam in a single pass over each variable, for eager steps on NumPy.

Keras's own step is about a dozen operations for each variable, and each reads and writes memory.
Here a block of a variable stays in cache for all of them. The operations and their order are the
same, so the results are bit-for-bit identical.
"""

import numpy as np
from keras import ops
from keras.src.optimizers.adam import Adam
from keras.src.optimizers.base_optimizer import BaseOptimizer

from retrograde.core import namespaces
from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.core.variable_cell import commit
from retrograde.fusion.blocks import run_shared, tapered_blocks, threads
from retrograde.keras_backend import variable as keras_variable
from retrograde.values.dtypes import SINGLE_AND_DOUBLE
from retrograde.values.errors import allocate
from retrograde.values.thresholds import BLOCK_SIZE, MIN_THREADED_SIZE_IF_COSTLY


def patch_adam():
    """Makes Adam, and subclasses with the same `update_step`, update each variable in one pass."""
    Adam._backend_update_step = _update_variables


def _update_variables(self, grads, trainable_variables, learning_rate):
    if not _is_plain_step(self):
        BaseOptimizer._backend_update_step(self, grads, trainable_variables, learning_rate)
        return
    coefficients = {}  # by dtype
    for gradient, variable in zip(grads, trainable_variables, strict=True):
        i = self._get_variable_index(variable)
        cells = [_cell(x) for x in (variable, self._momentums[i], self._velocities[i])]
        if not _is_fusible(gradient, cells):
            self.update_step(gradient, variable, learning_rate)
            continue
        dtype = gradient._spec.dtype
        if dtype not in coefficients:
            coefficients[dtype] = _coefficients(self, learning_rate, dtype)
        _update(cells, gradient._array, coefficients[dtype])


def _is_plain_step(optimizer):
    """Returns whether no part of retrograde or Keras observes or redirects the step."""
    return not (
        thread.recorders
        or namespaces.foreign
        or optimizer.amsgrad
        or type(optimizer).update_step is not Adam.update_step
        or keras_variable.is_redirected()
    )


def _cell(variable):
    """Returns the `tf.Variable` of a Keras variable, or `variable` itself."""
    return variable._value if isinstance(variable, keras_variable.Variable) else variable


def _is_fusible(gradient, cells):
    """Returns whether the gradient and all variables are NumPy arrays of one shape and dtype."""
    if not isinstance(gradient, Tensor) or any([type(cell) is not Variable for cell in cells]):
        return False
    shape, dtype = gradient._spec.shape, gradient._spec.dtype
    return dtype in SINGLE_AND_DOUBLE and all(
        [
            type(tensor) is Tensor
            and type(tensor._array) is np.ndarray
            and tensor._array.shape == shape
            and tensor._array.dtype is dtype
            for tensor in [cell._current() for cell in cells]
        ]
    )


def _coefficients(optimizer, learning_rate, dtype):
    """Returns the step size, 1 - beta_1, 1 - beta_2 and epsilon, computed as Keras does."""
    step = ops.cast(optimizer.iterations + 1, dtype.name)
    power_1, power_2 = (
        ops.power(ops.cast(beta, dtype.name), step) for beta in (optimizer.beta_1, optimizer.beta_2)
    )
    step_size = ops.cast(learning_rate, dtype.name) * ops.sqrt(1 - power_2) / (1 - power_1)
    numbers = (1 - optimizer.beta_1, 1 - optimizer.beta_2, optimizer.epsilon)
    return [step_size._array[()], *map(dtype.type, numbers)]


def _update(cells, gradient, coefficients):
    """Computes a variable, its momentum and its velocity, and commits the three values together."""
    while True:
        tensors = [cell._current() for cell in cells]
        arrays = allocate("Adam", _compute, [t._array for t in tensors], gradient, coefficients)
        updated = [
            tensor._replaced_by(Tensor(array), cell._id)
            for cell, tensor, array in zip(cells, tensors, arrays, strict=True)
        ]
        if commit(cells, updated, cells, tensors):  # fails if another thread has changed them
            return


def _compute(arrays, gradient, coefficients):
    """Returns the new value, momentum and velocity of a variable."""
    results = [np.empty_like(array, order="C") for array in arrays]
    flat = [array.reshape(-1) for array in (gradient, *arrays, *results)]
    size = gradient.size

    def work(blocks):
        for start, stop in blocks:
            _compute_block(*[array[start:stop] for array in flat], *coefficients)

    helpers = 0 if size < MIN_THREADED_SIZE_IF_COSTLY else threads() - 1
    blocks = tapered_blocks(size, BLOCK_SIZE, BLOCK_SIZE // 8, helpers + 1)
    thread.recorders.quietly(run_shared, work, blocks, helpers)
    return results


def _compute_block(g, x, m, v, new_x, new_m, new_v, step_size, rate_1, rate_2, epsilon):
    """Computes m += (g - m) rate_1, v += (g^2 - v) rate_2, x -= m step_size / (sqrt(v) + epsilon).

    Uses `new_x` for temporary values.
    """
    np.subtract(g, m, new_m)
    new_m *= rate_1
    new_m += m
    np.multiply(g, g, new_v)
    new_v -= v
    new_v *= rate_2
    new_v += v
    denominator = np.sqrt(new_v)
    denominator += epsilon
    np.multiply(new_m, step_size, new_x)
    new_x /= denominator
    np.subtract(x, new_x, new_x)
