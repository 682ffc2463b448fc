"""What the functions of this package make of their inputs."""

from keras.src.backend.common.dtypes import result_type

from retrograde.core import dtypes
from retrograde.keras_backend.conversion import cast, convert_to_tensor


def floats(x):
    """`x` as a tensor of floats: integers become those that Keras promotes them to."""
    x = convert_to_tensor(x)
    if x._array.dtype in dtypes.INEXACT:
        return x
    return cast(x, result_type(x.dtype.name, float))


def promoted(*xs):
    """Tensors of one dtype, that to which Keras promotes theirs together."""
    xs = [convert_to_tensor(x) for x in xs]
    first = xs[0]._array.dtype
    if all(x._array.dtype is first for x in xs):
        return xs
    names = [x.dtype.name for x in xs]
    dtype = "float64" if "float64" in names else result_type(*names)
    return [cast(x, dtype) for x in xs]


def single(x):
    """`x` as a tensor of floats, in float32 if it has half precision."""
    x = floats(x)
    return cast(x, "float32") if x._array.dtype.itemsize < 4 else x


def from_front(axis, ndim):
    """An axis counted from the front."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"Axis {axis} is out of bounds for a tensor with {ndim} axes.")
    return axis % ndim
