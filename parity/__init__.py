"""A comparison of retrograde with a real TensorFlow, function by function."""
