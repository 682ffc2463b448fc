"""Runs TensorFlow's own tests on retrograde."""
