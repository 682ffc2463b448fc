"""Loads weights from TensorFlow's checkpoints, which Keras 2 wrote with `save_weights`.

The objects of such a checkpoint are the layers of the model. A variable is found by the name of its
layer's attribute or, in Sequential and functional models, by the number of the layer.
"""

import functools
import os

from keras.src.layers import Layer
from keras.src.models.functional import Functional
from keras.src.models.sequential import Sequential

from retrograde.train import Checkpoint
from retrograde.train._files import CheckpointReader
from retrograde.train._object_graph import VARIABLE_VALUE

_NUMBERED = "layer_with_weights-"


def wrap_load_weights(load):
    """Wraps Keras's function `load_weights` to accept the path of a checkpoint."""

    @functools.wraps(load)
    def load_weights(model, filepath, skip_mismatch=False, **kwargs):
        path = str(filepath).removesuffix(".index")
        if path.endswith((".keras", ".h5")) or not os.path.exists(f"{path}.index"):
            load(model, filepath, skip_mismatch=skip_mismatch, **kwargs)
            return
        if not model.built:
            raise ValueError(
                f"Unable to load weights from {path}: the model has no weights yet. Call it, or "
                "call its method build(), before."
            )
        _load_checkpoint(model, path, skip_mismatch)

    return load_weights


def _load_checkpoint(model, path, skip_mismatch):
    reader = CheckpointReader(path)
    arrays = {}
    _find_values(model, 0, reader, arrays)
    missing = [v for v in model.weights if id(v) not in arrays]
    if len(missing) == len(model.weights):
        Checkpoint(root=model).read(path).expect_partial()
        return
    wrong = [v for v in model.weights if id(v) in arrays and v.shape != arrays[id(v)].shape]
    if (missing or wrong) and not skip_mismatch:
        problem = missing or wrong
        raise ValueError(
            f"Unable to load weights from {path}: {len(problem)} of {len(model.weights)} weights "
            f"{'are missing' if missing else 'have other shapes'}, the first of which is "
            f"{problem[0].path} with shape {tuple(problem[0].shape)}. Pass skip_mismatch=True to "
            "load the others."
        )
    for variable in model.weights:
        if id(variable) in arrays and variable not in wrong:
            variable.assign(arrays[id(variable)])


def _find_values(layer, node_id, reader, arrays):
    """Finds the values of a layer's variables, and of the layers in it, in a checkpoint."""
    nodes = reader.objects
    children = nodes[node_id]["children"]
    for variable in (*layer._trainable_variables, *layer._non_trainable_variables):
        for name in (variable.name, f"_{variable.name}"):
            key = nodes[children[name]]["values"].get(VARIABLE_VALUE) if name in children else None
            if key is not None:
                arrays[id(variable)] = reader.array(key)
    if isinstance(layer, Sequential | Functional):
        with_weights = [part for part in layer.layers if part.weights]
        parts = {f"{_NUMBERED}{number}": part for number, part in enumerate(with_weights)}
    else:
        parts = {name: part for name, part in vars(layer).items() if isinstance(part, Layer)}
    for name, part in parts.items():
        if name in children:
            _find_values(part, children[name], reader, arrays)
