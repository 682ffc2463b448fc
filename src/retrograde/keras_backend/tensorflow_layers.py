"""Makes the parts of Keras that use TensorFlow with every backend use retrograde.

These are the preprocessing layers for text and categories, functions that return datasets, and
the legacy API. They access TensorFlow through one lazily imported module, import Keras's TensorFlow
backend, or compare the name of the backend.
"""

import sys

import keras
import numpy as np
from keras.src import backend, tree
from keras.src.layers.preprocessing import (
    data_layer,
    feature_space,
    hashed_crossing,
    integer_lookup,
    string_lookup,
    text_vectorization,
)
from keras.src.trainers.data_adapters import array_slicing
from keras.src.utils import backend_utils, module_utils, tf_utils

import retrograde
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.install import TENSORFLOW, public_backend_name
from retrograde.keras_backend.module_proxy import ModuleProxy
from retrograde.ragged.tensor import RaggedTensor

_TENSORFLOW_BACKEND = "keras.src.backend.tensorflow"
# Modules of layers that have options for TensorFlow's backend only, or pass it other values.
_TENSORFLOW_ONLY = (
    feature_space,
    hashed_crossing,
    integer_lookup,
    string_lookup,
    text_vectorization,
)


def patch():
    """Replaces TensorFlow in Keras."""
    lazy_tensorflow = module_utils.tensorflow
    lazy_tensorflow.module, lazy_tensorflow._available = retrograde, True
    lazy_tensorflow.initialize = lambda: None
    named_tensorflow = ModuleProxy(backend, _TENSORFLOW_BACKEND)
    sys.modules[_TENSORFLOW_BACKEND] = backend.tensorflow = named_tensorflow
    for module in _TENSORFLOW_ONLY:
        module.backend = ModuleProxy(backend, backend=lambda: TENSORFLOW)
    # Layers run on this backend everywhere, so nothing needs to switch or convert between backends.
    backend_utils.in_tf_graph = lambda: False
    backend_utils.convert_tf_tensor = lambda outputs, dtype=None: outputs
    tf_utils.is_ragged_tensor = lambda x: isinstance(x, RaggedTensor)
    array_slicing.convert_to_sliceable = _with_strings(array_slicing.convert_to_sliceable)
    _rename_public_backend()


def _with_strings(convert_to_sliceable):
    """Wraps a function to support arrays of strings with this backend."""

    def convert_leaf(x, target_backend):
        array = x.__array__() if isinstance(x, Tensor) and x.dtype == retrograde.string else x
        if isinstance(array, np.ndarray) and array.dtype.kind in "OSU":
            return array_slicing.NumpySliceable(array)
        return convert_to_sliceable(x, target_backend)

    def convert(arrays, target_backend=None):
        return tree.map_structure(lambda x: convert_leaf(x, target_backend), arrays)

    return convert


def _rename_public_backend():
    """Makes `keras.backend.backend()` return the name that the program expects."""
    name_of_backend = keras.backend.backend  # the layers below compare it with their backend
    private = ModuleProxy(keras.backend, backend=name_of_backend)
    data_layer.keras = ModuleProxy(keras, backend=private)
    tf_keras = sys.modules["keras._tf_keras.keras"]
    for api in (keras, tf_keras):
        api.config.backend = api.backend.backend = public_backend_name
