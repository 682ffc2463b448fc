"""The functions behind `keras.ops.linalg`."""
