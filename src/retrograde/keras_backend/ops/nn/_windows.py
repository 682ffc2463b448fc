"""Spatial inputs and windows in Keras's conventions."""

from keras.src.backend.config import standardize_data_format

from retrograde.nn._windows import padded_windows
from retrograde.ops.shaping import transpose


class SpatialInput:
    """A tensor `(batch, *space, channels)`, or with the channels second."""

    def __init__(self, x, data_format):
        self.x = x
        self.shape = x._spec.shape
        self.ndim = len(self.shape) - 2
        self.data_format = standardize_data_format(data_format)
        self.channels_first = self.data_format == "channels_first"
        if self.channels_first:
            self.channels, self.sizes = self.shape[1], self.shape[2:]
        else:
            self.channels, self.sizes = self.shape[-1], self.shape[1:-1]

    def channels_last(self):
        """Returns the tensor with its channels last."""
        if not self.channels_first:
            return self.x
        return transpose(self.x, perm=(0, *range(2, self.ndim + 2), 1))

    def restore_format(self, y):
        """Converts a channels-last tensor to the data format of the input."""
        if not self.channels_first:
            return y
        return transpose(y, perm=(0, self.ndim + 1, *range(1, self.ndim + 1)))

    def per_axis(self, value):
        """Returns one integer per spatial axis, from a single integer or a sequence."""
        if isinstance(value, (list, tuple)):
            value = tuple(int(n) for n in value)
            return value * self.ndim if len(value) == 1 else value
        return (int(value),) * self.ndim

    def windows(self, size, strides, padding, dilations=1):
        """Returns the windows of `size` over the spatial axes; `padding` is "valid" or "same"."""
        name = padding.upper()
        if name not in ("VALID", "SAME"):
            raise ValueError(f"Invalid padding '{padding}', must be 'same' or 'valid'.")
        size, strides, dilations = map(self.per_axis, (size, strides, dilations))
        return padded_windows(name, self.sizes, size, strides, dilations)
