"""Graphs: eager code compared with functions."""

# %% Setup
import tensorflow as tf
from notes import expect_error, note, save_notes


# %% The same function, run eagerly and as a graph
def mix(x, y, b):
    return tf.matmul(x, y) + b


mix_in_graph = tf.function(mix)
x1, y1, b1 = tf.constant([[1.0, 2.0]]), tf.constant([[2.0], [3.0]]), tf.constant(4.0)
note(plain=mix(x1, y1, b1), in_graph=mix_in_graph(x1, y1, b1))


# %% A function includes the functions that it calls
def inner(x, y, b):
    return tf.matmul(x, y) + b


@tf.function
def outer(x):
    return inner(x, tf.constant([[2.0], [3.0]]), tf.constant(4.0))


note(outer=outer(tf.constant([[1.0, 2.0]])))


# %% A Python `if` on a tensor
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


# %% The same result as a graph and eagerly
@tf.function
def squared_distance(targets, predictions):
    return tf.reduce_mean(tf.math.squared_difference(targets, predictions))


targets, predictions = tf.constant([1, 5, 9, 2, 6]), tf.constant([0, 4, 9, 9, 1])
results = [squared_distance(targets, predictions)]
tf.config.run_functions_eagerly(True)
results.append(squared_distance(targets, predictions))
tf.config.run_functions_eagerly(False)
note(graph_and_eager=results)

# %% Python side effects happen only while tracing
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


# %% An operation with an unused result may raise when it runs eagerly
def with_unused_result(x):
    tf.gather(x, [1])
    return x


with expect_error("eager_error", tf.errors.InvalidArgumentError):
    with_unused_result(tf.constant([0.0]))


# %% Python arguments are constants of a graph; new values need a new graph
@tf.function
def scale(x, factor):
    calls.append(factor)
    return x * factor


calls.clear()
note(scaled=[scale(tf.constant(2.0), factor) for factor in (1, 2, 2, 1, 3)])
note(factors_traced=[factor for factor in calls])

# %% Outside functions, code runs eagerly
note(mode_outside=tf.executing_eagerly())

# %% Nested functions and second-order gradients
cube = tf.function(lambda x: x**3)


@tf.function
def derivative(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = cube(x)
    return tape.gradient(y, x)


x = tf.constant(2.0)
with tf.GradientTape() as tape:
    tape.watch(x)
    slope = derivative(x)
note(slope=slope, second_derivative=tape.gradient(slope, x))

save_notes()
