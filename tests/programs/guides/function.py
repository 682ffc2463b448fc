"""tf.function: when functions are traced, what a trace contains, and Python side effects.

Python code in a function runs only while it is traced, so appending to `traced` counts traces.
`log` prints in every call, to a file that `new_log_lines` reads.
"""

# %% Setup
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from notes import expect_error, note, save_notes

folder = pathlib.Path(tempfile.mkdtemp())
log_file = folder / "log.txt"
traced = []


def log(*values):
    tf.print(*values, output_stream=f"file://{log_file}")


def new_log_lines():
    """Returns the lines logged since the last call."""
    text = log_file.read_text() if log_file.exists() else ""
    log_file.unlink(missing_ok=True)
    return text.splitlines()


# %% A function can be called, differentiated, and called by other functions
@tf.function
def stir(tea, milk):
    return tea + milk


strength = tf.Variable(1.0)
with tf.GradientTape() as tape:
    cup = stir(strength, 1.0)


@tf.function
def brew(leaves, water, milk):
    return stir(tf.matmul(leaves, water), milk)


note(
    added=stir(tf.ones([2, 2]), tf.ones([2, 2])),
    gradient=tape.gradient(cup, strength),
    nested=brew(tf.ones([3, 2]), tf.ones([2, 2]), tf.ones([2])),
)


# %% A trace for each input signature
@tf.function
def double(value):
    traced.append(value.dtype.name)
    return value + value


note(
    doubled=[double(tf.constant(1)), double(tf.constant(1.5)), double(tf.constant("a"))],
    doubled_again=double(tf.constant("b")),
    traced_for=traced,
    traces=double.experimental_get_tracing_count(),
)
print(double.pretty_printed_concrete_signatures())
note(signatures=double.pretty_printed_concrete_signatures().count("Input Parameters"))


