"""The Core API: a multilayer perceptron and Adam, both written by hand."""

# %% Setup
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from notes import note, save_notes

folder = pathlib.Path(tempfile.mkdtemp())

# %% Data: small images, as bytes
random = np.random.default_rng(40)
shapes = random.integers(0, 256, (5, 6, 6))
labels = random.integers(0, 5, 400)
images = np.clip(shapes[labels] + random.normal(0, 60, (400, 6, 6)), 0, 255).astype(np.uint8)


def preprocess(x, y):
    return tf.reshape(tf.cast(x, tf.float32) / 255.0, shape=[-1, 36]), tf.cast(y, tf.int64)


train = tf.data.Dataset.from_tensor_slices((images[:320], labels[:320])).batch(64).map(preprocess)
test = tf.data.Dataset.from_tensor_slices((images[320:], labels[320:])).batch(80).map(preprocess)
x_all, y_all = next(iter(test))
note(prepared=[x_all.shape, x_all.dtype, y_all.dtype], mean=tf.reduce_mean(x_all))
note(activation=tf.nn.relu(tf.linspace(-2.0, 2.0, 5)))


# %% Xavier initialization
def xavier(shape):
    inputs, outputs = shape
    limit = tf.sqrt(6.0 / tf.cast(inputs + outputs, tf.float32))
    return tf.random.stateless_uniform(shape, seed=[7, inputs], minval=-limit, maxval=limit)


start = xavier((36, 20))
note(limits=[tf.reduce_max(tf.abs(start)) <= 0.3274, start.shape])


class DenseLayer(tf.Module):
    """A dense layer that creates its variables in the first call."""

    def __init__(self, outputs, activation=tf.identity, seed=0):
        super().__init__()
        self.outputs, self.activation, self.seed, self.built = outputs, activation, seed, False

    def __call__(self, x):
        if not self.built:
            random = np.random.default_rng(self.seed)
            stddev = (2.0 / (x.shape[-1] + self.outputs)) ** 0.5
            start = random.normal(0.0, stddev, (x.shape[-1], self.outputs))
            self.w = tf.Variable(start.astype(np.float32))
            self.b = tf.Variable(tf.zeros(shape=(self.outputs,)))
            self.built = True
        return self.activation(tf.matmul(x, self.w) + self.b)


class Perceptron(tf.Module):
    """A sequence of layers."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    @tf.function
    def __call__(self, x, preds=False):
        for layer in self.layers:
            x = layer(x)
        return x


model = Perceptron(
    [DenseLayer(24, tf.nn.relu, 1), DenseLayer(16, tf.nn.relu, 2), DenseLayer(5, seed=3)]
)
note(initial_logits=model(x_all)[:2])


# %% Loss and accuracy
def cross_entropy(logits, y):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def accuracy(logits, y):
    predictions = tf.argmax(tf.nn.softmax(logits), axis=1)
    return tf.reduce_mean(tf.cast(tf.equal(predictions, y), tf.float32))


# %% Adam
class Adam:
    """The Adam optimizer."""

    def __init__(self, rate=1e-3, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
        self.rate, self.beta_1, self.beta_2, self.epsilon = rate, beta_1, beta_2, epsilon
        self.t, self.built = 1.0, False

    def apply_gradients(self, grads, variables):
        if not self.built:
            self.v = [tf.Variable(tf.zeros(shape=var.shape)) for var in variables]
            self.s = [tf.Variable(tf.zeros(shape=var.shape)) for var in variables]
            self.built = True
        for d_var, var, v, s in zip(grads, variables, self.v, self.s):
            v.assign(self.beta_1 * v + (1 - self.beta_1) * d_var)
            s.assign(self.beta_2 * s + (1 - self.beta_2) * tf.square(d_var))
            v_hat = v / (1 - self.beta_1**self.t)
            s_hat = s / (1 - self.beta_2**self.t)
            var.assign_sub(self.rate * (v_hat / (tf.sqrt(s_hat) + self.epsilon)))
        self.t += 1.0


def train_step(x, y, optimizer):
    with tf.GradientTape() as tape:
        logits = model(x)
        loss = cross_entropy(logits, y)
    grads = tape.gradient(loss, model.variables)
    optimizer.apply_gradients(grads, model.variables)
    return loss, accuracy(logits, y)


# %% The training loop
optimizer, history = Adam(rate=0.01), []
for epoch in range(8):
    parts = [train_step(x, y, optimizer) for x, y in train]
    tests = [(cross_entropy(model(x), y), accuracy(model(x), y)) for x, y in test]
    history.append([*np.mean(parts, axis=0), *np.mean(tests, axis=0)])
note(history=history[::2])

# %% Evaluation by class
predicted = tf.argmax(model(x_all), axis=1)
table = tf.math.confusion_matrix(y_all, predicted, num_classes=5)
note(confusion=table, class_accuracy=tf.linalg.diag_part(table) / tf.reduce_sum(table, axis=1))


# %% Export
class Export(tf.Module):
    """Predicts classes from images in uint8."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    @tf.function(input_signature=[tf.TensorSpec(shape=[None, None, None], dtype=tf.uint8)])
    def __call__(self, x):
        x = tf.reshape(tf.cast(x, tf.float32) / 255.0, [-1, 36])
        return tf.argmax(tf.nn.softmax(self.model(x)), axis=1)


path = str(folder / "model")
tf.saved_model.save(Export(model), path)
loaded = tf.saved_model.load(path)
note(loaded=loaded(images[320:340]), loaded_one=loaded(images[:1]))

save_notes()
