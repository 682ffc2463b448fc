"""Tests `explain` on realistic programs, each with one mistake.

`explain` must name the wrong line. After that line is replaced as the fix says, all gradients must
exist.
"""

import linecache

import numpy as np
import pytest

import retrograde as tf

REGRESSION = """\
rng = np.random.default_rng(0)
xs = tf.constant(rng.normal(size=(50, 1)), tf.float32)
ys = 3.0 * xs + 1.0

w = tf.Variable([[0.0]])
b = tf.Variable(0.0)
for epoch in range(3):
    with tf.GradientTape() as tape:
        predictions = xs @ w + b
        loss = tf.reduce_mean((predictions - ys) ** 2)
    grads = tape.gradient(loss, [w, b])
    if None in [g if g is None else 0 for g in grads]:
        break
    w = w - 0.1 * grads[0]
    b.assign_sub(0.1 * grads[1])
sources = [w, b]
"""

SALIENCY = """\
kernel = tf.Variable(tf.random.stateless_normal([3, 3, 1, 2], seed=[1, 2]))
image = tf.random.stateless_uniform([1, 8, 8, 1], seed=[3, 4])

def classify(x):
    features = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
    return tf.reduce_max(features, axis=[1, 2])

with tf.GradientTape() as tape:
    scores = classify(image)
    loss = scores[0, 1]
grads = [tape.gradient(loss, image)]
sources = [image]
"""

DECAY = """\
times = np.linspace(0.0, 5.0, 20, dtype=np.float32)
measured = 2.0 * np.exp(-0.7 * times)

amplitude, rate = tf.Variable(1.0), tf.Variable(0.1)
with tf.GradientTape() as tape:
    curve = amplitude * np.exp(-rate * times)
    loss = tf.reduce_sum((curve - measured) ** 2)
grads = tape.gradient(loss, [amplitude, rate])
sources = [amplitude, rate]
"""

CLASSIFIER = """\
x = tf.random.stateless_normal([16, 4], seed=[1, 2])
labels = tf.cast(x[:, 0] > 0, tf.int64)
w1 = tf.Variable(tf.random.stateless_normal([4, 8], seed=[3, 4]))
w2 = tf.Variable(tf.random.stateless_normal([8, 2], seed=[5, 6]))

def loss_fn(logits):
    wrong = tf.not_equal(tf.argmax(logits, axis=1), labels)
    return tf.reduce_mean(tf.cast(wrong, tf.float32))

with tf.GradientTape() as tape:
    loss = loss_fn(tf.tanh(x @ w1) @ w2)
grads = tape.gradient(loss, [w1, w2])
sources = [w1, w2]
"""

BEAM = """\
class Net(tf.Module):
    def __init__(self):
        self.w = tf.Variable(tf.random.stateless_normal([1, 10], seed=[1, 2]))
        self.v = tf.Variable(tf.random.stateless_normal([10, 1], seed=[3, 4]))

    def __call__(self, x):
        return tf.tanh(x @ self.w) @ self.v

net = Net()
x = tf.constant(np.linspace(0.0, 1.0, 8, dtype=np.float32)[:, None])
with tf.GradientTape() as outer:
    outer.watch(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        u = net(x)
first = tape.gradient(u, x)
second = outer.gradient(first, x)
grads = [second]
tape, loss, sources = outer, first, [x]
"""

TRAINING = """\
class Dense(tf.Module):
    def __init__(self, size):
        self.kernel = tf.Variable(tf.random.stateless_normal([4, size], seed=[1, 2]))
        self.bias = tf.Variable(tf.zeros([size]))

    def __call__(self, x):
        return tf.nn.relu(x @ self.kernel + self.bias)

model = Dense(3)
batch = tf.random.stateless_normal([5, 4], seed=[7, 8])
outputs = model(batch)
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(outputs**2)
grads = tape.gradient(loss, model.trainable_variables)
sources = model.trainable_variables
"""

# The program, the beginning of the wrong line, and the corrected line (`None`: move it down).
PROGRAMS = {
    "regression": (REGRESSION, "w = w - 0.1", "w.assign_sub(0.1 * grads[0])"),
    "saliency": (SALIENCY, "scores = classify", "tape.watch(image); scores = classify(image)"),
    "decay": (DECAY, "curve = ", "curve = amplitude * tf.exp(-rate * times)"),
    "classifier": (
        CLASSIFIER,
        "wrong = ",
        "return tf.reduce_mean(1.0 - tf.gather(tf.nn.softmax(logits), labels, batch_dims=1))",
    ),
    "beam": (BEAM, "first = ", "    first = tape.gradient(u, x)"),
    "training": (TRAINING, "outputs = ", None),
}


def run(program, name):
    filename = f"{name}.py"
    linecache.cache[filename] = (len(program), None, program.splitlines(True), filename)
    call = "\nexplanation = tape.explain(loss, sources)\n"
    names = {"tf": tf, "np": np}
    exec(compile(program + call, filename, "exec"), names)
    return names


def correct(program, number, replacement):
    """Replaces a line of a program; if there is no replacement, moves it down into the block."""
    lines = program.splitlines()
    line = lines[number - 1]
    if replacement is not None:
        lines[number - 1] = line[: len(line) - len(line.lstrip())] + replacement
    else:
        lines[number - 1], lines[number] = lines[number], f"    {line}"
    return "\n".join(lines)


@pytest.mark.parametrize("name", PROGRAMS)
def test_following_the_fix_yields_gradients(name):
    program, start, replacement = PROGRAMS[name]
    broken = run(program, name)
    missing = [f for f in broken["explanation"] if not f.connected]

    assert None in [g if g is None else 0 for g in broken["grads"]]
    assert missing
    assert {f.filename for f in missing} == {f"{name}.py"}
    (line,) = {f.line for f in missing}
    assert line.text.startswith(start)

    working = run(correct(program, line.line, replacement), name)
    assert working["explanation"].connected
    assert None not in [g if g is None else 0 for g in working["grads"]]


def test_fix_contains_the_statement_to_write():
    explanation = run(REGRESSION, "regression")["explanation"]

    assert explanation[0].fix == "update the variable in place: `w.assign_sub(0.1 * grads[0])`"


def test_fix_names_the_tf_function_for_a_numpy_function():
    _, finding = run(DECAY, "decay")["explanation"]

    assert "tf.exp for np.exp" in finding.fix
