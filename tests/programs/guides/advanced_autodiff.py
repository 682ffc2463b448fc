"""Gradients, further on: pauses, rules of one's own, tapes in tapes, Jacobians and Hessians."""

# %% What everything below needs
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from noting import note, refused, save_notes

folder = pathlib.Path(tempfile.mkdtemp())

# %% A pause: what runs in it leaves no trace on the tape
wind, rain = tf.Variable(2.0), tf.Variable(3.0)
with tf.GradientTape() as tape:
    wet = rain**2
    with tape.stop_recording():
        blown = wind**2
    storm = wet + blown
note(paused=tape.gradient(storm, {"wind": wind, "rain": rain}), storm=storm)

# %% A new beginning
with tf.GradientTape() as tape:
    lost = wind * rain
    tape.reset()
    kept = wind**2 + rain
note(after_reset=tape.gradient(kept, [wind, rain]))

# %% A wall inside the computation
with tf.GradientTape() as tape:
    storm = rain**2 + tf.stop_gradient(wind**2)
note(walled=tape.gradient(storm, {"wind": wind, "rain": rain}))


# %% A rule of one's own: forwards nothing happens, backwards the gradient is held in bounds
@tf.custom_gradient
def bounded(value):
    def backwards(upstream):
        return tf.clip_by_norm(upstream, 0.5)

    return value, backwards


pull = tf.Variable(2.0)
with tf.GradientTape() as tape:
    force = bounded(pull * pull) * 3.0
note(bounded=tape.gradient(force, pull), force=force)


# %% A rule that is stable where the formula is not
@tf.custom_gradient
def log_one_plus_exp(value):
    grown = tf.exp(value)

    def backwards(upstream):
        return upstream * (1.0 - 1.0 / (1.0 + grown))

    return tf.math.log(1.0 + grown), backwards


steep = tf.constant(100.0)
with tf.GradientTape(persistent=True) as tape:
    tape.watch(steep)
    stable = log_one_plus_exp(steep)
    naive = tf.math.log(1.0 + tf.exp(steep))
note(stable=tape.gradient(stable, steep))


# %% Rules of one's own, saved with a model
class Bounded(tf.Module):
    """A function with a rule of its own."""

    @tf.function(input_signature=[tf.TensorSpec(None)])
    def fast(self, value):
        return bounded(value)


model = Bounded()
tf.saved_model.save(
    model,
    str(folder / "bounded"),
    options=tf.saved_model.SaveOptions(experimental_custom_gradients=True),
)
loaded = tf.saved_model.load(str(folder / "bounded"))
with tf.GradientTape() as tape:
    back = loaded.fast(pull * pull) * 3.0
note(saved_rule=tape.gradient(back, pull))

# %% Two tapes at once, each with its own questions
sunny, shady = tf.constant(0.0), tf.constant(0.0)
with tf.GradientTape() as first, tf.GradientTape() as second:
    first.watch(sunny)
    second.watch(shady)
    light = tf.math.sin(sunny)
    dark = tf.nn.sigmoid(shady)
    both = light + dark
note(two_tapes=[first.gradient(both, sunny), second.gradient(both, shady)])

# %% A tape inside a tape: the second derivative
height = tf.Variable(1.0)
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        fall = height**3 - 2.0 * height
    speed = inner.gradient(fall, height)
note(first_derivative=speed, second_derivative=outer.gradient(speed, height))

# %% A penalty on the size of a gradient
pixels = tf.constant(np.random.default_rng(3).normal(size=(7, 5)).astype(np.float32))
layer = tf.keras.layers.Dense(10, activation="relu")
layer(pixels)
start = np.random.default_rng(4).normal(size=(5, 10))
layer.set_weights([start, np.linspace(-0.2, 0.2, 10)])
with tf.GradientTape() as outer:
    with tf.GradientTape(watch_accessed_variables=False) as inner:
        inner.watch(pixels)
        loss = tf.reduce_sum(layer(pixels) ** 2)
    by_pixels = inner.gradient(loss, pixels)
    penalty = tf.norm(by_pixels)
