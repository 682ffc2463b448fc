"""A custom training loop for a Keras model: metrics, validation, losses of layers."""

# %% Setup
import numpy as np
import tensorflow as tf
from notes import note, save_notes
from tensorflow import keras
from tensorflow.keras import layers

random = np.random.default_rng(21)
centers = random.normal(size=(4, 12)).astype(np.float32)
labels = random.integers(0, 4, 320)
features = (centers[labels] + random.normal(size=(320, 12))).astype(np.float32)
training = tf.data.Dataset.from_tensor_slices((features[:256], labels[:256])).batch(32)
validation = tf.data.Dataset.from_tensor_slices((features[256:], labels[256:])).batch(32)


def set_initial_weights(model, seed):
    """Sets the same initial weights in every run."""
    random = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(random.normal(0.0, 0.3, tuple(variable.shape)).astype(np.float32))


def make_model():
    inputs = keras.Input(shape=(12,), name="digits")
    x1 = layers.Dense(16, activation="relu")(inputs)
    x2 = layers.Dense(16, activation="relu")(x1)
    outputs = layers.Dense(4, name="predictions")(x2)
    model = keras.Model(inputs=inputs, outputs=outputs)
    set_initial_weights(model, 3)
    return model


# %% A basic loop
model = make_model()
optimizer = keras.optimizers.SGD(learning_rate=0.05)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
losses = []
for epoch in range(2):
    for x_batch, y_batch in training:
        with tf.GradientTape() as tape:
            logits = model(x_batch, training=True)
            loss_value = loss_fn(y_batch, logits)
        grads = tape.gradient(loss_value, model.trainable_weights)
        optimizer.apply(grads, model.trainable_weights)
        losses.append(float(loss_value))
note(plain=losses)

# %% Metrics, and validation after each epoch
model = make_model()
optimizer = keras.optimizers.Adam(learning_rate=1e-2)
train_accuracy = keras.metrics.SparseCategoricalAccuracy()
val_accuracy = keras.metrics.SparseCategoricalAccuracy()
history = []
for epoch in range(2):
    for x_batch, y_batch in training:
        with tf.GradientTape() as tape:
            logits = model(x_batch, training=True)
            loss_value = loss_fn(y_batch, logits)
        grads = tape.gradient(loss_value, model.trainable_weights)
        optimizer.apply_gradients(zip(grads, model.trainable_weights))
        train_accuracy.update_state(y_batch, logits)
    for x_batch, y_batch in validation:
        val_accuracy.update_state(y_batch, model(x_batch, training=False))
    history.append([train_accuracy.result(), val_accuracy.result(), loss_value])
    train_accuracy.reset_state()
    val_accuracy.reset_state()
note(metrics=history, after_reset=train_accuracy.result())

# %% The same in tf.functions
model = make_model()
optimizer = keras.optimizers.Adam(learning_rate=1e-2)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss_value = loss_fn(y, logits)
    grads = tape.gradient(loss_value, model.trainable_weights)
    optimizer.apply_gradients(zip(grads, model.trainable_weights))
    train_accuracy.update_state(y, logits)
    return loss_value


@tf.function
def test_step(x, y):
    val_accuracy.update_state(y, model(x, training=False))


history = []
for epoch in range(2):
    for x_batch, y_batch in training:
        loss_value = train_step(x_batch, y_batch)
    for x_batch, y_batch in validation:
        test_step(x_batch, y_batch)
    history.append([train_accuracy.result(), val_accuracy.result(), loss_value])
    train_accuracy.reset_state()
    val_accuracy.reset_state()
note(in_functions=history)


# %% Losses that layers add
class Activity(layers.Layer):
    """Penalizes large activations."""

    def call(self, inputs):
        self.add_loss(1e-2 * tf.reduce_sum(inputs**2))
        return inputs


inputs = keras.Input(shape=(12,))
x = layers.Dense(16, activation="relu")(inputs)
x = Activity()(x)
x = layers.Dense(16, activation="relu", kernel_regularizer=keras.regularizers.L2(1e-3))(x)
model = keras.Model(inputs=inputs, outputs=layers.Dense(4)(x))
set_initial_weights(model, 5)
with tf.GradientTape() as tape:
    logits = model(features[:32], training=True)
    loss_value = loss_fn(labels[:32], logits)
    extra = list(model.losses)
    loss_value += sum(model.losses)
grads = tape.gradient(loss_value, model.trainable_weights)
note(extra=extra, with_losses=loss_value, norms=[tf.norm(g) for g in grads])

# %% Dropout and batch normalization depend on `training`
inputs = keras.Input(shape=(12,))
x = layers.BatchNormalization()(inputs)
x = layers.Dropout(0.5)(x)
model = keras.Model(inputs, x)
zero = model(features[:32], training=False)
note(without_training=zero[:2], moving=[w for w in model.non_trainable_weights][:1])
model(features[:32], training=True)
note(moved=[w for w in model.non_trainable_weights][:2])

# %% A GAN: two networks, one step
discriminator = keras.Sequential(
    [keras.Input((8,)), layers.Dense(8), layers.LeakyReLU(negative_slope=0.2), layers.Dense(1)]
)
generator = keras.Sequential(
    [keras.Input((3,)), layers.Dense(8, activation="tanh"), layers.Dense(8)]
)
set_initial_weights(discriminator, 7)
set_initial_weights(generator, 8)
d_optimizer = keras.optimizers.Adam(learning_rate=3e-3)
g_optimizer = keras.optimizers.Adam(learning_rate=4e-3)
cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)


@tf.function
def gan_step(real, noise):
    generated = generator(noise)
    both = tf.concat([generated, real], axis=0)
    labels = tf.concat([tf.ones((16, 1)), tf.zeros((real.shape[0], 1))], axis=0)
    with tf.GradientTape() as tape:
        d_loss = cross_entropy(labels, discriminator(both))
    grads = tape.gradient(d_loss, discriminator.trainable_weights)
    d_optimizer.apply_gradients(zip(grads, discriminator.trainable_weights))
    with tf.GradientTape() as tape:
        g_loss = cross_entropy(tf.zeros((16, 1)), discriminator(generator(noise)))
    grads = tape.gradient(g_loss, generator.trainable_weights)
    g_optimizer.apply_gradients(zip(grads, generator.trainable_weights))
    return d_loss, g_loss, generated


rounds = []
for _ in range(5):
    real = tf.constant(random.normal(2.0, 1.0, (16, 8)), tf.float32)
    noise = tf.constant(random.normal(size=(16, 3)), tf.float32)
    d_loss, g_loss, generated = gan_step(real, noise)
    rounds.append([d_loss, g_loss, tf.reduce_mean(generated)])
note(rounds=rounds)

save_notes()
