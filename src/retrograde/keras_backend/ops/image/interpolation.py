"""Interpolation at fractional coordinates."""

import itertools
import math

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import at_least_float32, inexact
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import indexing
from retrograde.ops.shaping import broadcast_to, reshape, unstack

MAP_COORDINATES_FILL_MODES = {"constant", "nearest", "wrap", "mirror", "reflect"}


def map_coordinates(inputs, coordinates, order, fill_mode="constant", fill_value=0):
    """Interpolates `inputs` at `coordinates`, of shape `(inputs.ndim, ...)`.

    `order` is 0 for nearest-neighbor and 1 for linear interpolation. Gradients flow to `inputs`
    and, if `order` is 1, to `coordinates`.
    """
    x, coordinates = convert_to_tensor(inputs), convert_to_tensor(coordinates)
    if coordinates.shape[0] != x.ndim:
        raise ValueError(
            "First dim of `coordinates` must be the same as the rank of `inputs`. Received inputs "
            f"with shape: {x.shape} and coordinate leading dim of {coordinates.shape[0]}"
        )
    if coordinates.ndim < 2:
        raise ValueError(
            "Invalid coordinates rank: expected at least rank 2."
            f" Received input with shape: {coordinates.shape}"
        )
    if fill_mode not in MAP_COORDINATES_FILL_MODES:
        raise ValueError(
            "Invalid value for argument `fill_mode`. Expected one of "
            f"{MAP_COORDINATES_FILL_MODES}. Received: fill_mode={fill_mode}"
        )
    if order not in (0, 1):
        raise ValueError(
            f"Invalid value for argument `order`. Expected one of {[0, 1]}. Received: order={order}"
        )
    image = reshape(x, shape=(1, *x._spec.shape, 1))
    shape = coordinates._spec.shape[1:]
    coordinates = [reshape(p, shape=(1, math.prod(shape))) for p in unstack(coordinates, axis=0)]
    return reshape(interpolate(image, coordinates, order, fill_mode, fill_value), shape=shape)


def interpolate(x, coordinates, order, fill_mode, fill_value):
    """Interpolates `x`, `(batch, *space, channels)`, at the same coordinates for all channels.

    `coordinates` holds a tensor `(batch, *shape)` for each spatial axis. The result has the dtype
    of `x`; integers are rounded.
    """
    batch, *space, channels = x._spec.shape
    flat = at_least_float32(inexact(reshape(x, shape=(batch, math.prod(space), channels))))
    dtype, wide = x.dtype.name, flat.dtype.name
    if any(p.shape[0] != batch for p in coordinates):
        coordinates = [broadcast_to(p, shape=(batch, *p._spec.shape[1:])) for p in coordinates]
    coordinates = [cast(p, wide) for p in coordinates]
    fill = convert_to_tensor(fill_value, wide)
    y = None
    for corner in itertools.product(*(_neighbors(p, order) for p in coordinates)):
        cells = [cast(cell, "int64") for cell, _ in corner]
        part = _gather_cells(flat, cells, space, fill_mode, fill)
        for _, weight in corner:
            if weight is not None:
                part = part * reshape(weight, shape=(*weight._spec.shape, 1))
        y = part if y is None else y + part
    if not x.dtype.is_floating and order:
        y = apply(el.rint, (y,))
    return cast(y, dtype)


def _neighbors(coordinate, order):
    """Returns the neighboring cells of a coordinate, each with its weight."""
    if order == 0:
        return [(apply(el.floor, (coordinate + 0.5,)), None)]
    below = apply(el.floor, (coordinate,))
    fraction = coordinate - below
    return [(below, 1 - fraction), (below + 1, fraction)]


def _gather_cells(flat, cells, space, fill_mode, fill):
    """Gathers the values of `cells`; cells out of bounds follow `fill_mode`."""
    inside, position = None, None
    for cell, size in zip(cells, space, strict=True):
        if fill_mode == "constant":
            in_range = (cell >= 0) & (cell < size)
            inside = in_range if inside is None else inside & in_range
        cell = _OUT_OF_BOUNDS[fill_mode](cell, size)
        position = cell if position is None else position * size + cell
    position = reshape(position, shape=(*position._spec.shape, 1))
    values = apply(indexing.gather_nd, (flat, position), {"batch_dims": 1})
    if inside is None:
        return values
    return apply(ar.select, (reshape(inside, shape=(*inside._spec.shape, 1)), values, fill))


def _clamp(cell, size):
    low, high = (convert_to_tensor(n, "int64") for n in (0, size - 1))
    return apply(ar.minimum, (apply(ar.maximum, (cell, low)), high))


def _mirror(cell, size):
    """Reflects indices at the edges without repeating the edge cell."""
    last = size - 1
    if not last:
        return cell * 0
    return apply(ar.absolute, ((cell + last) % (2 * last) - last,))


def _reflect(cell, size):
    """Reflects indices at the edges and repeats the edge cell."""
    return _mirror(cell * 2 + 1, 2 * size + 1) // 2


_OUT_OF_BOUNDS = {
    "constant": _clamp,
    "nearest": _clamp,
    "wrap": lambda cell, size: cell % size,
    "mirror": _mirror,
    "reflect": _reflect,
}
