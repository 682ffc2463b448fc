"""Advanced automatic differentiation: custom gradients, nested tapes, Jacobians and Hessians."""

# %% Setup
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from notes import expect_error, note, save_notes

folder = pathlib.Path(tempfile.mkdtemp())

# %% Stop recording: operations in the block are not recorded
wind, rain = tf.Variable(2.0), tf.Variable(3.0)
with tf.GradientTape() as tape:
    wet = rain**2
    with tape.stop_recording():
        blown = wind**2
    storm = wet + blown
note(with_stop_recording=tape.gradient(storm, {"wind": wind, "rain": rain}), storm=storm)

# %% Reset the tape
with tf.GradientTape() as tape:
    discarded = wind * rain
    tape.reset()
    kept = wind**2 + rain
note(after_reset=tape.gradient(kept, [wind, rain]))

# %% Stop the gradient
with tf.GradientTape() as tape:
    storm = rain**2 + tf.stop_gradient(wind**2)
note(with_stop_gradient=tape.gradient(storm, {"wind": wind, "rain": rain}))


# %% A custom gradient: the identity in the forward pass, clipping in the backward pass
@tf.custom_gradient
def clip_gradient(value):
    def grad(upstream):
        return tf.clip_by_norm(upstream, 0.5)

    return value, grad


pull = tf.Variable(2.0)
with tf.GradientTape() as tape:
    force = clip_gradient(pull * pull) * 3.0
note(bounded=tape.gradient(force, pull), force=force)


# %% A custom gradient for numerical stability
@tf.custom_gradient
def log_one_plus_exp(value):
    exponential = tf.exp(value)

    def grad(upstream):
        return upstream * (1.0 - 1.0 / (1.0 + exponential))

    return tf.math.log(1.0 + exponential), grad


large = tf.constant(100.0)
with tf.GradientTape(persistent=True) as tape:
    tape.watch(large)
    stable = log_one_plus_exp(large)
    naive = tf.math.log(1.0 + tf.exp(large))
note(stable=tape.gradient(stable, large))


# %% Custom gradients in a saved model
class Bounded(tf.Module):
    """A function with a custom gradient."""

    @tf.function(input_signature=[tf.TensorSpec(None)])
    def fast(self, value):
        return clip_gradient(value)


model = Bounded()
tf.saved_model.save(
    model,
    str(folder / "bounded"),
    options=tf.saved_model.SaveOptions(experimental_custom_gradients=True),
)
loaded = tf.saved_model.load(str(folder / "bounded"))
with tf.GradientTape() as tape:
    loaded_force = loaded.fast(pull * pull) * 3.0
note(saved_custom_gradient=tape.gradient(loaded_force, pull))

# %% Two tapes at once
sunny, shady = tf.constant(0.0), tf.constant(0.0)
with tf.GradientTape() as first, tf.GradientTape() as second:
    first.watch(sunny)
    second.watch(shady)
    light = tf.math.sin(sunny)
    dark = tf.nn.sigmoid(shady)
    both = light + dark
note(two_tapes=[first.gradient(both, sunny), second.gradient(both, shady)])

# %% Nested tapes: the second derivative
height = tf.Variable(1.0)
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        fall = height**3 - 2.0 * height
    speed = inner.gradient(fall, height)
note(first_derivative=speed, second_derivative=outer.gradient(speed, height))

# %% A gradient penalty
pixels = tf.constant(np.random.default_rng(3).normal(size=(7, 5)).astype(np.float32))
layer = tf.keras.layers.Dense(10, activation="relu")
layer(pixels)
start = np.random.default_rng(4).normal(size=(5, 10))
layer.set_weights([start, np.linspace(-0.2, 0.2, 10)])
with tf.GradientTape() as outer:
    with tf.GradientTape(watch_accessed_variables=False) as inner:
        inner.watch(pixels)
        loss = tf.reduce_sum(layer(pixels) ** 2)
    pixel_gradients = inner.gradient(loss, pixels)
    penalty = tf.norm(pixel_gradients)
weight_gradients = outer.gradient(penalty, layer.trainable_variables)
note(penalty=penalty, penalty_gradients=weight_gradients)

