"""Slicing, gathering and scattering of tensors."""

# %% Setup
import numpy as np
import tensorflow as tf
from notes import expect_error, note, save_notes

# %% Slices of a vector
tones = tf.constant([440, 494, 523, 587, 659, 698, 784, 880])
note(
    sliced=tf.slice(tones, begin=[1], size=[3]),
    with_brackets=tones[1:4],
    from_the_end=tones[-3:],
    to_the_end=tf.slice(tones, [5], [-1]),
    strided=tones[1:-1:2],
    by_strides=tf.strided_slice(tones, [7], [0], [-3]),
)

# %% Slices of tensors of higher rank
week = tf.reshape(tf.range(35), [5, 7])
note(
    block=week[:-1, 1:3],
    block_sliced=tf.slice(week, begin=[0, 1], size=[4, 2]),
    corners=week[::4, ::6],
)
cube = tf.reshape(tf.range(60), [3, 4, 5])
note(
    box=tf.slice(cube, begin=[1, 1, 0], size=[1, 1, 2]),
    last_axis=cube[..., -1],
    new_axis_shape=cube[tf.newaxis, 1, ..., 2:4].shape,
)
with expect_error("out_of_bounds", tf.errors.InvalidArgumentError, ValueError):
    tf.slice(tones, [6], [5])

# %% Gathering by index
alphabet = tf.constant(list("abcdefghijklmnopqrstuvwxyz"))
note(
    letters=tf.gather(alphabet, indices=[2, 0, 19, 18]),
    evens=tf.gather(tones, tf.range(0, 8, 2)),
    rows=tf.gather(week, [4, 0]),
    columns=tf.gather(week, [6, 0], axis=1),
    per_row=tf.gather(week, [[0], [1], [2], [3], [4]], batch_dims=1),
    masked=tf.boolean_mask(week, week % 5 == 0),
)

# %% Gathering by coordinates
note(
    cells=tf.gather_nd(week, indices=[[2, 3], [3, 4]]),
    whole_rows=tf.gather_nd(week, [[2], [0]]),
    from_a_cube=tf.gather_nd(cube, indices=[[0, 0, 1], [2, 3, 4]]),
    nested_indices=tf.gather_nd(cube, indices=[[[0, 0], [0, 2]], [[1, 0], [1, 2]]]),
    in_batches=tf.gather_nd(cube, [[1], [0], [2]], batch_dims=1),
)

# %% Scattering into zeros
indices = tf.constant([[1], [3], [5]])
note(
    scattered=tf.scatter_nd(indices, tf.constant([11, 33, 55]), tf.constant([8])),
    repeated_index=tf.scatter_nd([[1], [1]], [2.0, 3.0], [3]),
    rows_scattered=tf.scatter_nd([[2], [0]], tf.ones([2, 3]), [4, 3]),
)
gathered = tf.gather_nd(tones, indices)
note(gather_then_scatter=tf.scatter_nd(indices, gathered, [8]))

# %% Scattering into a copy of a tensor
note(
    added=tf.tensor_scatter_nd_add(tones, indices, [1, 2, 3]),
    subtracted=tf.tensor_scatter_nd_sub(tones, indices, [1, 2, 3]),
    replaced=tf.tensor_scatter_nd_update(tones, indices, [-1, -2, -3]),
    least=tf.tensor_scatter_nd_min(tones, indices, [500, 500, 500]),
    most=tf.tensor_scatter_nd_max(tones, indices, [600, 600, 600]),
    cells_replaced=tf.tensor_scatter_nd_update(week, [[0, 0], [4, 6]], [100, 200]),
    rows_replaced=tf.tensor_scatter_nd_update(week, [[1]], [[7, 6, 5, 4, 3, 2, 1]]),
)
with expect_error("index_out_of_range", tf.errors.InvalidArgumentError, IndexError):
    tf.tensor_scatter_nd_update(tones, [[8]], [1])

# %% Sparse tensors
sparse = tf.sparse.SparseTensor([[0, 1], [2, 2]], [3, 4], [4, 4])
note(
    sparse_block=tf.sparse.slice(sparse, start=[0, 0], size=[3, 2]),
    into_zeros=tf.tensor_scatter_nd_add(tf.zeros([4, 4], tf.int32), sparse.indices, sparse.values),
)

# %% Gradients
source = tf.Variable(np.linspace(-1.0, 1.0, 8).astype(np.float32))
with tf.GradientTape(persistent=True) as tape:
    gathered = tf.gather(source, [1, 1, 6]) ** 2
    updated = tf.tensor_scatter_nd_update(source, [[0], [7]], [5.0, 5.0]) ** 2
    sliced = tf.slice(source, [2], [4]) ** 3
note(
    gradient_of_gather=tape.gradient(gathered, source),
    gradient_of_update=tape.gradient(updated, source),
    gradient_of_slice=tape.gradient(sliced, source),
)

save_notes()
