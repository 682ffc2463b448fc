"""The Core API: image compression with the singular value decomposition."""

# %% Setup
import numpy as np
import tensorflow as tf
from notes import note, save_notes

# %% The singular value decomposition of a matrix
random = np.random.default_rng(2)
matrix = tf.constant(random.uniform(size=(20, 14)), tf.float32)
s, u, v = tf.linalg.svd(matrix)
rebuilt = u @ tf.linalg.diag(s) @ tf.transpose(v)
by_einsum = tf.einsum("s,us,vs -> uv", s, u, v)
note(
    values=s,
    rebuilt=tf.reduce_max(tf.abs(matrix - rebuilt)) < 1e-5,
    by_einsum=by_einsum[:2],
    orthogonal=tf.reduce_max(tf.abs(tf.transpose(u) @ u - tf.eye(14))) < 1e-5,
)


# %% Low-rank approximation
def low_rank(s, u, v, r):
    part = tf.einsum("...s,...us,...vs->...uv", s[..., :r], u[..., :, :r], v[..., :, :r])
    size = tf.size(u[..., :, :r]) + tf.size(s[..., :r]) + tf.size(v[..., :, :r])
    return part, size


for r in (2, 7):
    part, size = low_rank(s, u, v, r)
    note(**{f"rank_{r}": tf.norm(matrix - part), f"size_{r}": size})
note(size=f"{tf.size(matrix)} elements")

# %% An image: three color channels at once
yy, xx = np.mgrid[0:48, 0:64]
waves = [np.sin(xx / 7) + np.cos(yy / 5), np.sin((xx + yy) / 9), np.cos(xx * yy / 300)]
noise = random.normal(0, 6, (48, 64, 3))
picture = np.clip(127 + 55 * np.stack(waves, -1) + noise, 0, 255).astype(np.uint8)


def compress(picture, r):
    image = tf.convert_to_tensor(picture) / 255
    batched = tf.transpose(image, [2, 0, 1])
    s, u, v = tf.linalg.svd(batched)
    part, size = low_rank(s, u, v, r)
    rebuilt_image = tf.clip_by_value(tf.transpose(part, [1, 2, 0]), 0.0, 1.0)
    return (
        rebuilt_image,
        size / tf.size(picture),
        tf.reduce_mean(tf.abs(tf.cast(image, rebuilt_image.dtype) - rebuilt_image)),
    )


for r in (1, 4, 16):
    back, share, error = compress(picture, r)
    note(**{f"compressed_{r}": [back.shape, back.dtype, share, error]})

# %% The rank for a target size, and for a target fraction of the energy
rows, columns, _ = picture.shape
rank = int(0.3 * rows * columns / (rows + columns + 1))
note(rank=rank, share=compress(picture, rank)[1])
tall = tf.transpose(tf.cast(picture, tf.float32) / 255.0, [2, 0, 1])
energies = tf.linalg.svd(tall, compute_uv=False) ** 2
shares = tf.cumsum(energies, axis=-1) / tf.reduce_sum(energies, axis=-1, keepdims=True)
needed = tf.argmax(tf.cast(shares > 0.99, tf.int32), axis=-1) + 1
note(shares=shares[:, :3], needed=needed, largest_rank=tf.reduce_max(needed))

# %% Other decompositions
square = tf.matmul(matrix, matrix, transpose_a=True)
values, vectors = tf.linalg.eigh(square)
q, r = tf.linalg.qr(matrix)
note(
    eigenvalues=values,
    roots=tf.reduce_max(tf.abs(tf.sqrt(values[::-1]) - s)) < 1e-4,
    qr=tf.reduce_max(tf.abs(q @ r - matrix)) < 1e-5,
    cholesky=tf.linalg.cholesky(square)[:3, :3],
    determinant=tf.linalg.slogdet(square),
    rank_of=tf.linalg.matrix_rank(matrix),
    norm=tf.norm(matrix, ord=2),
)

# %% Low-rank factors trained by gradient descent
left, right = (
    tf.Variable(np.linspace(0.1, 1.0, n * 2).reshape(n, 2), dtype=tf.float32) for n in (20, 14)
)
errors = []
for _ in range(50):
    with tf.GradientTape() as tape:
        error = tf.reduce_mean((matrix - left @ tf.transpose(right)) ** 2)
    for variable, g in zip((left, right), tape.gradient(error, (left, right))):
        variable.assign_sub(2.0 * g)
    errors.append(error)
note(errors=errors[::10])

save_notes()
