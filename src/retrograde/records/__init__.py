"""TFRecord files, `tf.train.Example` and its relatives, and the parsing of features."""
