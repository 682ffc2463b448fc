"""Shapes and dtypes of results, found out without the inputs themselves."""

import numpy as np
from keras.src import tree
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope

from retrograde.core.recorders import listening
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.conversion import numpy_dtype

# Sizes to put where one is not known: for the first axis and for others, small for the first,
# because it is as a rule that of the batch. What differs between two runs is not known.
_SIZES = (((2, 83), (3, 89)), ((83, 83), (89, 89)))


def compute_output_spec(fn, *args, **kwargs):
    """What `fn` returns, with a `KerasTensor` in the place of each tensor."""
    with StatelessScope(), SymbolicScope(), listening([]):
        return _by_running(fn, args, kwargs)


def _by_running(fn, args, kwargs):
    """Runs `fn` on small tensors, twice if there are sizes that are not known."""
    for attempt, (once, again) in enumerate(_SIZES):
        try:
            first = _run(fn, args, kwargs, once)
            second = _run(fn, args, kwargs, again) if _has_unknown(args, kwargs) else first
        except Exception:
            # Two sizes that are not known may have to be the same.
            if attempt + 1 == len(_SIZES) or not _has_unknown(args, kwargs):
                raise
        else:
            return tree.map_structure(_spec, first, second)


def _has_unknown(args, kwargs):
    leaves = tree.flatten((args, kwargs))
    return any(isinstance(x, KerasTensor) and None in x.shape for x in leaves)


def _run(fn, args, kwargs, sizes):
    def small(x):
        return _dummy(x, sizes) if isinstance(x, KerasTensor) else x

    args, kwargs = tree.map_structure(small, (args, kwargs))
    return fn(*args, **kwargs)


def _dummy(x, sizes):
    first, other = sizes
    known = [n if n is not None else other if i else first for i, n in enumerate(x.shape)]
    dtype = numpy_dtype(x.dtype)
    # Zeros are safe as indices, ones as what is divided by.
    return Tensor(np.zeros(known, dtype) if dtype.kind in "iub" else np.ones(known, dtype))


def _spec(x1, x2):
    if not isinstance(x1, Tensor):
        return x1
    pairs = zip(x1.shape, x2.shape, strict=True)
    return KerasTensor([n1 if n1 == n2 else None for n1, n2 in pairs], x1.dtype.name)
