"""A training loop with a strategy: losses, metrics, checkpoints, and epochs in a function."""

# %% Setup
import os

import tensorflow as tf
from recording import images, is_chief, make_strategy, new_folder, note, set_weights

strategy = make_strategy()
note("replicas", strategy.num_replicas_in_sync)
PER_REPLICA = 16 // strategy.num_replicas_in_sync
GLOBAL_BATCH = PER_REPLICA * strategy.num_replicas_in_sync

# %% Data
train_x, train_y = images(44)
test_x, test_y = images(20, seed=9)
train_data = tf.data.Dataset.from_tensor_slices((train_x, train_y)).batch(GLOBAL_BATCH)
test_data = tf.data.Dataset.from_tensor_slices((test_x, test_y)).batch(GLOBAL_BATCH)
train_data = strategy.experimental_distribute_dataset(train_data)
test_data = strategy.experimental_distribute_dataset(test_data)


# %% Model
def create_model():
    penalty = tf.keras.regularizers.L2(1e-3)
    return tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 1)),
            tf.keras.layers.Conv2D(4, 3, activation="relu", kernel_regularizer=penalty),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(8, activation="relu", kernel_regularizer=penalty),
            tf.keras.layers.Dense(4),
        ]
    )


with strategy.scope():
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def compute_loss(labels, predictions, penalties):
        loss = tf.nn.compute_average_loss(
            loss_object(labels, predictions), global_batch_size=GLOBAL_BATCH
        )
        if penalties:
            loss += tf.nn.scale_regularization_loss(tf.add_n(penalties))
        return loss

    test_loss = tf.keras.metrics.Mean(name="test_loss")
    train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
    test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")
    model = create_model()
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)
    optimizer.build(model.trainable_variables)
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)
set_weights(model)


# %% Steps
def train_step(inputs):
    pixels, labels = inputs
    with tf.GradientTape() as tape:
        predictions = model(pixels, training=True)
        loss = compute_loss(labels, predictions, model.losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    train_accuracy.update_state(labels, predictions)
    return loss


def test_step(inputs):
    pixels, labels = inputs
    predictions = model(pixels, training=False)
    test_loss.update_state(loss_object(labels, predictions))
    test_accuracy.update_state(labels, predictions)


@tf.function
def distributed_train_step(inputs):
    losses = strategy.run(train_step, args=(inputs,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


@tf.function
def distributed_test_step(inputs):
    return strategy.run(test_step, args=(inputs,))


# %% Epochs
steps, epochs = [], []
for _ in range(3):
    for batch in train_data:
        steps.append(distributed_train_step(batch))
    for batch in test_data:
        distributed_test_step(batch)
    epochs.append([test_loss.result(), train_accuracy.result(), test_accuracy.result()])
    for metric in (test_loss, train_accuracy, test_accuracy):
        metric.reset_state()
note("losses", steps)
note("metrics of epochs", epochs)

# %% A checkpoint, restored without a strategy
folder = new_folder()
if is_chief(strategy):
    path = checkpoint.save(os.path.join(folder, "ckpt"))
    alone = create_model()
    restored = tf.train.Checkpoint(model=alone)
    restored.restore(tf.train.latest_checkpoint(folder)).expect_partial()
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    accuracy.update_state(test_y, alone(test_x, training=False))
    note("restored", accuracy.result())

# %% An iterator, and a whole epoch in one function
iterator = iter(train_data)
note("from an iterator", [distributed_train_step(next(iterator)) for _ in range(2)])


@tf.function
def distributed_epoch(dataset):
    total, count = 0.0, 0
    for batch in dataset:
        losses = strategy.run(train_step, args=(batch,))
        total += strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)
        count += 1
    return total / tf.cast(count, tf.float32)


note("mean losses of epochs", [distributed_epoch(train_data) for _ in range(2)])
