"""Accelerators and other JAX devices: where operations run and tensors live."""
