"""Graphs: eager code and functions side by side, and what a graph does not do."""

# %% What everything below needs
import tensorflow as tf
from noting import note, refused, save_notes


# %% The same function, called plainly and as a graph
def mix(x, y, b):
    return tf.matmul(x, y) + b


mix_in_graph = tf.function(mix)
x1, y1, b1 = tf.constant([[1.0, 2.0]]), tf.constant([[2.0], [3.0]]), tf.constant(4.0)
note(plain=mix(x1, y1, b1), as_graph=mix_in_graph(x1, y1, b1))


# %% What a function calls becomes part of it
def inner(x, y, b):
    return tf.matmul(x, y) + b


@tf.function
def outer(x):
    return inner(x, tf.constant([[2.0], [3.0]]), tf.constant(4.0))


note(outer=outer(tf.constant([[1.0, 2.0]])))


# %% Python's if on a tensor
def simple_relu(x):
    if tf.greater(x, 0):
        return x
    else:
        return 0


relu_in_graph = tf.function(simple_relu)
note(relu=[relu_in_graph(tf.constant(1)), relu_in_graph(tf.constant(-1))])
note(autographed=callable(tf.autograph.experimental.do_not_convert(simple_relu)))


# %% One function, many graphs
@tf.function
def leaky(x):
    return tf.maximum(0.1 * x, x)


for value in (tf.constant(5.5), tf.constant([1.0, -1.0]), tf.constant([3.0, -3.0])):
    leaky(value)
print(leaky.pretty_printed_concrete_signatures())
note(graphs=leaky.experimental_get_tracing_count(), leaks=leaky(tf.constant([-4.0, 4.0])))


# %% Graph or eager, the same answer
@tf.function
def squared_distance(expected, found):
    return tf.reduce_mean(tf.math.squared_difference(expected, found))


expected, found = tf.constant([1, 5, 9, 2, 6]), tf.constant([0, 4, 9, 9, 1])
answers = [squared_distance(expected, found)]
tf.config.run_functions_eagerly(True)
answers.append(squared_distance(expected, found))
tf.config.run_functions_eagerly(False)
note(both_ways=answers)

# %% Print runs while tracing; tf.print whenever
calls = []


@tf.function
def noisy(x):
    calls.append("traced")
    return x * 2


results = [noisy(tf.constant(3)) for _ in range(3)]
note(noisy=results, traced_once=len(calls))
calls.clear()
tf.config.run_functions_eagerly(True)
for _ in range(3):
    noisy(tf.constant(3))
tf.config.run_functions_eagerly(False)
note(eager_calls=len(calls))


# %% What nobody needs may still raise when it is run eagerly
def without_need(x):
    tf.gather(x, [1])
    return x


with refused("eager_looks", tf.errors.InvalidArgumentError):
    without_need(tf.constant([0.0]))


# %% A graph holds on to what it met; new arguments make another
@tf.function
def scaled(x, factor):
    calls.append(factor)
    return x * factor


calls.clear()
note(scaled=[scaled(tf.constant(2.0), factor) for factor in (1, 2, 2, 1, 3)])
note(factors_traced=[factor for factor in calls])

# %% Outside of functions, code runs as it is read
note(mode_outside=tf.executing_eagerly())

# %% Functions of functions: with gradients of gradients
cube = tf.function(lambda x: x**3)


@tf.function
def slope_of(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = cube(x)
    return tape.gradient(y, x)


x = tf.constant(2.0)
with tf.GradientTape() as tape:
    tape.watch(x)
    slope = slope_of(x)
note(slope=slope, bend=tape.gradient(slope, x))

save_notes()
