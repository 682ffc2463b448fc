"""Windows over the axes between the batch and the channels, as Keras describes them."""

from keras.src.backend.config import standardize_data_format

from retrograde.nn._windows import padded_windows
from retrograde.ops.shaping import transpose


class Space:
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

    def to_last(self):
        """The tensor with its channels last."""
        if not self.channels_first:
            return self.x
        return transpose(self.x, perm=(0, *range(2, self.ndim + 2), 1))

    def from_last(self, y):
        """A tensor with its channels last, in the format of this one."""
        if not self.channels_first:
            return y
        return transpose(y, perm=(0, self.ndim + 1, *range(1, self.ndim + 1)))

    def along_axes(self, value):
        """One number for each axis of space, from one for all or one for each."""
        if isinstance(value, (list, tuple)):
            value = tuple(int(n) for n in value)
            return value * self.ndim if len(value) == 1 else value
        return (int(value),) * self.ndim

    def windows(self, size, strides, padding, dilations=1):
        """The windows of `size` over space; `padding` is "valid" or "same"."""
        name = padding.upper()
        if name not in ("VALID", "SAME"):
            raise ValueError(f"Invalid padding '{padding}', must be 'same' or 'valid'.")
        size, strides, dilations = map(self.along_axes, (size, strides, dilations))
        return padded_windows(name, self.sizes, size, strides, dilations)
