"""The functions behind `keras.ops.nn`."""
