"""The Core API, quickstart: a linear model of fuel use, from the data to an exported module."""

# %% Setup
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from notes import note, save_notes

folder = pathlib.Path(tempfile.mkdtemp())
tf.random.set_seed(22)

# %% Data: cars with weight, power, year and origin
random = np.random.default_rng(22)
count = 240
weight = random.uniform(700, 2300, count)
power = 0.05 * weight + random.normal(0, 12, count)
year = random.integers(70, 83, count).astype(float)
origin = np.eye(3)[random.integers(0, 3, count)]
table = np.column_stack([weight, power, year, origin])
fuel = 60 - 0.012 * weight - 0.05 * power + 0.2 * (year - 70) + origin @ [0.0, 1.0, 2.0]
fuel = fuel + random.normal(0, 1.0, count)
x_train, x_test = tf.split(tf.cast(table, tf.float32), [200, 40])
y_train, y_test = tf.split(tf.cast(fuel, tf.float32), [200, 40])
note(shapes=[x_train.shape, y_test.shape], mean_fuel=tf.reduce_mean(y_train))


# %% Scaling and its inverse
class Scale(tf.Module):
    """Standardizes data, and reverses it."""

    def __init__(self, data):
        super().__init__()
        self.mean = tf.math.reduce_mean(data, axis=0)
        self.deviation = tf.math.reduce_std(data, axis=0)

    def norm(self, data):
        return (data - self.mean) / self.deviation

    def unnorm(self, data):
        return data * self.deviation + self.mean


norm_x, norm_y = Scale(x_train), Scale(y_train)
scaled_x, scaled_y = norm_x.norm(x_train), norm_y.norm(y_train)
note(
    scaled=[tf.reduce_mean(scaled_x), tf.math.reduce_std(scaled_y)],
    unscaled=norm_y.unnorm(scaled_y)[:3],
)


# %% A model that creates its variables in its first call
class Linear(tf.Module):
    """A linear model."""

    def __init__(self):
        super().__init__()
        self.built = False

    @tf.function
    def __call__(self, x):
        if not self.built:
            start = tf.random.uniform(shape=[x.shape[-1], 1], seed=22)
            self.w = tf.Variable(start * 0.0 + 0.25)
            self.b = tf.Variable(0.5)
            self.built = True
        return tf.squeeze(tf.add(tf.matmul(x, self.w), self.b), axis=1)


model = Linear()
note(initial_prediction=norm_y.unnorm(model(scaled_x[:5])))


def mean_square(targets, predictions):
    return tf.reduce_mean(tf.square(predictions - targets))


note(initial_loss=mean_square(scaled_y, model(scaled_x)))

# %% Batches and the training loop
batches = tf.data.Dataset.from_tensor_slices((scaled_x, scaled_y)).batch(64)
tests = tf.data.Dataset.from_tensor_slices((norm_x.norm(x_test), norm_y.norm(y_test))).batch(64)
shuffled = batches.shuffle(buffer_size=count)
note(batches=len(list(shuffled)))
train_losses, test_losses = [], []
for epoch in range(20):
    in_epoch = []
    for x_batch, y_batch in batches:
        with tf.GradientTape() as tape:
            loss = mean_square(y_batch, model(x_batch))
        grads = tape.gradient(loss, model.variables)
        for g, v in zip(grads, model.variables):
            v.assign_sub(0.1 * g)
        in_epoch.append(loss)
    train_losses.append(tf.reduce_mean(in_epoch))
    test_losses.append(tf.reduce_mean([mean_square(yb, model(xb)) for xb, yb in tests]))
note(train_losses=train_losses[::5], test_losses=test_losses[::5], w=model.w, b=model.b)


# %% Export with scaling, and loading
class Export(tf.Module):
    """Predicts in the units of the data, from unscaled features."""

    def __init__(self, model, norm_x, norm_y):
        super().__init__()
        self.model, self.norm_x, self.norm_y = model, norm_x, norm_y

    @tf.function(input_signature=[tf.TensorSpec(shape=[None, None], dtype=tf.float32)])
    def __call__(self, x):
        return self.norm_y.unnorm(self.model(self.norm_x.norm(x)))


exported = Export(model, norm_x, norm_y)
path = str(folder / "model")
tf.saved_model.save(exported, path)
loaded = tf.saved_model.load(path)
note(
    loaded_output=loaded(x_test),
    loaded_agrees=tf.reduce_max(tf.abs(loaded(x_test) - exported(x_test))) < 1e-4,
    loaded_row=loaded(x_test[:1]),
)

save_notes()
