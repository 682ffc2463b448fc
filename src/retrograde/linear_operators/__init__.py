"""`tf.linalg.LinearOperator` and its subclasses: matrices that know their structure."""
