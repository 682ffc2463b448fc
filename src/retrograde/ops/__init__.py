"""Primitives: the kernel, vjp rules and batch rule of each, side by side."""
