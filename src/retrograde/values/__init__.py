"""Dtypes, shapes, specs, errors, nested structures and conversion: the lowest layer."""
