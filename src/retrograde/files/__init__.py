"""Atomic file replacement, JSON with checksums and tensor files."""
