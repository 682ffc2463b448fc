"""Values below tensors: dtypes, shapes, errors, nested structures, conversion."""
