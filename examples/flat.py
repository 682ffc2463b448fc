"""Variables of any shapes as one vector, for minimisers that know nothing of tapes."""

import numpy as np
import tensorflow as tf


def put(variables, vector):
    """Cuts a vector into values for the variables."""
    ends = np.cumsum([np.prod(v.shape, dtype=int) for v in variables])
    for variable, part in zip(variables, np.split(vector, ends[:-1]), strict=True):
        variable.assign(part.reshape(variable.shape).astype(variable.dtype.as_numpy_dtype))


def take(tensors):
    """Puts values or gradients into one vector."""
    return np.concatenate([np.ravel(t.numpy()).astype(np.float64) for t in tensors])


def minimize(loss_of, variables, steps, callback=None, memory=20):
    """Lowers `loss_of()` by L-BFGS of SciPy; returns the loss after each iteration.

    The variables end at the best values.
    """
    from scipy import optimize

    @tf.function
    def loss_and_gradients():
        with tf.GradientTape() as tape:
            loss = loss_of()
        return loss, tape.gradient(loss, variables)

    def at(vector):
        put(variables, vector)
        loss, gradients = loss_and_gradients()
        return float(loss), take(gradients)

    history = []

    def after_each(intermediate_result):
        history.append(float(intermediate_result.fun))
        if callback is not None:
            callback(len(history), history[-1])

    result = optimize.minimize(
        at,
        take(variables),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "maxcor": memory, "ftol": 0.0, "gtol": 1e-9},
        callback=after_each,
    )
    put(variables, result.x)
    return history
