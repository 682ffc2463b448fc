"""Training loops: written by hand, then with Keras."""

# %% Setup
import numpy as np
import tensorflow as tf
from notes import note, save_notes

# %% Data: a line with noise
random = np.random.default_rng(12)
SLOPE, OFFSET = -1.5, 4.0
x = tf.linspace(-2.0, 2.0, 201)
x = tf.cast(x, tf.float32)
y = SLOPE * x + OFFSET + random.normal(size=201).astype(np.float32) / 4
note(data=[tf.reduce_mean(x), tf.reduce_mean(y)])


# %% A model
class Line(tf.Module):
    """A line with a trainable slope and offset."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.slope = tf.Variable(5.0)
        self.offset = tf.Variable(0.0)

    def __call__(self, x):
        return self.slope * x + self.offset


model = Line()
assert model(3.0).numpy() == 15.0
note(variables=len(model.variables))


# %% A loss, a training step, a training loop
def mean_squared_error(targets, predictions):
    return tf.reduce_mean(tf.square(targets - predictions))


def train(model, x, y, rate):
    with tf.GradientTape() as tape:
        loss = mean_squared_error(y, model(x))
    slope_grad, offset_grad = tape.gradient(loss, [model.slope, model.offset])
    model.slope.assign_sub(rate * slope_grad)
    model.offset.assign_sub(rate * offset_grad)


def report(model, loss):
    return f"slope = {model.slope.numpy():1.2f}, offset = {model.offset.numpy():1.2f}, {loss:2.3f}"


lines, slopes, offsets = [], [], []
for epoch in range(10):
    train(model, x, y, rate=0.1)
    slopes.append(model.slope.numpy())
    offsets.append(model.offset.numpy())
    lines.append(report(model, mean_squared_error(y, model(x))))
note(slopes=slopes, offsets=offsets, last_report=lines[-1])

# %% The same with batches, in a tf.function
batches = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(201, seed=1).batch(32)
note(batches=batches.cardinality(), first_shape=next(iter(batches))[0].shape)
ordered = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
traced_model = Line()


@tf.function
def step(features, labels):
    with tf.GradientTape() as tape:
        loss = mean_squared_error(labels, traced_model(features))
    for variable, g in zip(
        traced_model.trainable_variables, tape.gradient(loss, traced_model.trainable_variables)
    ):
        variable.assign_sub(0.02 * g)
    return loss


losses = [step(features, labels) for _ in range(3) for features, labels in ordered]
note(batch_losses=losses, batch_line=list(traced_model.trainable_variables))


# %% A Keras model, first with the custom loop, then with fit
class KerasLine(tf.keras.Model):
    """The same line as a Keras model."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.slope = self.add_weight(shape=(), initializer=tf.keras.initializers.Constant(5.0))
        self.offset = self.add_weight(shape=(), initializer="zeros")

    def call(self, x):
        return self.slope * x + self.offset


keras_model = KerasLine()
for _ in range(10):
    train(keras_model, x, y, rate=0.1)
note(keras_by_hand=[keras_model.slope, keras_model.offset])

fitted = KerasLine()
fitted.compile(
    run_eagerly=False,
    optimizer=tf.keras.optimizers.SGD(learning_rate=0.1),
    loss=tf.keras.losses.MeanSquaredError(),
)
history = fitted.fit(x, y, epochs=10, batch_size=201, verbose=0)
note(fitted=[fitted.slope, fitted.offset], history=history.history["loss"])

save_notes()
