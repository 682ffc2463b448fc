"""The functions behind `keras.ops`: the same names and arguments, on retrograde's operations."""
