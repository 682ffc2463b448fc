"""The functions behind `keras.ops.image`."""
