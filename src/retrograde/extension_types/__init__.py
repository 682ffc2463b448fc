"""User-defined types of tensors, and the dispatch of operations to them."""
