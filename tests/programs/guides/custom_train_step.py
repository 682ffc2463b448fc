"""Customizing `fit`: train_step, test_step, metrics, sample weights, and a GAN."""

# %% Setup
import numpy as np
import tensorflow as tf
from notes import note, save_notes
from tensorflow import keras

random = np.random.default_rng(31)
x = random.normal(size=(128, 6)).astype(np.float32)
y = (x @ random.normal(size=(6, 1)) + 0.1 * random.normal(size=(128, 1))).astype(np.float32)


def make_model(model_class):
    inputs = keras.Input(shape=(6,))
    model = model_class(inputs, keras.layers.Dense(1)(inputs))
    model.set_weights([np.linspace(-1.0, 1.0, 6)[:, None], np.zeros(1)])
    return model


# %% train_step with the loss and metrics of compile
class CustomStep(keras.Model):
    """The default training step, written out."""

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            predictions = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=predictions)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, predictions)
        return {metric.name: metric.result() for metric in self.metrics}


model = make_model(CustomStep)
model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse", metrics=["mae"])
history = model.fit(x, y, epochs=3, batch_size=32, shuffle=False, verbose=0)
note(overridden=history.history)


# %% train_step with custom losses and metrics
class CustomMetrics(keras.Model):
    """Uses only the optimizer of compile."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.error = keras.metrics.MeanAbsoluteError(name="error")
        self.loss_fn = keras.losses.MeanSquaredError()

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            predictions = self(x, training=True)
            loss = self.loss_fn(y, predictions)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        self.loss_tracker.update_state(loss)
        self.error.update_state(y, predictions)
        return {"loss": self.loss_tracker.result(), "error": self.error.result()}

    @property
    def metrics(self):
        return [self.loss_tracker, self.error]


model = make_model(CustomMetrics)
model.compile(optimizer=keras.optimizers.SGD(0.1, momentum=0.5), jit_compile=False)
history = model.fit(x, y, epochs=4, batch_size=32, shuffle=False, verbose=0)
note(custom_metrics=history.history)


# %% Sample weights
class Weighted(keras.Model):
    """Accepts data with or without sample weights."""

    def train_step(self, data):
        x, y, sample_weight = data if len(data) == 3 else (*data, None)
        with tf.GradientTape() as tape:
            predictions = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=predictions, sample_weight=sample_weight)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, predictions, sample_weight=sample_weight)
        return {metric.name: metric.result() for metric in self.metrics}


model = make_model(Weighted)
model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse", metrics=["mae"], jit_compile=False)
weights = np.linspace(0.0, 2.0, 128).astype(np.float32)
history = model.fit(x, y, sample_weight=weights, epochs=2, batch_size=64, shuffle=False, verbose=0)
note(weighted=history.history)


# %% test_step
class CustomTest(keras.Model):
    """The default evaluation step, written out."""

    def test_step(self, data):
        x, y = data
        predictions = self(x, training=False)
        loss = self.compute_loss(y=y, y_pred=predictions)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, predictions)
        return {metric.name: metric.result() for metric in self.metrics}


model = make_model(CustomTest)
model.compile(loss="mse", metrics=["mae"])
note(evaluated=model.evaluate(x, y, verbose=0))

# %% Callbacks, validation data and a dataset
lines = []
model = make_model(CustomStep)
model.compile(optimizer=keras.optimizers.RMSprop(0.02), loss="mse", jit_compile=False)
callback = keras.callbacks.LambdaCallback(
    on_epoch_end=lambda epoch, logs: lines.append(logs["loss"])
)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
history = model.fit(
    data, epochs=2, validation_data=(x[:32], y[:32]), callbacks=[callback], verbose=0
)
note(
    with_validation=history.history,
    callback_losses=lines,
    predicted=model.predict(x[:3], verbose=0),
)


# %% A GAN with fit
class Gan(keras.Model):
    """A generator and a discriminator, with an optimizer each."""

    def __init__(self, discriminator, generator):
        super().__init__()
        self.discriminator, self.generator = discriminator, generator
        self.d_loss_tracker = keras.metrics.Mean(name="d_loss")
        self.g_loss_tracker = keras.metrics.Mean(name="g_loss")
        self.built = True

    @property
    def metrics(self):
        return [self.d_loss_tracker, self.g_loss_tracker]

    def compile(self, d_optimizer, g_optimizer, loss_fn):
        super().compile()
        self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss_fn

    def train_step(self, data):
        real, noise = data
        if isinstance(real, tuple):
            real = real[0]
        size = tf.shape(real)[0]
        generated = self.generator(noise)
        both = tf.concat([generated, real], axis=0)
        labels = tf.concat([tf.ones((size, 1)), tf.zeros((size, 1))], axis=0)
        with tf.GradientTape() as tape:
            d_loss = self.loss_fn(labels, self.discriminator(both))
        grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply(grads, self.discriminator.trainable_weights)
        with tf.GradientTape() as tape:
            g_loss = self.loss_fn(tf.zeros((size, 1)), self.discriminator(self.generator(noise)))
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply(grads, self.generator.trainable_weights)
        self.d_loss_tracker.update_state(d_loss)
        self.g_loss_tracker.update_state(g_loss)
        return {"d_loss": self.d_loss_tracker.result(), "g_loss": self.g_loss_tracker.result()}


def network(inputs, outputs, seed):
    model = keras.Sequential(
        [
            keras.Input((inputs,)),
            keras.layers.Dense(8, activation="tanh"),
            keras.layers.Dense(outputs),
        ]
    )
    random = np.random.default_rng(seed)
    model.set_weights([random.normal(0, 0.4, w.shape) for w in model.get_weights()])
    return model


gan = Gan(discriminator=network(6, 1, 1), generator=network(2, 6, 2))
gan.compile(
    d_optimizer=keras.optimizers.Adam(0.003),
    g_optimizer=keras.optimizers.Adam(0.003),
    loss_fn=keras.losses.BinaryCrossentropy(from_logits=True),
)
noise = random.normal(size=(128, 2)).astype(np.float32)
data = tf.data.Dataset.from_tensor_slices((x, noise)).batch(32)
note(gan=gan.fit(data, epochs=2, verbose=0).history)

save_notes()