by_weights = outer.gradient(penalty, layer.trainable_variables)
note(penalty=penalty, penalty_by_weights=by_weights)

# %% Jacobians: of a vector by a scalar, and of a vector by a vector
angles = tf.linspace(-2.0, 2.0, 9)
shift = tf.Variable(0.0)
with tf.GradientTape() as tape:
    curve = tf.nn.tanh(angles + shift)
note(by_a_scalar=tape.jacobian(curve, shift))

tuned = tf.linspace(-1.0, 1.0, 5)
with tf.GradientTape() as tape:
    tape.watch(tuned)
    soft = tf.nn.softmax(tuned)
note(by_a_vector=tape.jacobian(soft, tuned))

# %% Jacobians of matrices by matrices
batch = tf.constant(np.random.default_rng(5).normal(size=(3, 5)).astype(np.float32))
with tf.GradientTape(persistent=True) as tape:
    answer = layer(batch)
full = tape.jacobian(answer, layer.kernel)
plain = tape.gradient(answer, layer.kernel)
summed = tf.reduce_sum(full, axis=[0, 1])
note(
    jacobian_shape=full.shape,
    sums_to_the_gradient=tf.reduce_max(tf.abs(summed - plain)) < 1e-5,
    jacobian_of_one=full[1, 4],
)

# %% A step of Newton's method, by the Hessian
hill = tf.Variable(np.random.default_rng(6).normal(size=(4, 2)).astype(np.float32) / 3)
inputs = tf.constant(np.random.default_rng(8).normal(size=(20, 4)).astype(np.float32))
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        cost = tf.reduce_mean(tf.nn.softplus(inputs @ hill)) + tf.reduce_mean(hill**2)
    g = inner.gradient(cost, hill)
hessian = outer.jacobian(g, hill)
square = tf.reshape(hessian, [8, 8])
asymmetry = tf.reduce_max(tf.abs(square - tf.transpose(square)))
update = tf.linalg.solve(square + 1e-3 * tf.eye(8), tf.reshape(g, [8, 1]))
hill.assign_sub(tf.reshape(update, [4, 2]))
after = tf.reduce_mean(tf.nn.softplus(inputs @ hill)) + tf.reduce_mean(hill**2)
note(hessian=square, symmetric=asymmetry < 1e-5, before_newton=cost, after_newton=after)

# %% Batch Jacobians: rows that know nothing of each other
hidden = tf.keras.layers.Dense(4, activation="elu", use_bias=False)
last = tf.keras.layers.Dense(3, use_bias=False)
rows = tf.constant(np.random.default_rng(9).normal(size=(6, 5)).astype(np.float32))
last(hidden(rows))
hidden.set_weights([np.random.default_rng(10).normal(size=(5, 4))])
last.set_weights([np.random.default_rng(11).normal(size=(4, 3))])
with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
    tape.watch(rows)
    out = last(hidden(rows))
whole = tape.jacobian(out, rows)
by_row = tape.batch_jacobian(out, rows)
apart = tf.transpose(whole, [1, 0, 2, 3])
note(
    batch_shape=by_row.shape,
    the_same_on_the_diagonal=tf.reduce_max(tf.abs(tf.einsum("bxby->bxy", whole) - by_row)) < 1e-5,
    nothing_beside_it=tf.reduce_max(tf.abs(apart[:, 0, 1:])),
    one_row=by_row[2],
)

# %% Where rows do know of each other, a batch Jacobian is not what it seems
with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
    tape.watch(rows)
    mixed = tf.math.cumsum(hidden(rows), axis=0)
note(mixed_rows=tape.batch_jacobian(mixed, rows)[1])

# %% Forward mode: a Jacobian times a vector
with tf.autodiff.ForwardAccumulator(primals=tuned, tangents=tf.one_hot(2, 5)) as forward:
    soft = tf.nn.softmax(tuned)
note(forward_column=forward.jvp(soft))

# %% A mistake: rows of the target and of the source must be the same
with tf.GradientTape() as tape:
    tape.watch(rows)
    with refused("other_rows", ValueError):
        tape.batch_jacobian(hidden(rows)[:3], rows)

save_notes()
