"""Workers that train with fit: a backup, checkpoints of each worker, models saved by the chief."""

# %% Setup
import os

import tensorflow as tf
from recording import images, is_chief, make_strategy, new_folder, note, set_weights

strategy = make_strategy()
folder = new_folder()
chief = is_chief(strategy)
task = strategy.cluster_resolver.task_id if os.environ.get("TF_CONFIG") else 0
x, y = images(48)
data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(12)
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = data.with_options(options)


# %% Model
def build_and_compile():
    model = tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 1)),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(8, activation="relu"),
            tf.keras.layers.Dense(4),
        ]
    )
    model.compile(
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=tf.keras.optimizers.SGD(learning_rate=0.1),
        metrics=["accuracy"],
    )
    return model


with strategy.scope():
    model = build_and_compile()
set_weights(model)

# %% Training, with a backup for restarts
callbacks = [tf.keras.callbacks.BackupAndRestore(backup_dir=os.path.join(folder, "backup"))]
history = model.fit(data, epochs=3, steps_per_epoch=5, callbacks=callbacks, verbose=0)
note("history", {name: history.history[name] for name in ("loss", "accuracy")})
note("the backup is deleted", not os.path.exists(os.path.join(folder, "backup")))

# %% A model: every worker saves, the chief's files are kept
path = os.path.join(folder, "model" if chief else f"worker_{task}", "model.keras")
os.makedirs(os.path.dirname(path), exist_ok=True)
model.save(path)
note("loaded", tf.keras.models.load_model(path).evaluate(x, y, verbose=0))

# %% A checkpoint: every worker saves, the chief's files are kept
checkpoint = tf.train.Checkpoint(model=model)
directory = os.path.join(folder, "ckpt" if chief else f"worker_{task}_ckpt")
manager = tf.train.CheckpointManager(checkpoint, directory=directory, max_to_keep=1)
manager.save()
weights = model.get_weights()
model.set_weights([0 * w for w in weights])
checkpoint.restore(tf.train.latest_checkpoint(directory))
note("restored", [abs(a - b).max() for a, b in zip(model.get_weights(), weights, strict=True)])
