"""Lists the TensorFlow functions that retrograde does not have."""

MISSING = {
    "tf.check_pinned",
    "tf.import_graph_def",
    "tf.load_library",
    "tf.load_op_library",
    "tf.nondifferentiable_batch_function",
    "tf.image.decode_jxl",
    "tf.image.decode_webp",
    "tf.image.generate_bounding_box_proposals",
}
