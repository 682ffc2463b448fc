"""Adapts `retrograde.data.Dataset` to `fit`, `evaluate` and `predict`."""

from keras.src import tree
from keras.src.trainers.data_adapters import data_adapter_utils
from keras.src.trainers.data_adapters.data_adapter import DataAdapter

from retrograde.distribute.values import PerReplicaSpec
from retrograde.keras_backend.conversion import convert_to_numpy


class DatasetAdapter(DataAdapter):
    """Iterates over a dataset whose elements are batches."""

    def __init__(self, dataset, class_weight=None):
        self._dataset = dataset
        self._class_weight = class_weight

    def get_numpy_iterator(self):
        """Returns an iterator over the batches. They stay tensors."""
        if self._class_weight is None:
            return iter(self._dataset)
        return (self._add_class_weights(batch) for batch in self._dataset)

    def _add_class_weights(self, batch):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(batch)
        if sample_weight is not None:
            raise ValueError("You cannot use `class_weight` and `sample_weight` at the same time.")
        if tree.is_nested(y):
            raise ValueError("`class_weight` is only supported for models with a single output.")
        y_classes = convert_to_numpy(y)
        weights = data_adapter_utils.class_weight_to_sample_weights(y_classes, self._class_weight)
        return x, y, weights

    @property
    def num_batches(self):
        """The number of batches, or `None` if it is unknown or infinite."""
        count = int(self._dataset.cardinality())
        return None if count < 0 else count

    @property
    def batch_size(self):
        """The batch size, or `None` if it may vary."""
        spec = tree.flatten(self._dataset.element_spec)[0]
        return None if isinstance(spec, PerReplicaSpec) else spec.shape[0]

    has_partial_batch = None
    partial_batch_size = None
