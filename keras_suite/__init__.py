"""Runs Keras's own tests with the retrograde backend."""
