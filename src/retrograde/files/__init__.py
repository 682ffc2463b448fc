"""File formats: atomic replacement, JSON with checksums, tensors."""
