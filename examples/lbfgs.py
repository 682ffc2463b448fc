"""Minimization with SciPy's L-BFGS, which needs all variables in one flat vector."""

import numpy as np
import tensorflow as tf


def assign_flat(variables, vector):
    """Assigns the parts of a flat vector to the variables."""
    ends = np.cumsum([np.prod(v.shape, dtype=int) for v in variables])
    for variable, part in zip(variables, np.split(vector, ends[:-1]), strict=True):
        variable.assign(part.reshape(variable.shape).astype(variable.dtype.as_numpy_dtype))


def flatten(tensors):
    """Concatenates values or gradients into one vector."""
    return np.concatenate([np.ravel(t.numpy()).astype(np.float64) for t in tensors])


def minimize(loss_fn, variables, steps, callback=None, memory=20):
    """Minimizes `loss_fn()` with SciPy's L-BFGS and returns the loss after each iteration.

    The variables are set to the best values.
    """
    from scipy import optimize

    @tf.function
    def loss_and_gradients():
        with tf.GradientTape() as tape:
            loss = loss_fn()
        return loss, tape.gradient(loss, variables)

    def value_and_gradient(vector):
        assign_flat(variables, vector)
        loss, gradients = loss_and_gradients()
        return float(loss), flatten(gradients)

    history = []

    def on_iteration(intermediate_result):
        history.append(float(intermediate_result.fun))
        if callback is not None:
            callback(len(history), history[-1])

    result = optimize.minimize(
        value_and_gradient,
        flatten(variables),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "maxcor": memory, "ftol": 0.0, "gtol": 1e-9},
        callback=on_iteration,
    )
    assign_flat(variables, result.x)
    return history
