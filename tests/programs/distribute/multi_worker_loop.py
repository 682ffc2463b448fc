"""Workers with a training loop: data of each worker from a function, counters, checkpoints."""

# %% Setup
import os

import tensorflow as tf
from recording import images, is_chief, make_strategy, new_folder, note, set_weights

strategy = make_strategy()
folder = new_folder()
GLOBAL_BATCH, EPOCHS, STEPS = 8, 3, 5


# %% Data of a worker
def dataset_fn(context):
    x, y = images(40)
    size = context.get_per_replica_batch_size(GLOBAL_BATCH)
    data = tf.data.Dataset.from_tensor_slices((x, y))
    data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.repeat().batch(size).prefetch(2)


batches = strategy.distribute_datasets_from_function(dataset_fn)

# %% Model
with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 1)),
            tf.keras.layers.Conv2D(4, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(4),
        ]
    )
    optimizer = tf.keras.optimizers.RMSprop(learning_rate=0.005)
    optimizer.build(model.trainable_variables)
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
set_weights(model)


# %% A step
@tf.function
def train_step(iterator):
    """Runs one step in each replica and returns the loss of the global batch."""

    def step_fn(inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            predictions = model(x, training=True)
            losses = tf.keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="none"
            )(y, predictions)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=GLOBAL_BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        accuracy.update_state(y, predictions)
        return loss

    losses = strategy.run(step_fn, args=(next(iterator),))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


# %% Checkpoints
epoch = tf.Variable(0, trainable=False)
step_in_epoch = tf.Variable(0, trainable=False)
checkpoint = tf.train.Checkpoint(model=model, epoch=epoch, step_in_epoch=step_in_epoch)
task = strategy.cluster_resolver.task_id if os.environ.get("TF_CONFIG") else 0
directory = os.path.join(folder, "ckpt" if is_chief(strategy) else f"worker_{task}")
manager = tf.train.CheckpointManager(checkpoint, directory=directory, max_to_keep=1)
latest = tf.train.latest_checkpoint(directory)
if latest:
    checkpoint.restore(latest)

# %% Training
losses, accuracies = [], []
while epoch.numpy() < EPOCHS:
    iterator = iter(batches)
    while step_in_epoch.numpy() < STEPS:
        losses.append(train_step(iterator))
        step_in_epoch.assign_add(1)
    accuracies.append(accuracy.result())
    accuracy.reset_state()
    manager.save()
    epoch.assign_add(1)
    step_in_epoch.assign(0)
note("losses", losses)
note("accuracies", accuracies)
note("checkpoints", [os.path.basename(path) for path in manager.checkpoints])
