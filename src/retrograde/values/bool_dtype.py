"""The dtype `tf.bool` under its public name, which would hide Python's `bool` beside the others."""

from retrograde.values import dtypes

bool = dtypes.bool_
