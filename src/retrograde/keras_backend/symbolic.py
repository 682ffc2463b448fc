"""Shapes and dtypes of results, found out without the inputs themselves."""

import functools
import importlib.util
import math

import numpy as np
from keras.src import tree
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope

from retrograde.core import namespaces
from retrograde.core.recorders import listening
from retrograde.core.tensor import Tensor, wrap
from retrograde.keras_backend.conversion import numpy_dtype

# Sizes to put where one is not known: for the first axis and for others, small for the first,
# because it is as a rule that of the batch. What differs between two runs is not known.
_SIZES = (((2, 83), (3, 89)), ((83, 83), (89, 89)))

# Up to this many numbers in the inputs it is quickest to run the function on them. Beyond, JAX
# follows shapes alone, if it is installed.
_MANY = 1 << 13


def compute_output_spec(fn, *args, **kwargs):
    """What `fn` returns, with a `KerasTensor` in the place of each tensor."""
    # A function that is not recorded yet must not be recorded now: neither inputs nor weights are
    # the real ones. Where batches are expected, functions run their Python code.
    unrecorded = namespaces.expecting_batches()
    with StatelessScope(), SymbolicScope(), listening([]), unrecorded:
        for attempt, sizes in enumerate(_SIZES):
            try:
                return _with_sizes(fn, args, kwargs, sizes)
            except Exception:
                # Two sizes that are not known may have to be the same.
                if attempt + 1 == len(_SIZES) or not _has_unknown(args, kwargs):
                    raise


def _has_unknown(args, kwargs):
    leaves = tree.flatten((args, kwargs))
    return any(isinstance(x, KerasTensor) and None in x.shape for x in leaves)


def _with_sizes(fn, args, kwargs, sizes):
    """What `fn` returns with the first sizes; and with the second, if that makes a difference."""
    once, again = sizes
    first = _result(fn, args, kwargs, once)
    second = _result(fn, args, kwargs, again) if _has_unknown(args, kwargs) else first
    return tree.map_structure(_spec, first, second)


def _result(fn, args, kwargs, sizes):
    """What `fn` returns for inputs of these sizes: tensors, or only their shapes."""
    leaves = tree.flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, KerasTensor)]
    shapes = [_known(leaves[i].shape, sizes) for i in places]
    dtypes = [numpy_dtype(leaves[i].dtype) for i in places]

    def run(tensors):
        for i, tensor in zip(places, tensors, strict=True):
            leaves[i] = tensor
        given, named = tree.pack_sequence_as((args, kwargs), leaves)
        return fn(*given, **named)

    if sum(map(math.prod, shapes)) > _MANY and _has_jax():
        try:
            return _abstract(run, shapes, dtypes)
        except Exception:
            pass  # it needs values: run on some
    return run([Tensor(_dummy(*pair)) for pair in zip(shapes, dtypes, strict=True)])


def _known(shape, sizes):
    first, other = sizes
    return tuple([n if n is not None else other if i else first for i, n in enumerate(shape)])


def _dummy(shape, dtype):
    # Zeros are safe as indices, ones as what is divided by.
    return np.zeros(shape, dtype) if dtype.kind in "iub" else np.ones(shape, dtype)


@functools.cache
def _has_jax():
    return importlib.util.find_spec("jax") is not None


def _abstract(run, shapes, dtypes):
    """What `run` returns, with shapes and dtypes that JAX found out in the place of tensors."""
    import jax

    structure = None

    def traced(*arrays):
        nonlocal structure
        structure = run([wrap(array) for array in arrays])
        return [x._array for x in tree.flatten(structure) if isinstance(x, Tensor)]

    inputs = [jax.ShapeDtypeStruct(*pair) for pair in zip(shapes, dtypes, strict=True)]
    with namespaces.visiting(), jax.enable_x64(True):
        found = iter(jax.eval_shape(traced, *inputs))
    return tree.map_structure(lambda x: next(found) if isinstance(x, Tensor) else x, structure)


def _spec(x1, x2):
    """A `KerasTensor` for what has a shape and a dtype; what has not, as it is."""
    if not (isinstance(x1, Tensor) or _is_abstract(x1)):
        return x1
    pairs = zip(x1.shape, x2.shape, strict=True)
    return KerasTensor([n1 if n1 == n2 else None for n1, n2 in pairs], x1.dtype.name)


def _is_abstract(x):
    return type(x).__name__ == "ShapeDtypeStruct"
