"""Keras's fit with a strategy: callbacks, evaluation, and a model that is saved and loaded."""

# %% Setup
import os

import tensorflow as tf
from recording import images, is_chief, make_strategy, new_folder, note, set_weights

strategy = make_strategy()
folder = new_folder()
BATCH = 16  # of all replicas together

# %% Data
x, y = images(44)
train_data = tf.data.Dataset.from_tensor_slices((x, y)).cache().batch(BATCH)
eval_x, eval_y = images(20, seed=9)
eval_data = tf.data.Dataset.from_tensor_slices((eval_x, eval_y)).batch(BATCH)

# %% Model
with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 1)),
            tf.keras.layers.Conv2D(4, 3, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(8, activation="relu"),
            tf.keras.layers.Dense(4),
        ]
    )
    model.compile(
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=tf.keras.optimizers.Adam(),
        metrics=["accuracy"],
    )
set_weights(model)


# %% Callbacks
def schedule(epoch):
    return 0.02 if epoch < 2 else 0.005


class Rates(tf.keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.rates = []

    def on_epoch_end(self, epoch, logs=None):  # noqa: ARG002
        self.rates.append(float(self.model.optimizer.learning_rate.numpy()))


rates = Rates()
callbacks = [
    tf.keras.callbacks.ModelCheckpoint(
        filepath=os.path.join(folder, "ckpt_{epoch}.weights.h5"), save_weights_only=True
    ),
    tf.keras.callbacks.LearningRateScheduler(schedule),
    rates,
]
if not os.environ.get("WITHOUT_TENSORBOARD"):
    callbacks.append(tf.keras.callbacks.TensorBoard(log_dir=os.path.join(folder, "logs")))
history = model.fit(train_data, epochs=4, callbacks=callbacks, verbose=0)
note("history", {name: history.history[name] for name in ("loss", "accuracy")})
note("learning rates", rates.rates)
note("evaluated", model.evaluate(eval_data, verbose=0))
note("predicted", model.predict(eval_x[:3], verbose=0))

# %% The weights of an epoch, and the whole model
if is_chief(strategy):
    names = [name for name in sorted(os.listdir(folder)) if name.endswith("h5")]
    note("checkpoints", names)
    path = os.path.join(folder, "model.keras")
    model.save(path)
    alone = tf.keras.models.load_model(path)
    note("loaded without the strategy", alone.evaluate(eval_data, verbose=0))
    alone.load_weights(os.path.join(folder, "ckpt_1.weights.h5"))
    note("weights of the first epoch", alone.evaluate(eval_data, verbose=0))
