"""Runs programs that import TensorFlow on retrograde."""
