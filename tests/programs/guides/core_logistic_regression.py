"""The Core API: logistic regression with accuracy, a confusion matrix and export."""

# %% Setup
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from notes import note, save_notes

folder = pathlib.Path(tempfile.mkdtemp())

# %% Data: two kinds of cells with eight measurements each
random = np.random.default_rng(5)
kind = random.integers(0, 2, 300).astype(np.float32)
cells = random.normal(size=(300, 8)) * np.linspace(1, 4, 8) + 5.0
cells = (cells + kind[:, None] * np.linspace(0.2, 1.5, 8)).astype(np.float32)
x_train, x_test = tf.convert_to_tensor(cells[:240]), tf.convert_to_tensor(cells[240:])
y_train, y_test = tf.convert_to_tensor(kind[:240]), tf.convert_to_tensor(kind[240:])


class Normalize(tf.Module):
    """Standardizes data."""

    def __init__(self, x):
        super().__init__()
        self.mean = tf.Variable(tf.math.reduce_mean(x, axis=0), trainable=False)
        self.std = tf.Variable(tf.math.reduce_std(x, axis=0), trainable=False)

    def norm(self, x):
        return (x - self.mean) / self.std


norm = Normalize(x_train)
x_train_n, x_test_n = norm.norm(x_train), norm.norm(x_test)
note(normalized=[tf.reduce_mean(x_train_n, axis=0)[:2], tf.math.reduce_std(x_train_n, axis=0)[:2]])

# %% The sigmoid function and its inverse
axis = tf.linspace(-10.0, 10.0, 11)
note(sigmoid=tf.sigmoid(axis), inverse=tf.math.log(tf.sigmoid(axis) / (1 - tf.sigmoid(axis))))


# %% Loss, classes, accuracy
def log_loss(logits, y):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))


def classes(probabilities, limit=0.5):
    return tf.cast(probabilities > limit, tf.float32)


def accuracy(probabilities, y):
    return tf.reduce_mean(tf.cast(classes(probabilities) == y, tf.float32))


class Logistic(tf.Module):
    """Returns logits in training and probabilities otherwise."""

    def __init__(self):
        super().__init__()
        self.built = False

    def __call__(self, x, train=True):
        if not self.built:
            self.w = tf.Variable(tf.cast(tf.linspace(-0.1, 0.1, x.shape[-1]), tf.float32)[:, None])
            self.b = tf.Variable(0.05)
            self.built = True
        z = tf.squeeze(tf.add(tf.matmul(x, self.w), self.b), axis=1)
        return z if train else tf.sigmoid(z)


model = Logistic()
note(initial=[model(x_train_n[:3], train=False), log_loss(model(x_train_n), y_train)])

# %% The training loop
data = tf.data.Dataset.from_tensor_slices((x_train_n, y_train)).batch(64)
history = []
for epoch in range(30):
    losses, accuracies = [], []
    for x_batch, y_batch in data:
        with tf.GradientTape() as tape:
            logits = model(x_batch)
            loss = log_loss(logits, y_batch)
        grads = tape.gradient(loss, model.variables)
        for g, v in zip(grads, model.variables):
            v.assign_sub(0.1 * g)
        losses.append(loss)
        accuracies.append(accuracy(model(x_batch, train=False), y_batch))
    history.append([tf.reduce_mean(losses), tf.reduce_mean(accuracies)])
note(history=history[::10], w=model.w)

# %% Evaluation
predictions = classes(model(x_test_n, train=False))
table = tf.math.confusion_matrix(y_test, predictions)
shares = tf.cast(table, tf.float32) / tf.reduce_sum(
    tf.cast(table, tf.float32), axis=1, keepdims=True
)
note(
    test_loss=log_loss(model(x_test_n), y_test),
    test_accuracy=accuracy(model(x_test_n, train=False), y_test),
    confusion=table,
    row_fractions=shares,
)


# %% Export
class Export(tf.Module):
    """Predicts classes from unscaled measurements."""

    def __init__(self, model, norm):
        super().__init__()
        self.model, self.norm = model, norm

    @tf.function(input_signature=[tf.TensorSpec(shape=[None, None], dtype=tf.float32)])
    def __call__(self, x):
        return classes(self.model(self.norm.norm(x), train=False))


path = str(folder / "model")
tf.saved_model.save(Export(model, norm), path)
loaded = tf.saved_model.load(path)
note(
    loaded_agrees=tf.reduce_all(loaded(x_test) == predictions),
    loaded_predictions=loaded(x_test[:6]),
)

save_notes()
