"""Infers the shapes and dtypes of results from `KerasTensor` inputs."""

import contextlib
import math

import numpy as np
from keras.src import tree
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope

from retrograde.core import namespaces
from retrograde.core.recorders import use_recorders
from retrograde.core.tensor import Tensor, wrap
from retrograde.keras_backend.conversion import numpy_dtype
from retrograde.shape_inference.abstract_array import AbstractArray
from retrograde.shape_inference.inference import inferring_shapes
from retrograde.values.sizes import Size, cases, public_shape, taking_notes

# The size of unknown dimensions in the first case of a `Size`, half of the size in the second.
# Splits and reshapes divide it, so it has many divisors.
_SIZE = 5040
_LARGEST = 1 << 40
_MOST_KNOWN = 8  # known sizes that are tried in place of an unknown one
_LARGE = 2500  # a known dimension of a result from here on may come from an unknown one

# Sizes for functions that need values, as (first axis, other axes) for each of two runs. The first
# axis gets a small size because it usually is the batch. Further rows are for functions that
# require equal sizes, or sizes with divisors.
_DUMMY_SIZES = (
    ((2, 83), (3, 89)),
    ((83, 83), (89, 89)),
    ((2, 84), (4, 168)),
    ((84, 84), (168, 168)),
)


def compute_output_spec(fn, *args, **kwargs):
    """Returns the result of `fn` with a `KerasTensor` for each tensor.

    `fn` runs on tensors without values. If it needs values, it runs on dummy arrays.
    """
    # `tf.function`s must not be traced here: neither the inputs nor the weights are real. In this
    # mode they run their Python code.
    no_tracing = namespaces.allow_batches()
    call = _Call(fn, args, kwargs)
    with StatelessScope(), SymbolicScope(), use_recorders([]), no_tracing:
        try:
            return call.infer()
        except Exception as error:
            # Keras may have created it from an exception of another class.
            with contextlib.suppress(Exception):
                return call.run_on_dummy_arrays()
            raise error


class _Call:
    """A call of a function with `KerasTensor`s among its arguments."""

    def __init__(self, fn, args, kwargs):
        self._fn = fn
        self._arguments = (args, kwargs)
        self._leaves = tree.flatten(self._arguments)
        self._inputs = [i for i, x in enumerate(self._leaves) if isinstance(x, KerasTensor)]
        self._has_unknown = any(None in self._leaves[i].shape for i in self._inputs)

    def infer(self):
        """Returns the result for tensors that have a shape and no value."""
        problem = None
        with taking_notes() as notes:
            for first_axis, other_axes in self._choices(notes):
                try:
                    return self._infer(first_axis, other_axes)
                except Exception as error:
                    problem = problem or error
        raise problem

    def _infer(self, first_axis, other_axes):
        result = self._run_abstract(first_axis, other_axes)
        if not (self._has_unknown and any(map(_is_suspicious, tree.flatten(result)))):
            return tree.map_structure(_spec, result)
        other_result = self._run_abstract(_swap(first_axis), _swap(other_axes))
        return tree.map_structure(_common_spec, result, other_result)

    def _choices(self, notes):
        """Yields sizes for unknown dimensions, as (first axis, other axes).

        If the first choice fails, the next is a multiple of all numbers by which the function
        divided a size. In TensorFlow, an unknown dimension can meet any known one, so the sizes
        that an unknown one met are next.
        """
        size = Size(_SIZE, 2 * _SIZE)
        yield size, size
        if not self._has_unknown:
            return
        multiple = math.lcm(_SIZE, *[n for n in notes.divisors if n > 0])
        if _SIZE < multiple <= _LARGEST:
            yield (Size(multiple, 2 * multiple),) * 2
        for known in list(notes.sizes)[:_MOST_KNOWN]:
            yield size, known

    def _run_abstract(self, first_axis, other_axes):
        specs = self._specs(first_axis, other_axes)
        inputs = [wrap(AbstractArray(shape, dtype)) for shape, dtype in specs]
        with inferring_shapes():
            return self._run(inputs)

    def run_on_dummy_arrays(self):
        """Returns the result for arrays of two sizes. Dimensions that differ are unknown."""
        for attempt, (first, second) in enumerate(_DUMMY_SIZES):
            try:
                first_result = self._run_on_dummies(first)
                if not self._has_unknown:
                    return tree.map_structure(_spec, first_result)
                second_result = self._run_on_dummies(second, varied=True)
                return tree.map_structure(_common_spec, first_result, second_result)
            except Exception:
                if attempt + 1 == len(_DUMMY_SIZES) or not self._has_unknown:
                    raise

    def _run_on_dummies(self, sizes, varied=False):
        return self._run([Tensor(_dummy_array(*spec, varied)) for spec in self._specs(*sizes)])

    def _specs(self, first_axis, other_axes):
        """Yields the shapes and dtypes of the inputs, with these sizes for unknown dimensions."""
        for i in self._inputs:
            shape = enumerate(self._leaves[i].shape)
            sizes = [(other_axes if axis else first_axis) if n is None else n for axis, n in shape]
            yield tuple(sizes), numpy_dtype(self._leaves[i].dtype)

    def _run(self, inputs):
        leaves = list(self._leaves)
        for i, tensor in zip(self._inputs, inputs, strict=True):
            leaves[i] = tensor
        args, kwargs = tree.pack_sequence_as(self._arguments, leaves)
        return self._fn(*args, **kwargs)


def _is_suspicious(x):
    """Returns whether a known dimension of a result may be a size of an unknown one."""
    return isinstance(x, Tensor) and any(type(n) is int and n >= _LARGE for n in x._spec.shape)


def _swap(size):
    """Swaps the two cases of an unknown size."""
    return Size(*reversed(cases(size))) if type(size) is Size else size


def _spec(x):
    """Returns a `KerasTensor` for a tensor; returns other values unchanged."""
    if not isinstance(x, Tensor):
        return x
    return KerasTensor(public_shape(x._spec.shape), x.dtype.name)


def _common_spec(x1, x2):
    if not isinstance(x1, Tensor):
        return x1
    pairs = zip(x1._spec.shape, x2._spec.shape, strict=True)
    known = [n1 if type(n1) is int and n1 == n2 else None for n1, n2 in pairs]
    return KerasTensor(known, x1.dtype.name)


def _dummy_array(shape, dtype, varied):
    """Returns an array of equal elements, or of elements that differ, if they are floats."""
    if dtype.kind == "O":
        return np.full(shape, b"", dtype)
    # Zeros are valid indices, ones are valid divisors.
    array = np.zeros(shape, dtype) if dtype.kind in "iub" else np.ones(shape, dtype)
    if varied and dtype.kind not in "iub":
        array += (np.arange(array.size) % 5).astype(dtype).reshape(shape)
    return array
