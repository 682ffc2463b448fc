"""The functions behind `keras.ops.numpy`."""