# %% Jacobians of a vector with respect to a scalar and a vector
angles = tf.linspace(-2.0, 2.0, 9)
shift = tf.Variable(0.0)
with tf.GradientTape() as tape:
    curve = tf.nn.tanh(angles + shift)
note(jacobian_wrt_scalar=tape.jacobian(curve, shift))

logits = tf.linspace(-1.0, 1.0, 5)
with tf.GradientTape() as tape:
    tape.watch(logits)
    soft = tf.nn.softmax(logits)
note(jacobian_wrt_vector=tape.jacobian(soft, logits))

# %% Jacobians of matrices with respect to matrices
batch = tf.constant(np.random.default_rng(5).normal(size=(3, 5)).astype(np.float32))
with tf.GradientTape(persistent=True) as tape:
    output = layer(batch)
full = tape.jacobian(output, layer.kernel)
plain = tape.gradient(output, layer.kernel)
summed = tf.reduce_sum(full, axis=[0, 1])
note(
    jacobian_shape=full.shape,
    sums_to_the_gradient=tf.reduce_max(tf.abs(summed - plain)) < 1e-5,
    jacobian_slice=full[1, 4],
)

# %% A step of Newton's method with the Hessian
params = tf.Variable(np.random.default_rng(6).normal(size=(4, 2)).astype(np.float32) / 3)
inputs = tf.constant(np.random.default_rng(8).normal(size=(20, 4)).astype(np.float32))
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        cost = tf.reduce_mean(tf.nn.softplus(inputs @ params)) + tf.reduce_mean(params**2)
    g = inner.gradient(cost, params)
hessian = outer.jacobian(g, params)
square = tf.reshape(hessian, [8, 8])
asymmetry = tf.reduce_max(tf.abs(square - tf.transpose(square)))
update = tf.linalg.solve(square + 1e-3 * tf.eye(8), tf.reshape(g, [8, 1]))
params.assign_sub(tf.reshape(update, [4, 2]))
after = tf.reduce_mean(tf.nn.softplus(inputs @ params)) + tf.reduce_mean(params**2)
note(hessian=square, symmetric=asymmetry < 1e-5, before_newton=cost, after_newton=after)

# %% Batch Jacobians: independent rows
hidden = tf.keras.layers.Dense(4, activation="elu", use_bias=False)
last = tf.keras.layers.Dense(3, use_bias=False)
rows = tf.constant(np.random.default_rng(9).normal(size=(6, 5)).astype(np.float32))
last(hidden(rows))
hidden.set_weights([np.random.default_rng(10).normal(size=(5, 4))])
last.set_weights([np.random.default_rng(11).normal(size=(4, 3))])
with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
    tape.watch(rows)
    out = last(hidden(rows))
full = tape.jacobian(out, rows)
batch_jacobian = tape.batch_jacobian(out, rows)
by_input_row = tf.transpose(full, [1, 0, 2, 3])
note(
    batch_shape=batch_jacobian.shape,
    equals_the_diagonal=tf.reduce_max(tf.abs(tf.einsum("bxby->bxy", full) - batch_jacobian)) < 1e-5,
    off_diagonal_maximum=tf.reduce_max(tf.abs(by_input_row[:, 0, 1:])),
    one_row=batch_jacobian[2],
)

# %% Batch Jacobians are misleading if rows depend on each other
with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
    tape.watch(rows)
    mixed = tf.math.cumsum(hidden(rows), axis=0)
note(dependent_rows=tape.batch_jacobian(mixed, rows)[1])

# %% Forward mode: a Jacobian-vector product
with tf.autodiff.ForwardAccumulator(primals=logits, tangents=tf.one_hot(2, 5)) as forward:
    soft = tf.nn.softmax(logits)
note(forward_column=forward.jvp(soft))

# %% An error: target and source must have the same number of rows
with tf.GradientTape() as tape:
    tape.watch(rows)
    with expect_error("different_batch_sizes", ValueError):
        tape.batch_jacobian(hidden(rows)[:3], rows)

save_notes()
