"""Compares retrograde with TensorFlow, function by function."""
