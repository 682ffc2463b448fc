"""Standing in for TensorFlow: programs that import it run on retrograde."""
