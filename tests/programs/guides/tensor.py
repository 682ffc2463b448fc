"""Tensors: ranks, shapes, indexing, dtypes, broadcasting; ragged, string and sparse tensors."""

# %% Setup
import numpy as np
import tensorflow as tf
from notes import expect_error, note, save_notes

# %% Ranks
single = tf.constant(4)
vector = tf.constant([2.0, 3.0, 4.0])
matrix = tf.constant([[1, 2], [3, 4], [5, 6]], dtype=tf.float16)
cube = tf.reshape(tf.range(30), [3, 2, 5])
print(single)
print(vector)
print(matrix)
print(cube)
note(
    single=[single, single.dtype, single.shape],
    vector=[vector, vector.dtype],
    matrix=[matrix, matrix.dtype],
    cube=[cube, cube.dtype, cube.shape],
    scalar_and_vector_text=[str(single), repr(single), str(vector), repr(vector)],
    matrix_text=[str(matrix), repr(matrix)],
)

# %% To NumPy and back
note(as_array=np.array(matrix), as_numpy=cube.numpy(), back=tf.convert_to_tensor(np.eye(2)))

# %% Arithmetic on matrices
a = tf.constant([[1, 2], [3, 4]])
b = tf.ones([2, 2], dtype=tf.int32) * 3
note(
    added=tf.add(a, b),
    multiplied=tf.multiply(a, b),
    matrix_product=tf.matmul(a, b),
    by_operators=[a + b, a * b, a @ b, a - b, a // b, a % b, a**2, -a, a / b],
)
scores = tf.constant([[4.0, 5.0], [10.0, 1.0]])
note(
    largest=tf.reduce_max(scores),
    argmax=tf.math.argmax(scores),
    softmax=tf.nn.softmax(scores),
    list_maximum=tf.reduce_max([1.0, 5.0, 3.0]),
    array_maximum=tf.reduce_max(np.array([1, 7, 3])),
)

# %% Shapes
block = tf.zeros([3, 2, 4, 5])
note(
    dtype=block.dtype,
    ndim=block.ndim,
    shape=block.shape,
    first_dimension=block.shape[0],
    last_dimension=block.shape[-1],
    elements=tf.size(block),
    rank_as_tensor=tf.rank(block),
    shape_as_tensor=tf.shape(block),
    shape_class=str(type(block.shape).__name__),
)

# %% Indexing along one axis
fibonacci = tf.constant([0, 1, 1, 2, 3, 5, 8, 13, 21, 34])
note(
    first=fibonacci[0],
    last=fibonacci[-1],
    all=fibonacci[:],
    before=fibonacci[:4],
    after=fibonacci[4:],
    between=fibonacci[2:7],
    every_second=fibonacci[::2],
    reversed=fibonacci[::-1],
    element_shape=fibonacci[0].shape,
    slice_shape=fibonacci[:1].shape,
)

# %% Indexing along several axes
note(
    one=matrix[1, 1],
    row=matrix[1, :],
    column=matrix[:, 1],
    last_row=matrix[-1, :],
    first_of_last_column=matrix[0, -1],
    all_but_the_first=matrix[1:, :],
    last_along_axis=cube[:, :, 4],
    with_dots=cube[..., 1],
    new_axis=vector[:, tf.newaxis].shape,
)
with expect_error("out_of_range", tf.errors.InvalidArgumentError, IndexError):
    fibonacci[20]
with expect_error("item_assignment", TypeError):
    fibonacci[0] = 1

# %% Reshaping and transposition
column = tf.constant([[1], [2], [3]])
note(
    list_of_shape=column.shape.as_list(),
    reshaped=tf.reshape(column, [1, 3]),
    flat=tf.reshape(cube, [-1]),
    joined=tf.reshape(cube, [3 * 2, 5]),
    joined_by_rest=tf.reshape(cube, [3, -1]),
    split_across_axes=tf.reshape(cube, [2, 3, 5]),
    transposed=tf.transpose(cube, perm=[1, 0, 2]),
)
with expect_error("wrong_shape", tf.errors.InvalidArgumentError, ValueError):
    tf.reshape(cube, [7, -1])

# %% dtypes
exact = tf.constant([2.2, 3.3, 4.4], dtype=tf.float64)
half = tf.cast(exact, dtype=tf.float16)
whole = tf.cast(half, dtype=tf.uint8)
note(exact=exact, half=half, whole=whole, names=[exact.dtype, half.dtype, whole.dtype])
with expect_error("mixed_dtypes", tf.errors.InvalidArgumentError, TypeError, ValueError):
    tf.constant([1.0]) + tf.constant([1])

# %% Broadcasting
x = tf.constant([1, 2, 3])
z = tf.constant([2, 2, 2])
tall = tf.reshape(x, [3, 1])
wide = tf.range(1, 5)
note(
    scalar_products=[tf.multiply(x, 2), x * 2, x * z],
    outer=tf.multiply(tall, wide),
    broadcast=tf.broadcast_to(tf.constant([1, 2, 3]), [3, 3]),
    broadcast_shape=tf.broadcast_static_shape(tall.shape, wide.shape),
)
with expect_error("broadcast_error", tf.errors.InvalidArgumentError, ValueError):
    tf.ones([2, 3]) + tf.ones([2, 4])

# %% Ragged tensors
rows = [[0, 1, 2, 3], [4, 5], [6, 7, 8], [9]]
with expect_error("uneven_rows", ValueError):
    tf.constant(rows)
ragged = tf.ragged.constant(rows)
print(ragged)
note(
    ragged=ragged,
    ragged_shape=ragged.shape,
    ragged_text=repr(ragged),
    lengths=ragged.row_lengths(),
    sums=tf.reduce_sum(ragged, axis=1),
    padded=ragged.to_tensor(default_value=-1),
    squared=ragged * ragged,
)

# %% Strings
line = tf.constant("Gray wolf")
print(line)
lines = tf.constant(["Gray wolf", "Quick brown fox", "Lazy dog"])
print(lines)
note(
    line=[line, line.dtype, line.shape],
    lines=lines,
    emoji=tf.constant("🥳👍").numpy().decode("utf-8"),
    split=tf.strings.split(line, sep=" "),
    split_all=tf.strings.split(lines),
    numbers=tf.strings.to_number(tf.strings.split(tf.constant("1 10 100"), " ")),
    characters=tf.strings.bytes_split(tf.constant("Duck")),
    codes=tf.io.decode_raw(tf.constant("Duck"), tf.uint8),
    lengths_of_lines=tf.strings.length(lines),
    joined_strings=tf.strings.join(["a", "b"], separator="-"),
)
birds = tf.constant("アヒル 🦆")
note(
    unicode_bytes=tf.strings.bytes_split(birds).shape,
    unicode_split=[s.decode("utf-8") for s in tf.strings.unicode_split(birds, "UTF-8").numpy()],
    unicode_values=tf.strings.unicode_decode(birds, "UTF-8"),
)

# %% Sparse tensors
sparse = tf.sparse.SparseTensor(indices=[[0, 0], [1, 2]], values=[1, 2], dense_shape=[3, 4])
print(sparse)
note(
    sparse=sparse,
    dense=tf.sparse.to_dense(sparse),
    sparse_shape=sparse.dense_shape,
    dense_round_trip=tf.sparse.to_dense(tf.sparse.from_dense([[0, 7], [8, 0]])),
    times_dense=tf.sparse.sparse_dense_matmul(
        tf.cast(sparse, tf.float32), tf.ones([4, 2], tf.float32)
    ),
)

save_notes()
