"""Checkpoints: resuming training, partial restoration and deferred restoration."""

# %% Setup
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from notes import expect_error, note, save_notes

folder = pathlib.Path(tempfile.mkdtemp())


class Net(tf.keras.Model):
    """One layer."""

    def __init__(self):
        super().__init__()
        self.l1 = tf.keras.layers.Dense(5)

    def call(self, x):
        return self.l1(x)


def make_net():
    """Creates a net with the same weights in every run."""
    net = Net()
    net(tf.zeros([1, 1]))
    net.l1.set_weights([np.linspace(-0.5, 0.5, 5)[None], np.zeros(5)])
    return net


# %% Weights only
net = make_net()
net.save_weights(str(folder / "easy.weights.h5"))
other = make_net()
other.l1.set_weights([np.zeros([1, 5]), np.ones(5)])
other.load_weights(str(folder / "easy.weights.h5"))
note(weights_only=other.l1.get_weights())


# %% Data and a training step
def toy_data():
    inputs = tf.range(10.0)[:, None]
    labels = inputs * 5.0 + tf.range(5.0)[None, :]
    return tf.data.Dataset.from_tensor_slices({"x": inputs, "y": labels}).repeat().batch(2)


def train_step(net, example, optimizer):
    with tf.GradientTape() as tape:
        output = net(example["x"])
        loss = tf.reduce_mean(tf.abs(output - example["y"]))
    gradients = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    return loss


def make_training_state():
    """Creates all objects for training, with a checkpoint and its manager."""
    net, optimizer = make_net(), tf.keras.optimizers.Adam(0.1)
    iterator = iter(toy_data())
    checkpoint = tf.train.Checkpoint(
        step=tf.Variable(1), optimizer=optimizer, net=net, iterator=iterator
    )
    manager = tf.train.CheckpointManager(checkpoint, str(folder / "run"), max_to_keep=3)
    return net, optimizer, iterator, checkpoint, manager


def train(steps):
    net, optimizer, iterator, checkpoint, manager = make_training_state()
    checkpoint.restore(manager.latest_checkpoint)
    restored_from = manager.latest_checkpoint and pathlib.Path(manager.latest_checkpoint).name
    losses = []
    for _ in range(steps):
        losses.append(train_step(net, next(iterator), optimizer))
        checkpoint.step.assign_add(1)
        if int(checkpoint.step) % 5 == 0:
            manager.save()
    kept = [pathlib.Path(path).name for path in manager.checkpoints]
    return {"from": restored_from, "losses": losses, "step": checkpoint.step, "kept": kept}


# %% Training that stops and resumes
note(first_run=train(14), second_run=train(10))
note(latest=pathlib.Path(tf.train.latest_checkpoint(str(folder / "run"))).name)

# %% Partial restoration: objects are matched by their path
bias = tf.Variable(tf.zeros([5]))
layer = tf.train.Checkpoint(bias=bias)
root = tf.train.Checkpoint(net=tf.train.Checkpoint(l1=layer))
status = root.restore(tf.train.latest_checkpoint(str(folder / "run")))
status.assert_existing_objects_matched()
note(partial_restore=bias)
with expect_error("not_consumed", AssertionError):
    status.assert_consumed()

# %% Deferred restoration: a variable is restored when it is attached
kernel = tf.Variable(tf.zeros([1, 5]))
before = kernel.numpy()
layer.kernel = kernel
note(before_attachment=before, after_attachment=kernel)


# %% A module that creates its variables in its first call
class Late(tf.Module):
    """Takes its size from the first input."""

    def __init__(self):
        super().__init__()
        self.scale = None

    def __call__(self, x):
        if self.scale is None:
            self.scale = tf.Variable(tf.ones([x.shape[-1]]))
        return x * self.scale


early, late = Late(), Late()
early(tf.zeros([1, 3]))
early.scale.assign([2.0, 3.0, 4.0])
written = tf.train.Checkpoint(part=early).save(str(folder / "late"))
waiting = tf.train.Checkpoint(part=late)
waiting.restore(written)
note(deferred_output=late(tf.ones([1, 3])))

# %% Inspecting a checkpoint
path = tf.train.latest_checkpoint(str(folder / "run"))
listed = dict(tf.train.list_variables(path))
reader = tf.train.load_checkpoint(path)
shapes = reader.get_variable_to_shape_map()
steps = [name for name in listed if name.startswith("step/")]
note(
    step_is_listed=len(steps),
    step_shape=listed[steps[0]],
    step_value=tf.train.load_variable(path, steps[0]),
    read_value=reader.get_tensor(steps[0]),
    read_has=reader.has_tensor(steps[0]),
    read_shape=shapes[steps[0]],
    same_names=sorted(shapes) == sorted(listed),
)

# %% Lists and dictionaries
save = tf.train.Checkpoint()
save.listed = [tf.Variable(1.0)]
save.listed.append(tf.Variable(2.0))
save.mapped = {"one": save.listed[0]}
save.mapped["two"] = save.listed[1]
saved = save.save(str(folder / "lists"))

restored_steps = tf.train.Checkpoint()
second = tf.Variable(0.0)
restored_steps.mapped = {"two": second}
restored_steps.restore(saved)
first = tf.Variable(0.0)
restored_steps.listed = []
restored_steps.listed.append(first)
note(second=second, first=first, file=pathlib.Path(saved).name)

# %% Arbitrary attributes; `write` adds no number to the path
plain = tf.train.Checkpoint(a=tf.Variable([1.0, 2.0]), b=tf.Module())
plain.b.inside = tf.Variable(3)
written = plain.write(str(folder / "plain"))
plain.a.assign([0.0, 0.0])
plain.b.inside.assign(0)
plain.read(written).assert_consumed()
note(a=plain.a, inside=plain.b.inside)

# %% Restoring None, and restoring a missing file
fresh = tf.train.Checkpoint(a=tf.Variable(1.0))
fresh.restore(None)
note(no_checkpoint=tf.train.latest_checkpoint(str(folder / "nowhere")), fresh=fresh.a)
with expect_error("missing_file", tf.errors.NotFoundError, OSError):
    fresh.restore(str(folder / "nothing-1"))

# %% A manager with a step counter and a checkpoint interval
step = tf.Variable(0, dtype=tf.int64)
counted = tf.train.Checkpoint(step=step)
manager = tf.train.CheckpointManager(
    counted, str(folder / "counted"), max_to_keep=2, step_counter=step, checkpoint_interval=2
)
note(initial_restore=manager.restore_or_initialize())
names = []
for _ in range(5):
    step.assign_add(1)
    name = manager.save(check_interval=True)
    names.append(name and pathlib.Path(name).name)
note(saved_names=names)

save_notes()
