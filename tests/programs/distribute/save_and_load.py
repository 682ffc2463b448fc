"""Models that are trained, saved and loaded with and without strategies."""

# %% Setup
import os

import tensorflow as tf
from recording import images, is_chief, make_strategy, new_folder, note, set_weights

strategy = make_strategy()
folder = new_folder()
x, y = images(40)
train_data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
predict_data = tf.data.Dataset.from_tensor_slices(x[:12]).batch(4)


def get_model():
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.Input((8, 8, 1)),
                tf.keras.layers.Conv2D(4, 3, activation="relu"),
                tf.keras.layers.Flatten(),
                tf.keras.layers.Dense(4),
            ]
        )
        model.compile(
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            optimizer=tf.keras.optimizers.Adam(0.01),
            metrics=[tf.keras.metrics.SparseCategoricalAccuracy()],
        )
        return model


# %% Train and save
model = get_model()
set_weights(model)
note("losses", model.fit(train_data, epochs=2, verbose=0).history["loss"])
path = os.path.join(folder, "model.keras")

# %% Load without a strategy, then with one, and continue
if is_chief(strategy):
    model.save(path)
    plain = tf.keras.models.load_model(path)
    note("continued alone", plain.fit(train_data, epochs=2, verbose=0).history["loss"])
    one = tf.distribute.OneDeviceStrategy("/cpu:0")
    with one.scope():
        placed = tf.keras.models.load_model(path)
        note("continued on one device", placed.fit(train_data, epochs=1, verbose=0).history["loss"])

# %% A saved model: loaded, and called in replicas
if not os.environ.get("TF_CONFIG"):
    with strategy.scope():
        again = tf.keras.models.load_model(path)
    note("continued", again.fit(train_data, epochs=2, verbose=0).history["loss"])

    class Scores(tf.Module):
        def __init__(self, kernel):
            super().__init__()
            self.kernel = tf.Variable(kernel)

        @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 1], tf.float32)])
        def __call__(self, pixels):
            return {"scores": tf.reshape(pixels, [-1, 64]) @ self.kernel}

    with strategy.scope():
        scores = Scores(tf.reshape(tf.range(256.0), [64, 4]) / 256)
    saved = os.path.join(folder, "saved_model")
    tf.saved_model.save(scores, saved, signatures=scores.__call__.get_concrete_function())
    with strategy.scope():
        loaded = tf.saved_model.load(saved)
        infer = loaded.signatures["serving_default"]
        predicted = [
            strategy.reduce(
                "SUM", strategy.run(lambda x: infer(x)["scores"], args=(batch,)), axis=0
            )
            for batch in strategy.experimental_distribute_dataset(predict_data)
        ]
    note("predicted", predicted)
