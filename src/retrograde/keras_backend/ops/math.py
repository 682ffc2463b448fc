"""The functions behind `keras.ops.math`."""