# %% A fixed signature
@tf.function(input_signature=(tf.TensorSpec(shape=[None], dtype=tf.int32),))
def hailstone(numbers):
    return tf.where(numbers % 2 == 0, numbers // 2, 3 * numbers + 1)


note(hailstone=[hailstone(tf.constant([1, 2])), hailstone(tf.constant([6, 7, 8, 9]))])
with expect_error("wrong_rank", TypeError, ValueError):
    hailstone(tf.constant([[1, 2], [3, 4]]))
with expect_error("wrong_dtype", TypeError, ValueError):
    hailstone(tf.constant([1.0, 2.0]))


# %% reduce_retracing relaxes shapes automatically
@tf.function(reduce_retracing=True)
def mean_of(values):
    return tf.reduce_mean(values)


note(means=[mean_of(tf.range(float(n))) for n in (2, 3, 4, 5, 6)])


# %% Each Python number needs a new trace, tensors do not
@tf.function
def train(steps):
    log("running", steps)
    for _ in tf.range(steps):
        pass


train(steps=10)
train(steps=20)
by_numbers = train.experimental_get_tracing_count()
train(steps=tf.constant(10))
train(steps=tf.constant(20))
note(
    printed_by_training=new_log_lines(),
    traces_for_numbers=by_numbers,
)


def speak():
    traced.append("speak")
    log("spoken")


traced.clear()
tf.function(speak)()
tf.function(speak)()
note(traces_of_new_functions=traced, spoken=new_log_lines())


# %% Custom trace types: objects of one class share a trace
class SameClass(tf.types.experimental.TraceType):
    """The trace type of a fruit is its class."""

    def __init__(self, kind):
        self.kind = kind

    def is_subtype_of(self, other):
        return type(other) is SameClass and self.kind is other.kind

    def most_specific_common_supertype(self, others):
        return self if all(self == other for other in others) else None

    def placeholder_value(self, placeholder_context=None):
        return self.kind()

    def __eq__(self, other):
        return type(other) is SameClass and self.kind is other.kind

    def __hash__(self):
        return hash(self.kind)


class Fruit:
    """Fruits of one class share a trace."""

    def __tf_tracing_type__(self, context):
        return SameClass(type(self))


class Plum(Fruit):
    """A fruit."""

    taste = tf.constant([1, 2])


class Pear(Fruit):
    """Another fruit."""

    taste = tf.constant([3, 4])


@tf.function
def blend(one, other):
    traced.append(type(one).__name__)
    return one.taste + other.taste


traced.clear()
note(
    blended=[blend(Plum(), Pear()), blend(Plum(), Pear()), blend(Pear(), Pear())],
    blended_for=traced,
)

# %% Concrete functions
strings = double.get_concrete_function(tf.constant("a"))
note(
    concrete=[strings(tf.constant("a")), strings(value=tf.constant("b"))],
    concrete_by_spec=double.get_concrete_function(tf.TensorSpec([], tf.string))(tf.constant("c")),
    concrete_output=[strings.structured_outputs.dtype, strings.structured_outputs.shape],
    concrete_inputs=[(spec.dtype, spec.shape) for spec in strings.structured_input_signature[0]],
    output_shape=strings.output_shapes,
    output_dtype=strings.output_dtypes,
)
print(strings)
with expect_error("wrong_concrete_dtype", tf.errors.InvalidArgumentError, TypeError):
    strings(tf.constant(1))


@tf.function
def power(base, exponent):
    return base**exponent


square = power.get_concrete_function(base=tf.TensorSpec(None, tf.float32), exponent=2)
print(square)
note(square=square(tf.constant(10.0)))
with expect_error("wrong_exponent", TypeError):
    square(tf.constant(10.0), exponent=3)


# %% Python conditions and loops on tensors
@tf.function
def shrink(values):
    while tf.reduce_sum(values) > 1.0:
        log(tf.reduce_sum(values))
        values = tf.tanh(values)
    return values


note(
    shrunk=shrink(tf.constant([0.9, 0.8, 0.7])),
    shrunk_in=len(new_log_lines()),
    original=shrink.python_function.__name__,
)


@tf.function
def fizz(count):
    for i in tf.range(1, count + 1):
        if i % 15 == 0:
            log("fizzbuzz")
        elif i % 3 == 0:
            log("fizz")
        elif i % 5 == 0:
            log("buzz")
        else:
            log(i)


fizz(tf.constant(5))
fizz(tf.constant(15))
note(fizz=new_log_lines())


@tf.function
def clip(value, limit):
    if value > limit:
        return limit
    elif value < -limit:
        return -limit
    else:
        return value


note(clipped=[clip(tf.constant(v), tf.constant(2.0)) for v in (-5.0, 1.0, 9.0)])


@tf.function
def first_above(values, bound):
    index = -1
    for i in tf.range(tf.shape(values)[0]):
        if values[i] < 0.0:
            continue
        if values[i] > bound:
            index = i
            break
    return index


note(first_above=first_above(tf.constant([-1.0, 0.5, 3.0, 4.0]), tf.constant(2.0)))


# %% Loops over Python data and over a dataset
@tf.function
def total_distance(pairs):
    total = tf.constant(0)
    for here, there in pairs:
        total += tf.abs(there - here)
    return total


data = [(1, 4)] * 3
note(
    list_distance=total_distance(data),
    dataset_distance=total_distance(
        tf.data.Dataset.from_generator(lambda: data, (tf.int32, tf.int32))
    ),
    slices_distance=total_distance(
        tf.data.Dataset.from_tensor_slices((tf.range(5), tf.range(5) ** 2))
    ),
)


# %% Accumulating values in a loop
@tf.function
def run_states(step, inputs, state):
    inputs = tf.transpose(inputs, [1, 0, 2])
    length = tf.shape(inputs)[0]
    states = tf.TensorArray(tf.float32, size=length)
    for i in tf.range(length):
        state = step(inputs[i], state)
        states = states.write(i, state)
    return tf.transpose(states.stack(), [1, 0, 2])


steps = tf.reshape(tf.range(24.0), [2, 3, 4])
with tf.GradientTape() as tape:
    tape.watch(steps)
    states = run_states(lambda x, h: tf.tanh(0.1 * x + h), steps, tf.zeros([2, 4]))
note(states=states, states_gradient=tape.gradient(states, steps))


# %% Python side effects happen only while tracing
@tf.function
def with_side_effect(value):
    traced.append("with_side_effect")
    log("run with", value)


traced.clear()
with_side_effect(1)
with_side_effect(1)
with_side_effect(2)
note(side_effect_traces=len(traced), side_effect_prints=new_log_lines())


class Counted(tf.Module):
    """A Python condition, which a trace does not repeat."""

    def __init__(self, lifted):
        super().__init__()
        self.value, self.calls, self.lifted = tf.Variable(0), 0, lifted

    @tf.function
    def __call__(self):
        if self.calls == 0:
            if self.lifted:
                with tf.init_scope():
                    self.calls += 1
                    self.value.assign_add(1)
            else:
                self.calls += 1
                self.value.assign_add(1)
        return self.value


guarded, lifted = Counted(False), Counted(True)
note(
    guarded=[guarded().numpy() for _ in range(3)],
    lifted=[lifted().numpy() for _ in range(3)],
)


# %% Python iterators and dataset iterators
@tf.function
def consume(iterator):
    log("value", next(iterator))


numbers = iter([1, 2, 3])
consume(numbers)
consume(numbers)
iterator = iter(tf.data.Dataset.from_tensor_slices([1, 2, 3]))
consume(iterator)
consume(iterator)
consume(iterator)
note(consumed=new_log_lines())


# %% Python code in every call
def in_python(value):
    traced.append(float(value))
    return value.numpy() * 2.0


@tf.function
def through_python(value):
    return tf.py_function(in_python, [value], tf.float32) + 1.0


traced.clear()
note(
    through_python=[through_python(tf.constant(v)) for v in (1.0, 2.0)],
    python_calls=traced,
    through_numpy=tf.numpy_function(lambda v: np.sort(v), [tf.constant([3.0, 1.0])], tf.float32),
)


# %% Tensors must not leak from a function
leaked = []


@tf.function
def leaks(value):
    leaked.append(value + 1)
    return value + 2


note(returned=leaks(tf.constant(1)))
with expect_error("leaked_value", AttributeError):
    leaked[0].numpy()
with expect_error("leaked_tensor_used", TypeError):
    tf.function(lambda value: value + leaked[0])(tf.constant(2))


# %% A recursive function of a Python number
@tf.function
def down(number):
    if number > 0:
        traced.append(number)
        return down(number - 1)
    return 1


traced.clear()
note(down=down(5), down_traced=traced)

# %% Python globals are read only while tracing; variables are read in each call
global_number = 1


@tf.function
def add_global():
    return 1 + global_number


@tf.function
def add_argument(value):
    return 1 + value


before = [add_global(), add_argument(global_number)]
global_number = 100
note(global_before=before, global_after=[add_global(), add_argument(global_number)])

variable = tf.Variable(1)


@tf.function
def add_variable():
    return 1 + variable


before = add_variable()
variable.assign(100)
note(variable_before=before, variable_after=add_variable())


# %% Objects with numbers, and objects with variables
class Line:
    """A line with Python numbers or variables."""

    def __init__(self, kind):
        self.slope, self.offset = kind(2.0), kind(0.0)


@tf.function
def value_on(line, x):
    return line.slope * x + line.offset


fixed, free, x = Line(float), Line(tf.Variable), tf.constant(10.0)
before = [value_on(fixed, x), value_on(free, x)]
fixed.offset += 5.0
free.offset.assign_add(5.0)
note(lines_before=before, lines_after=[value_on(fixed, x), value_on(free, x)])
note(line_retraced=tf.function(lambda x: fixed.slope * x + fixed.offset)(x))


# %% Variables must be created only once
@tf.function
def creates_a_variable(x):
    v = tf.Variable(1.0)
    return v * x


with expect_error("variable_in_each_call", ValueError):
    creates_a_variable(tf.constant(1.0))


class Count(tf.Module):
    """Creates its variable in the first call."""

    def __init__(self):
        super().__init__()
        self.count = None

    @tf.function
    def __call__(self):
        if self.count is None:
            self.count = tf.Variable(0)
        return self.count.assign_add(1)


count = Count()
note(counts=[count().numpy() for _ in range(3)])


# %% Optimizers create variables: use one function per optimizer
@tf.function
def train_step(weight, x, y, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(y - weight * x))
    optimizer.apply_gradients(zip(tape.gradient(loss, [weight]), [weight]))
    return loss


weight = tf.Variable(2.0)
xs, ys = tf.constant([1.0, 2.0]), tf.constant([3.0, 5.0])
for name, optimizer in {
    "adam": tf.keras.optimizers.Adam(0.1),
    "sgd": tf.keras.optimizers.SGD(0.01, momentum=0.9),
}.items():
    step = tf.function(train_step.python_function)
    losses = [step(weight, xs, ys, optimizer) for _ in range(3)]
    note(**{f"losses_{name}": losses})
note(weight=weight)

one_step = tf.function(train_step.python_function)
one_step(weight, xs, ys, tf.keras.optimizers.Adam(0.1))
with expect_error("two_optimizers", ValueError):
    one_step(weight, xs, ys, tf.keras.optimizers.SGD(0.1, momentum=0.9))

# %% Running functions eagerly to debug them
tf.config.run_functions_eagerly(True)
traced.clear()
with_side_effect(1)
with_side_effect(1)
note(
    eager_calls=len(traced), eagerly=tf.config.functions_run_eagerly(), eager_prints=new_log_lines()
)
tf.config.run_functions_eagerly(False)
note(eagerly_after=tf.config.functions_run_eagerly())

# %% Compiled by XLA
compiled = tf.function(lambda x: tf.reduce_sum(tf.exp(-(x**2))), jit_compile=True)
note(compiled=compiled(tf.linspace(-1.0, 1.0, 11)))

save_notes()
