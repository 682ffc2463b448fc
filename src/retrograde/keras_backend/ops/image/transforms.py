"""Affine, perspective and elastic transforms of images."""

import numpy as np
from keras.src.random.seed_generator import draw_seed

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import at_least_float32, inexact, promote
from retrograde.keras_backend.ops.image._inputs import Images
from retrograde.keras_backend.ops.image.filters import gaussian_blur
from retrograde.keras_backend.ops.image.interpolation import interpolate
from retrograde.linalg import solve
from retrograde.ops.casting import ones_like, zeros_like
from retrograde.ops.random_numbers import random_normal
from retrograde.ops.shaping import concat, reshape, stack, unstack

AFFINE_TRANSFORM_INTERPOLATIONS = {"nearest": 0, "bilinear": 1}  # interpolation orders
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
    """Maps output pixel (x, y) to input `((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)`.

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
    return _project(images, transform, interpolation, fill_mode, fill_value)


def _project(images, transform, interpolation, fill_mode, fill_value):
    x = images.batch()
    rows, columns = _grid(x)
    parameters = unstack(cast(transform, rows.dtype.name), axis=1)
    a0, a1, a2, b0, b1, b2, c0, c1 = (
        reshape(parameter, shape=(*parameter._spec.shape, 1, 1)) for parameter in parameters
    )
    k = c0 * columns + c1 * rows + 1
    source_x = (a0 * columns + a1 * rows + a2) / k
    source_y = (b0 * columns + b1 * rows + b2) / k
    order = AFFINE_TRANSFORM_INTERPOLATIONS[interpolation]
    return images.restore_format(interpolate(x, [source_y, source_x], order, fill_mode, fill_value))


def _grid(x):
    """Returns broadcastable row and column indices in float32 or float64."""
    _, height, width, _ = x._spec.shape
    dtype = "float64" if x.dtype.name == "float64" else "float32"
    rows, columns = np.arange(height)[:, None], np.arange(width)[None]
    return convert_to_tensor(rows, dtype), convert_to_tensor(columns, dtype)


def perspective_transform(
    images, start_points, end_points, interpolation="bilinear", fill_value=0, data_format=None
):
    """Applies the perspective transform that moves the corners `start_points` to `end_points`."""
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
    return _project(images, transform, interpolation, "constant", fill_value)


def compute_homography_matrix(start_points, end_points):
    """Computes the eight parameters of the projection from `end_points` to `start_points`.

    Each pair of points gives two linear equations.
    """
    start, end = (inexact(points) for points in promote(start_points, end_points))
    dtype = start.dtype.name
    start, end = at_least_float32(start), at_least_float32(end)
    batch = start.shape[0]
    homogeneous = concat(end, ones_like(end[:, :, :1]), axis=2)
    zeros = zeros_like(homogeneous)
    x_equations = concat(homogeneous, zeros, -end * start[:, :, :1], axis=2)
    y_equations = concat(zeros, homogeneous, -end * start[:, :, 1:], axis=2)
    matrix = reshape(stack(x_equations, y_equations, axis=2), shape=(batch, 8, 8))
    parameters = solve(matrix, reshape(start, shape=(batch, 8, 1)))
    return cast(reshape(parameters, shape=(batch, 8)), dtype)


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
    """Displaces pixels by a smooth random field.

    `sigma` is the smoothness of the field, `alpha` the scale of the displacements.
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
    dx, dy = unstack(noise * convert_to_tensor(alpha, noise.dtype.name), axis=3)
    order = AFFINE_TRANSFORM_INTERPOLATIONS[interpolation]
    return images.restore_format(
        interpolate(x, [rows + dy, columns + dx], order, fill_mode, fill_value)
    )
