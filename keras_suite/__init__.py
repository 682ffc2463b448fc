"""Keras's own tests, run on this backend."""
