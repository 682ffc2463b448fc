"""Gradients: what a tape records, what it answers, and why an answer may be None.

A pump, a pendulum and a few points of a thermometer serve as examples.
"""

# %% What everything below needs
import numpy as np
import tensorflow as tf
from noting import note, refused, save_notes

# %% One number by one number: the power that a pump needs grows with the cube of its flow
flow = tf.Variable(1.5)
with tf.GradientTape() as tape:
    power = 0.2 * flow**3
note(power=power, power_by_flow=tape.gradient(power, flow))

# %% A loss by weights, asked for as a list and as a dictionary
random = np.random.default_rng(7)
slope = tf.Variable(random.normal(size=(3, 2)).astype(np.float32), name="slope")
offset = tf.Variable(tf.zeros(2, dtype=tf.float32), name="offset")
readings = [[0.5, -1.0, 2.0]]
with tf.GradientTape(persistent=True) as tape:
    answer = readings @ slope + offset
    squared = tf.reduce_mean(answer**2)
by_slope, by_offset = tape.gradient(squared, [slope, offset])
named = tape.gradient(squared, {"slope": slope, "offset": offset})
note(by_slope=by_slope, by_offset=by_offset, named=named, shape_is_kept=by_slope.shape)
del tape

# %% By the weights of a layer
layer = tf.keras.layers.Dense(2, activation="relu")
points = tf.constant([[1.0, 2.0, 3.0]])
layer(points)
layer.set_weights([np.arange(6.0).reshape(3, 2) / 4 - 0.5, np.array([0.1, -0.1])])
with tf.GradientTape() as tape:
    squared = tf.reduce_mean(layer(points) ** 2)
slopes = tape.gradient(squared, layer.trainable_variables)
for variable, g in zip(layer.trainable_variables, slopes):
    note(**{f"layer_{variable.name}": g, f"layer_{variable.name}_shape": g.shape})

# %% What is watched: trainable variables, and nothing else by itself
seen = tf.Variable(3.0, name="seen")
frozen = tf.Variable(4.0, name="frozen", trainable=False)
no_variable = tf.Variable(2.0, name="sum") + 1.0
constant = tf.constant(6.0)
with tf.GradientTape() as tape:
    together = seen**2 + frozen**2 + no_variable**2 + constant**2
note(
    watched_alone=tape.gradient(together, [seen, frozen, no_variable, constant]),
    watched_names=[variable.name.split(":")[0] for variable in tape.watched_variables()],
)

# %% A constant can be watched, and variables can be left out
degrees = tf.constant(25.0)
with tf.GradientTape() as tape:
    tape.watch(degrees)
    fahrenheit = degrees * 1.8 + 32.0
note(fahrenheit_by_degrees=tape.gradient(fahrenheit, degrees))

left_out, taken = tf.Variable(0.5), tf.Variable(10.0)
with tf.GradientTape(watch_accessed_variables=False) as tape:
    tape.watch(taken)
    bent = tf.math.sin(left_out)
    total = tf.nn.softplus(bent + taken)
note(only_the_watched=tape.gradient(total, {"left_out": left_out, "taken": taken}))

# %% By what was computed on the way
length = tf.constant(0.8)
with tf.GradientTape() as tape:
    tape.watch(length)
    ratio = length / 9.81
    period = 2.0 * np.pi * tf.sqrt(ratio)
note(period_by_ratio=tape.gradient(period, ratio))

# %% A tape answers once, unless it is persistent
lengths = tf.constant([0.25, 1.0, 4.0])
with tf.GradientTape(persistent=True) as tape:
    tape.watch(lengths)
    ratios = lengths / 9.81
    periods = 2.0 * np.pi * tf.sqrt(ratios)
note(
    twice=[tape.gradient(periods, lengths), tape.gradient(ratios, lengths)],
)
del tape
with tf.GradientTape() as tape:
    tape.watch(lengths)
    doubled = lengths * 2.0
tape.gradient(doubled, lengths)
with refused("a_second_time", RuntimeError):
    tape.gradient(doubled, lengths)

# %% Several targets, and targets that are no scalars: the gradient of their sum
knob = tf.Variable(2.0)
with tf.GradientTape(persistent=True) as tape:
    loud, soft = knob**2, 1.0 / knob
    chord = knob * [3.0, 4.0, 5.0]
note(
    of_a_dictionary=tape.gradient({"loud": loud, "soft": soft}, knob),
    of_a_vector=tape.gradient(chord, knob),
)
grid = tf.linspace(-3.0, 3.0, 13)
with tf.GradientTape() as tape:
    tape.watch(grid)
    curve = tf.nn.sigmoid(grid)
note(elementwise=tape.gradient(curve, grid))

# %% A tape records what was run: the branch that was taken
switch = tf.constant(1.0)
left, right = tf.Variable(2.0), tf.Variable(2.0)
with tf.GradientTape(persistent=True) as tape:
    tape.watch(switch)
    result = left if switch > 0.0 else right**2
note(
    taken_branch=tape.gradient(result, left),
    other_branch=tape.gradient(result, right),
    by_the_switch=tape.gradient(result, switch),
)
steps = 0
halved = tf.Variable(40.0)
with tf.GradientTape() as tape:
    rest = tf.identity(halved)
    while rest > 1.0:
        rest, steps = rest / 2.0, steps + 1
note(loop=tape.gradient(rest, halved), loop_steps=steps)

# %% None, the first way: nothing leads from one to the other
apart, alone = tf.Variable(2.0), tf.Variable(3.0)
with tf.GradientTape() as tape:
    product = alone * alone
note(not_connected=tape.gradient(product, apart))

# %% None, the second way: the variable was replaced by a tensor
counter = tf.Variable(2.0)
kinds, answers = [], []
for _ in range(2):
    with tf.GradientTape() as tape:
        moved = counter + 1.0
    kinds.append(isinstance(counter, tf.Variable))
    answers.append(tape.gradient(moved, counter))
    counter = counter + 1.0
note(replaced=answers, was_a_variable=kinds)

# %% None, the third way: NumPy computed in between
matrix = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
with tf.GradientTape() as tape:
    middle = np.mean(matrix**2, axis=0)
    outside = tf.reduce_mean(middle, axis=0)
note(through_numpy=tape.gradient(outside, matrix), value_through_numpy=outside)

# %% None, the fourth way: whole numbers
whole = tf.constant(10)
with tf.GradientTape() as tape:
    tape.watch(whole)
    product = whole * whole
note(whole_numbers=tape.gradient(product, whole))

# %% None, the fifth way: a state lies between
held, feeding = tf.Variable(3.0), tf.Variable(0.0)
with tf.GradientTape() as tape:
    feeding.assign_add(held)
    fed = feeding**2
note(through_a_state=tape.gradient(fed, held), state=feeding)

# %% No rule at all is an error, and not None
image = tf.Variable([[[0.5, 0.0, 0.0]]])
with tf.GradientTape() as tape:
    rounded = tf.round(image)
note(of_rounding=tape.gradient(rounded, image))

# %% Zeros instead of None
away = tf.Variable([2.0, 2.0])
near = tf.Variable(3.0)
with tf.GradientTape() as tape:
    product = near**2
note(zeros=tape.gradient(product, away, unconnected_gradients=tf.UnconnectedGradients.ZERO))

save_notes()
