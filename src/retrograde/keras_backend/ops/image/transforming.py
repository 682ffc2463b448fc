"""Images turned, sheared, put in perspective or distorted."""

import numpy as np
from keras.src.random.seed_generator import draw_seed

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import inexact, promoted, single
from retrograde.keras_backend.ops.image._inputs import Images
from retrograde.keras_backend.ops.image.filters import gaussian_blur
from retrograde.keras_backend.ops.image.sampling import sampled
from retrograde.linalg import solve
from retrograde.ops.casting import ones_like, zeros_like
from retrograde.ops.random_numbers import random_normal
from retrograde.ops.shaping import concat, reshape, stack, unstack

AFFINE_TRANSFORM_INTERPOLATIONS = {"nearest": 0, "bilinear": 1}  # the order of each
AFFINE_TRANSFORM_FILL_MODES = {"constant", "nearest", "wrap", "mirror", "reflect"}


def _check(interpolation, fill_mode="constant"):
    if interpolation not in AFFINE_TRANSFORM_INTERPOLATIONS:
        raise ValueError(
            "Invalid value for argument `interpolation`. Expected of one "
            f"{set(AFFINE_TRANSFORM_INTERPOLATIONS)}. Received: interpolation={interpolation}"
        )
    if fill_mode not in AFFINE_TRANSFORM_FILL_MODES:
        raise ValueError(
            "Invalid value for argument `fill_mode`. Expected of one "
            f"{AFFINE_TRANSFORM_FILL_MODES}. Received: fill_mode={fill_mode}"
        )


def affine_transform(
    images,
    transform,
    interpolation="bilinear",
    fill_mode="constant",
    fill_value=0,
    data_format=None,
):
    """Images whose pixel at x, y is that at `(a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k`.

    `transform` holds `a0, a1, a2, b0, b1, b2, c0, c1`, and `k` is `c0 x + c1 y + 1`.
    """
    _check(interpolation, fill_mode)
    images = Images(images, data_format)
    transform = convert_to_tensor(transform)
    if transform.ndim not in (1, 2):
        raise ValueError(
            "Invalid transform rank: expected rank 1 (single transform) or rank 2 (batch of "
            f"transforms). Received input with shape: transform.shape={transform.shape}"
        )
    if transform.ndim == 1:
        transform = reshape(transform, shape=(1, transform.shape[0]))
    return _projected(images, transform, interpolation, fill_mode, fill_value)


def _projected(images, transform, interpolation, fill_mode, fill_value):
    x = images.batch()
    rows, columns = _grid(x)
    numbers = unstack(cast(transform, rows.dtype.name), axis=1)
    a0, a1, a2, b0, b1, b2, c0, c1 = (
        reshape(number, shape=(*number._spec.shape, 1, 1)) for number in numbers
    )
    k = c0 * columns + c1 * rows + 1
    across = (a0 * columns + a1 * rows + a2) / k
    down = (b0 * columns + b1 * rows + b2) / k
    order = AFFINE_TRANSFORM_INTERPOLATIONS[interpolation]
    return images.as_given(sampled(x, [down, across], order, fill_mode, fill_value))


def _grid(x):
    """The row and the column of each pixel, so that they broadcast, in float32 or float64."""
    _, height, width, _ = x._spec.shape
    dtype = "float64" if x.dtype.name == "float64" else "float32"
    rows, columns = np.arange(height)[:, None], np.arange(width)[None]
    return convert_to_tensor(rows, dtype), convert_to_tensor(columns, dtype)


def perspective_transform(
    images, start_points, end_points, interpolation="bilinear", fill_value=0, data_format=None
):
    """Images in which the corners `start_points` have moved to `end_points`."""
    _check(interpolation)
    images = Images(images, data_format)
    start, end = convert_to_tensor(start_points), convert_to_tensor(end_points)
    for name, points in (("start_points", start), ("end_points", end)):
        if points.ndim not in (2, 3) or points._spec.shape[-2:] != (4, 2):
            raise ValueError(
                f"Invalid {name} shape: expected (4,2) for a single image or (N,4,2) for a batch. "
                f"Received shape: {points.shape}"
            )
    if start._spec.shape != end._spec.shape:
        raise ValueError(
            "start_points and end_points must have the same shape. Received "
            f"start_points.shape={start.shape}, end_points.shape={end.shape}"
        )
    if start.ndim == 2:
        start, end = (reshape(points, shape=(1, 4, 2)) for points in (start, end))
    transform = compute_homography_matrix(start, end)
    return _projected(images, transform, interpolation, "constant", fill_value)


def compute_homography_matrix(start_points, end_points):
    """The eight numbers of the projection that takes `end_points` to `start_points`.

    Each pair of points gives two linear equations for them.
    """
    start, end = (inexact(points) for points in promoted(start_points, end_points))
    dtype = start.dtype.name
    start, end = single(start), single(end)
    batch = start.shape[0]
    one = concat(end, ones_like(end[:, :, :1]), axis=2)
    none = zeros_like(one)
    across = concat(one, none, -end * start[:, :, :1], axis=2)
    down = concat(none, one, -end * start[:, :, 1:], axis=2)
    matrix = reshape(stack(across, down, axis=2), shape=(batch, 8, 8))
    numbers = solve(matrix, reshape(start, shape=(batch, 8, 1)))
    return cast(reshape(numbers, shape=(batch, 8)), dtype)


def elastic_transform(
    images,
    alpha=20.0,
    sigma=5.0,
    interpolation="bilinear",
    fill_mode="reflect",
    fill_value=0.0,
    seed=None,
    data_format=None,
):
    """Images whose pixels have moved at random, neighbours alike.

    `sigma` is how far neighbours move alike, `alpha` how far they move.
    """
    _check(interpolation, fill_mode)
    images = Images(images, data_format)
    x = images.batch()
    rows, columns = _grid(x)
    batch, height, width, _ = x._spec.shape
    sigma = float(sigma)
    size = int(6 * sigma) | 1
    attrs = {"shape": (batch, height, width, 2), "dtype": rows._spec.dtype}
    noise = apply(random_normal, (draw_seed(seed),), attrs) * sigma
    noise = gaussian_blur(noise, (size, size), (sigma, sigma), "channels_last")
    across, down = unstack(noise * convert_to_tensor(alpha, noise.dtype.name), axis=3)
    order = AFFINE_TRANSFORM_INTERPOLATIONS[interpolation]
    return images.as_given(
        sampled(x, [rows + down, columns + across], order, fill_mode, fill_value)
    )
