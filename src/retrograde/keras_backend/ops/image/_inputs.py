"""Normalizes the image arguments of this package."""

from keras.src.backend.config import standardize_data_format

from retrograde.keras_backend.conversion import convert_to_tensor
from retrograde.ops.shaping import reshape, transpose


class Images:
    """One image or a batch of them, in either data format."""

    def __init__(self, images, data_format):
        self.x = convert_to_tensor(images)
        self.shape = self.x._spec.shape
        self.channels_first = standardize_data_format(data_format) == "channels_first"
        if len(self.shape) not in (3, 4):
            raise ValueError(
                "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
                f"Received input with shape: images.shape={self.shape}"
            )
        ndim = len(self.shape)
        self.channels_axis = ndim - 3 if self.channels_first else ndim - 1
        self.axes = (ndim - 2, ndim - 1) if self.channels_first else (ndim - 3, ndim - 2)

    def batch(self):
        """Returns the images as `(batch, height, width, channels)`."""
        x = self.x if len(self.shape) == 4 else reshape(self.x, shape=(1, *self.shape))
        return transpose(x, perm=(0, 2, 3, 1)) if self.channels_first else x

    def restore_format(self, y):
        """Converts `(batch, height, width, channels)` to the rank and data format of the input."""
        y = transpose(y, perm=(0, 3, 1, 2)) if self.channels_first else y
        return y if len(self.shape) == 4 else reshape(y, shape=y._spec.shape[1:])
