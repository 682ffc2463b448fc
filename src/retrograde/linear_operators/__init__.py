"""`tf.linalg.LinearOperator` and its subclasses: matrices with known structure."""
