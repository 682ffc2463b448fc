"""tf.strings: operations on tensors of byte strings."""
