"""Checkpoints: stopping and going on, restoring parts, and parts that are made later."""

# %% What everything below needs
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from noting import note, refused, save_notes

folder = pathlib.Path(tempfile.mkdtemp())


class Net(tf.keras.Model):
    """One layer."""

    def __init__(self):
        super().__init__()
        self.l1 = tf.keras.layers.Dense(5)

    def call(self, x):
        return self.l1(x)


def started():
    """A net with weights that are the same in every run."""
    net = Net()
    net(tf.zeros([1, 1]))
    net.l1.set_weights([np.linspace(-0.5, 0.5, 5)[None], np.zeros(5)])
    return net


# %% Weights alone
net = started()
net.save_weights(str(folder / "easy.weights.h5"))
other = started()
other.l1.set_weights([np.zeros([1, 5]), np.ones(5)])
other.load_weights(str(folder / "easy.weights.h5"))
note(weights_alone=other.l1.get_weights())


# %% Data and a step of training
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


def everything():
    """What training needs, with a checkpoint and its manager."""
    net, optimizer = started(), tf.keras.optimizers.Adam(0.1)
    iterator = iter(toy_data())
    checkpoint = tf.train.Checkpoint(
        step=tf.Variable(1), optimizer=optimizer, net=net, iterator=iterator
    )
    manager = tf.train.CheckpointManager(checkpoint, str(folder / "run"), max_to_keep=3)
    return net, optimizer, iterator, checkpoint, manager


def train(steps):
    net, optimizer, iterator, checkpoint, manager = everything()
    checkpoint.restore(manager.latest_checkpoint)
    came_from = manager.latest_checkpoint and pathlib.Path(manager.latest_checkpoint).name
    losses = []
    for _ in range(steps):
        losses.append(train_step(net, next(iterator), optimizer))
        checkpoint.step.assign_add(1)
        if int(checkpoint.step) % 5 == 0:
            manager.save()
    kept = [pathlib.Path(path).name for path in manager.checkpoints]
    return {"from": came_from, "losses": losses, "step": checkpoint.step, "kept": kept}


# %% Training that stops, and goes on where it was
note(first_part=train(14), second_part=train(10))
note(latest=pathlib.Path(tf.train.latest_checkpoint(str(folder / "run"))).name)

# %% A part alone: the path to it is enough
bias = tf.Variable(tf.zeros([5]))
layer = tf.train.Checkpoint(bias=bias)
root = tf.train.Checkpoint(net=tf.train.Checkpoint(l1=layer))
status = root.restore(tf.train.latest_checkpoint(str(folder / "run")))
status.assert_existing_objects_matched()
note(bias_alone=bias)
with refused("not_all_is_used", AssertionError):
    status.assert_consumed()

# %% A part that is made later gets its value when it is there
kernel = tf.Variable(tf.zeros([1, 5]))
before = kernel.numpy()
layer.kernel = kernel
note(before_it_is_attached=before, after_it_is_attached=kernel)


# %% A module that makes its variables in its first call
class Late(tf.Module):
    """Looks at its first input."""

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
note(late_answer=late(tf.ones([1, 3])))

# %% What is in a checkpoint
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
    the_same_names=sorted(shapes) == sorted(listed),
)

# %% Lists and dictionaries
save = tf.train.Checkpoint()
save.listed = [tf.Variable(1.0)]
save.listed.append(tf.Variable(2.0))
save.mapped = {"one": save.listed[0]}
save.mapped["two"] = save.listed[1]
saved = save.save(str(folder / "lists"))

back = tf.train.Checkpoint()
second = tf.Variable(0.0)
back.mapped = {"two": second}
back.restore(saved)
first = tf.Variable(0.0)
back.listed = []
back.listed.append(first)
note(second=second, first=first, file=pathlib.Path(saved).name)

# %% Attributes, as many as one likes; written without a number
plain = tf.train.Checkpoint(a=tf.Variable([1.0, 2.0]), b=tf.Module())
plain.b.inside = tf.Variable(3)
written = plain.write(str(folder / "plain"))
plain.a.assign([0.0, 0.0])
plain.b.inside.assign(0)
plain.read(written).assert_consumed()
note(a=plain.a, inside=plain.b.inside)

# %% Nothing to restore, and a file that is not there
fresh = tf.train.Checkpoint(a=tf.Variable(1.0))
fresh.restore(None)
note(nothing=tf.train.latest_checkpoint(str(folder / "nowhere")), fresh=fresh.a)
with refused("no_such_file", tf.errors.NotFoundError, OSError):
    fresh.restore(str(folder / "nothing-1"))

# %% A manager that counts by a step, and restores or starts
step = tf.Variable(0, dtype=tf.int64)
counted = tf.train.Checkpoint(step=step)
manager = tf.train.CheckpointManager(
    counted, str(folder / "counted"), max_to_keep=2, step_counter=step, checkpoint_interval=2
)
note(starts=manager.restore_or_initialize())
names = []
for _ in range(5):
    step.assign_add(1)
    name = manager.save(check_interval=True)
    names.append(name and pathlib.Path(name).name)
note(saved_every_second=names)

save_notes()
