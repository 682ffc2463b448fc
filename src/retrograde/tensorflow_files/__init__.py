"""Readers of files that TensorFlow writes: checkpoints of the bundle format."""
