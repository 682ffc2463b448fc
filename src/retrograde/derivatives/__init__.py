"""Derivatives beyond gradients: Jacobians, per-example gradients, Taylor mode, checkpointing."""
