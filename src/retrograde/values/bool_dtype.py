"""Defines `tf.bool` in a separate module, because the name shadows Python's `bool`."""

from retrograde.values import dtypes

bool = dtypes.bool_
