"""Infers the shapes and dtypes of results from `KerasTensor` inputs."""

import functools
import importlib.util
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

# Sizes that replace unknown dimensions: (first axis, other axes) for each of two runs. The first
# axis gets a small size because it usually is the batch. Result dimensions that differ between
# the runs are unknown. The second row is for functions that require equal sizes.
_SIZES = (((2, 83), (3, 89)), ((83, 83), (89, 89)))

# Up to this many input elements it is fastest to run the function. Larger inputs use
# `jax.eval_shape` if JAX is installed.
_EAGER_LIMIT = 1 << 13


def compute_output_spec(fn, *args, **kwargs):
    """Returns the result of `fn` with a `KerasTensor` for each tensor."""
    # `tf.function`s must not be traced here: neither the inputs nor the weights are real. In this
    # mode they run their Python code.
    no_tracing = namespaces.allow_batches()
    with StatelessScope(), SymbolicScope(), use_recorders([]), no_tracing:
        for attempt, sizes in enumerate(_SIZES):
            try:
                return _run_twice(fn, args, kwargs, sizes)
            except Exception:
                # Two unknown dimensions may have to be equal.
                if attempt + 1 == len(_SIZES) or not _has_unknown(args, kwargs):
                    raise


def _has_unknown(args, kwargs):
    leaves = tree.flatten((args, kwargs))
    return any(isinstance(x, KerasTensor) and None in x.shape for x in leaves)


def _run_twice(fn, args, kwargs, sizes):
    """Runs `fn` with the first sizes, and with the second if a dimension is unknown."""
    first_sizes, second_sizes = sizes
    first = _result(fn, args, kwargs, first_sizes)
    second = _result(fn, args, kwargs, second_sizes) if _has_unknown(args, kwargs) else first
    return tree.map_structure(_spec, first, second)


def _result(fn, args, kwargs, sizes):
    """Returns the result of `fn` for inputs of these sizes: tensors or `ShapeDtypeStruct`s."""
    leaves = tree.flatten((args, kwargs))
    positions = [i for i, x in enumerate(leaves) if isinstance(x, KerasTensor)]
    shapes = [_fill_unknown(leaves[i].shape, sizes) for i in positions]
    dtypes = [numpy_dtype(leaves[i].dtype) for i in positions]

    def run(tensors):
        for i, tensor in zip(positions, tensors, strict=True):
            leaves[i] = tensor
        call_args, call_kwargs = tree.pack_sequence_as((args, kwargs), leaves)
        return fn(*call_args, **call_kwargs)

    if sum(map(math.prod, shapes)) > _EAGER_LIMIT and _has_jax():
        try:
            return _abstract(run, shapes, dtypes)
        except Exception:
            pass  # `fn` needs values: run it on dummy arrays
    return run([Tensor(_dummy_array(*pair)) for pair in zip(shapes, dtypes, strict=True)])


def _fill_unknown(shape, sizes):
    first, other = sizes
    return tuple([n if n is not None else other if i else first for i, n in enumerate(shape)])


def _dummy_array(shape, dtype):
    if dtype.kind == "O":
        return np.full(shape, b"", dtype)
    # Zeros are valid indices, ones are valid divisors.
    return np.zeros(shape, dtype) if dtype.kind in "iub" else np.ones(shape, dtype)


@functools.cache
def _has_jax():
    return importlib.util.find_spec("jax") is not None


def _abstract(run, shapes, dtypes):
    """Returns the result of `run` with a `ShapeDtypeStruct` for each tensor."""
    import jax

    structure = None

    def traced(*arrays):
        nonlocal structure
        structure = run([wrap(array) for array in arrays])
        return [x._array for x in tree.flatten(structure) if isinstance(x, Tensor)]

    inputs = [jax.ShapeDtypeStruct(*pair) for pair in zip(shapes, dtypes, strict=True)]
    with namespaces.temporary_foreign_arrays(), jax.enable_x64(True):
        specs = iter(jax.eval_shape(traced, *inputs))
    return tree.map_structure(lambda x: next(specs) if isinstance(x, Tensor) else x, structure)


def _spec(x1, x2):
    """Returns a `KerasTensor` for a tensor or spec; returns other values unchanged."""
    if not (isinstance(x1, Tensor) or _is_abstract(x1)):
        return x1
    pairs = zip(x1.shape, x2.shape, strict=True)
    return KerasTensor([n1 if n1 == n2 else None for n1, n2 in pairs], x1.dtype.name)


def _is_abstract(x):
    return type(x).__name__ == "ShapeDtypeStruct"
