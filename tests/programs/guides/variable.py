"""Variables: creation, assignment, names, trainability and device placement."""

# %% Setup
import numpy as np
import tensorflow as tf
from notes import expect_error, note, save_notes

# %% Creation from a tensor or lists, with any dtype
heights = tf.constant([[1.72, 1.65], [1.58, 1.91]])
measured = tf.Variable(heights)
present = tf.Variable([True, False, True])
waves = tf.Variable([3 + 4j, -1j])
labels = tf.Variable(["pine", "oak"])
counts = tf.Variable(np.arange(6, dtype=np.int16).reshape(2, 3))
for name, variable in {
    "measured": measured,
    "present": present,
    "waves": waves,
    "labels": labels,
    "counts": counts,
}.items():
    note(**{name: [variable.shape, variable.dtype, variable.numpy()]})
print(measured)
note(text=repr(tf.Variable([1.5, 2.5], name="pair")).replace(":0", ""))

# %% A variable acts like a tensor, but cannot be reshaped
print("as a tensor:", tf.convert_to_tensor(measured))
flat = tf.reshape(measured, [1, 4])
note(
    largest=tf.math.argmax(measured),
    converted=tf.convert_to_tensor(measured),
    reshaped=flat,
    original_shape=measured.shape,
    product=measured @ measured,
    indexed=measured[0, 1],
    compared=measured > 1.7,
    rank=tf.rank(measured),
    hashes=measured.ref().deref() is measured,
)

# %% Assignment
level = tf.Variable([2.0, 3.0])
level.assign([1, 2])
first = level.numpy()
level.assign_add([0.5, 0.25])
second = level.numpy()
level.assign_sub([0.25, 0.25])
note(assigned=first, added=second, subtracted=level)
with expect_error("wrong_shape", ValueError):
    level.assign([1.0, 2.0, 3.0])
with expect_error("wrong_dtype", TypeError, ValueError):
    level.assign(["a", "b"])
free = tf.Variable([1.0], shape=tf.TensorShape([None]))
free.assign([1.0, 2.0, 3.0])
note(free_shape=[free.shape, tf.shape(free)])

# %% Assignment to parts of a variable
board = tf.Variable(tf.zeros([3, 3]))
board[1].assign([1.0, 2.0, 3.0])
board[0, 2].assign(9.0)
board.scatter_nd_update([[2, 0], [2, 1]], [5.0, 6.0])
board.scatter_add(tf.IndexedSlices(values=[[0.5, 0.5, 0.5]], indices=[2]))
note(board=board)

# %% A copy is an independent variable
original = tf.Variable([2.0, 3.0])
copied = tf.Variable(original)
original.assign([5, 6])
note(original=original, copied=copied, added_to=original.assign_add([2, 3]), copied_still=copied)

# %% Different variables may have the same name
tree = tf.Variable(heights, name="tree")
other_tree = tf.Variable(heights + 1, name="tree")
note(
    names=[tree.name.split(":")[0], other_tree.name.split(":")[0]],
    equal_elements=tree == other_tree,
    same_object=tree is other_tree,
    by_reference=len({tree.ref(), other_tree.ref(), tree.ref()}),
)

# %% Variables that are not trainable
epoch = tf.Variable(1, trainable=False)
rate = tf.Variable(0.1, trainable=False)
weight = tf.Variable(2.0)
with tf.GradientTape() as tape:
    cost = rate * weight**2
note(frozen=tape.gradient(cost, [weight, rate]), trainable=[epoch.trainable, weight.trainable])

# %% Device placement
with tf.device("CPU:0"):
    left = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    right = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    placed = tf.matmul(left, right)
note(placed=placed, device=left.device.split("/")[-1], result_device=placed.device.split("/")[-1])
with tf.device("CPU:0"):
    scaled = tf.Variable([[1.0, 2.0, 3.0]])
with tf.device("/device:CPU:0"):
    note(across_devices=left * scaled)

# %% A function that assigns to a variable
total = tf.Variable(0.0)


@tf.function
def add_up(value):
    total.assign_add(value)
    return total.read_value()


note(added_up=[add_up(tf.constant(number)) for number in (1.0, 2.0, 4.0)], total=total)

# %% Initialization by a callable
late = tf.Variable(lambda: tf.ones([2, 2]) * 3.0, dtype=tf.float32)
note(late=late, late_value=late.value())

save_notes()
