"""Values between the cells of an array."""

import itertools
import math

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import inexact, single
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import indexing
from retrograde.ops.shaping import broadcast_to, reshape, unstack

MAP_COORDINATES_FILL_MODES = {"constant", "nearest", "wrap", "mirror", "reflect"}


def map_coordinates(inputs, coordinates, order, fill_mode="constant", fill_value=0):
    """The values of `inputs` at `coordinates`, the first axis of which is that of the axes.

    `order` is 0 for the nearest cell, 1 for those around, weighed. Gradients flow to both inputs
    and, if `order` is 1, to the coordinates.
    """
    x, places = convert_to_tensor(inputs), convert_to_tensor(coordinates)
    if places.shape[0] != x.ndim:
        raise ValueError(
            "First dim of `coordinates` must be the same as the rank of `inputs`. Received inputs "
            f"with shape: {x.shape} and coordinate leading dim of {places.shape[0]}"
        )
    if places.ndim < 2:
        raise ValueError(
            "Invalid coordinates rank: expected at least rank 2."
            f" Received input with shape: {places.shape}"
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
    whole = reshape(x, shape=(1, *x._spec.shape, 1))
    shape = places._spec.shape[1:]
    places = [reshape(p, shape=(1, math.prod(shape))) for p in unstack(places, axis=0)]
    return reshape(sampled(whole, places, order, fill_mode, fill_value), shape=shape)


def sampled(x, places, order, fill_mode, fill_value):
    """The values of `x`, `(batch, *space, channels)`, at the same places of all channels.

    `places` holds a tensor of coordinates for each axis of space, `(batch, *shape)`. The result
    has the dtype of `x`; integers are rounded.
    """
    batch, *space, channels = x._spec.shape
    flat = single(inexact(reshape(x, shape=(batch, math.prod(space), channels))))
    dtype, wide = x.dtype.name, flat.dtype.name
    if any(p.shape[0] != batch for p in places):
        places = [broadcast_to(p, shape=(batch, *p._spec.shape[1:])) for p in places]
    places = [cast(p, wide) for p in places]
    fill = convert_to_tensor(fill_value, wide)
    y = None
    for corner in itertools.product(*(_neighbours(p, order) for p in places)):
        cells = [cast(cell, "int64") for cell, _ in corner]
        part = _picked(flat, cells, space, fill_mode, fill)
        for _, weight in corner:
            if weight is not None:
                part = part * reshape(weight, shape=(*weight._spec.shape, 1))
        y = part if y is None else y + part
    if not x.dtype.is_floating and order:
        y = apply(el.rint, (y,))
    return cast(y, dtype)


def _neighbours(place, order):
    """The cells next to a place, each with its weight."""
    if order == 0:
        return [(apply(el.floor, (place + 0.5,)), None)]
    below = apply(el.floor, (place,))
    share = place - below
    return [(below, 1 - share), (below + 1, share)]


def _picked(flat, cells, space, fill_mode, fill):
    """The values in the given cells, and what stands beyond the edges."""
    inside, position = None, None
    for cell, size in zip(cells, space, strict=True):
        if fill_mode == "constant":
            seen = (cell >= 0) & (cell < size)
            inside = seen if inside is None else inside & seen
        cell = _BEYOND[fill_mode](cell, size)
        position = cell if position is None else position * size + cell
    position = reshape(position, shape=(*position._spec.shape, 1))
    values = apply(indexing.gather_nd, (flat, position), {"batch_dims": 1})
    if inside is None:
        return values
    return apply(ar.select, (reshape(inside, shape=(*inside._spec.shape, 1)), values, fill))


def _clamped(cell, size):
    least, most = (convert_to_tensor(n, "int64") for n in (0, size - 1))
    return apply(ar.minimum, (apply(ar.maximum, (cell, least)), most))


def _mirrored(cell, size):
    """Beyond an edge, the cells before it; the edge itself stands once."""
    last = size - 1
    if not last:
        return cell * 0
    return apply(ar.absolute, ((cell + last) % (2 * last) - last,))


def _reflected(cell, size):
    """Beyond an edge, the cells before it, the one at the edge twice."""
    return _mirrored(cell * 2 + 1, 2 * size + 1) // 2


_BEYOND = {
    "constant": _clamped,
    "nearest": _clamped,
    "wrap": lambda cell, size: cell % size,
    "mirror": _mirrored,
    "reflect": _reflected,
}
