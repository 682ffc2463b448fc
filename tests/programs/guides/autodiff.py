"""Gradients: what a tape records, how to compute gradients, and why a gradient may be None."""

# %% Setup
import numpy as np
import tensorflow as tf
from notes import expect_error, note, save_notes

# %% Scalars: the power of a pump grows with the cube of its flow
flow = tf.Variable(1.5)
with tf.GradientTape() as tape:
    power = 0.2 * flow**3
note(power=power, power_gradient=tape.gradient(power, flow))

# %% Gradients of a loss with respect to weights, as a list and as a dictionary
random = np.random.default_rng(7)
slope = tf.Variable(random.normal(size=(3, 2)).astype(np.float32), name="slope")
offset = tf.Variable(tf.zeros(2, dtype=tf.float32), name="offset")
readings = [[0.5, -1.0, 2.0]]
with tf.GradientTape(persistent=True) as tape:
    outputs = readings @ slope + offset
    squared = tf.reduce_mean(outputs**2)
slope_grad, offset_grad = tape.gradient(squared, [slope, offset])
named = tape.gradient(squared, {"slope": slope, "offset": offset})
note(
    slope_gradient=slope_grad,
    offset_gradient=offset_grad,
    named=named,
    slope_gradient_shape=slope_grad.shape,
)
del tape

# %% Gradients with respect to the weights of a layer
layer = tf.keras.layers.Dense(2, activation="relu")
points = tf.constant([[1.0, 2.0, 3.0]])
layer(points)
layer.set_weights([np.arange(6.0).reshape(3, 2) / 4 - 0.5, np.array([0.1, -0.1])])
with tf.GradientTape() as tape:
    squared = tf.reduce_mean(layer(points) ** 2)
grads = tape.gradient(squared, layer.trainable_variables)
for variable, g in zip(layer.trainable_variables, grads):
    note(**{f"layer_{variable.name}": g, f"layer_{variable.name}_shape": g.shape})

# %% By default, a tape watches only trainable variables
seen = tf.Variable(3.0, name="seen")
frozen = tf.Variable(4.0, name="frozen", trainable=False)
tensor = tf.Variable(2.0, name="sum") + 1.0
constant = tf.constant(6.0)
with tf.GradientTape() as tape:
    total = seen**2 + frozen**2 + tensor**2 + constant**2
note(
    default_watching=tape.gradient(total, [seen, frozen, tensor, constant]),
    watched_names=[variable.name.split(":")[0] for variable in tape.watched_variables()],
)

# %% Watching a constant, and not watching variables
degrees = tf.constant(25.0)
with tf.GradientTape() as tape:
    tape.watch(degrees)
    fahrenheit = degrees * 1.8 + 32.0
note(watched_constant=tape.gradient(fahrenheit, degrees))

left_out, taken = tf.Variable(0.5), tf.Variable(10.0)
with tf.GradientTape(watch_accessed_variables=False) as tape:
    tape.watch(taken)
    bent = tf.math.sin(left_out)
    total = tf.nn.softplus(bent + taken)
note(explicit_watching=tape.gradient(total, {"left_out": left_out, "taken": taken}))

# %% Gradients with respect to intermediate results
length = tf.constant(0.8)
with tf.GradientTape() as tape:
    tape.watch(length)
    ratio = length / 9.81
    period = 2.0 * np.pi * tf.sqrt(ratio)
note(intermediate_gradient=tape.gradient(period, ratio))

# %% Only a persistent tape can compute gradients more than once
lengths = tf.constant([0.25, 1.0, 4.0])
with tf.GradientTape(persistent=True) as tape:
    tape.watch(lengths)
    ratios = lengths / 9.81
    periods = 2.0 * np.pi * tf.sqrt(ratios)
note(
    persistent=[tape.gradient(periods, lengths), tape.gradient(ratios, lengths)],
)
del tape
with tf.GradientTape() as tape:
    tape.watch(lengths)
    doubled = lengths * 2.0
tape.gradient(doubled, lengths)
with expect_error("second_gradient_call", RuntimeError):
    tape.gradient(doubled, lengths)

# %% Several targets, and targets that are not scalars: the gradient of their sum
knob = tf.Variable(2.0)
with tf.GradientTape(persistent=True) as tape:
    loud, soft = knob**2, 1.0 / knob
    chord = knob * [3.0, 4.0, 5.0]
note(
    dict_target=tape.gradient({"loud": loud, "soft": soft}, knob),
    vector_target=tape.gradient(chord, knob),
)
grid = tf.linspace(-3.0, 3.0, 13)
with tf.GradientTape() as tape:
    tape.watch(grid)
    curve = tf.nn.sigmoid(grid)
note(elementwise=tape.gradient(curve, grid))

# %% Control flow: a tape records the branch that was taken
switch = tf.constant(1.0)
left, right = tf.Variable(2.0), tf.Variable(2.0)
with tf.GradientTape(persistent=True) as tape:
    tape.watch(switch)
    result = left if switch > 0.0 else right**2
note(
    taken_branch=tape.gradient(result, left),
    other_branch=tape.gradient(result, right),
    condition_gradient=tape.gradient(result, switch),
)
steps = 0
halved = tf.Variable(40.0)
with tf.GradientTape() as tape:
    rest = tf.identity(halved)
    while rest > 1.0:
        rest, steps = rest / 2.0, steps + 1
note(loop=tape.gradient(rest, halved), loop_steps=steps)

# %% None, case 1: the target does not depend on the source
unused, used = tf.Variable(2.0), tf.Variable(3.0)
with tf.GradientTape() as tape:
    product = used * used
note(unconnected=tape.gradient(product, unused))

# %% None, case 2: the variable was replaced by a tensor
counter = tf.Variable(2.0)
is_variable, grads = [], []
for _ in range(2):
    with tf.GradientTape() as tape:
        moved = counter + 1.0
    is_variable.append(isinstance(counter, tf.Variable))
    grads.append(tape.gradient(moved, counter))
    counter = counter + 1.0
note(rebound_variable=grads, was_a_variable=is_variable)

# %% None, case 3: an intermediate result was computed by NumPy
matrix = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
with tf.GradientTape() as tape:
    middle = np.mean(matrix**2, axis=0)
    outside = tf.reduce_mean(middle, axis=0)
note(through_numpy=tape.gradient(outside, matrix), value_through_numpy=outside)

# %% None, case 4: integers
integer = tf.constant(10)
with tf.GradientTape() as tape:
    tape.watch(integer)
    product = integer * integer
note(integer_source=tape.gradient(product, integer))

# %% None, case 5: the value passed through the state of a variable
source, state = tf.Variable(3.0), tf.Variable(0.0)
with tf.GradientTape() as tape:
    state.assign_add(source)
    squared_state = state**2
note(through_state=tape.gradient(squared_state, source), state=state)

# %% The gradient of rounding
image = tf.Variable([[[0.5, 0.0, 0.0]]])
with tf.GradientTape() as tape:
    rounded = tf.round(image)
note(rounding=tape.gradient(rounded, image))

# %% Zeros instead of None
away = tf.Variable([2.0, 2.0])
near = tf.Variable(3.0)
with tf.GradientTape() as tape:
    product = near**2
note(
    unconnected_zeros=tape.gradient(
        product, away, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
)

save_notes()
