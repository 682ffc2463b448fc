"""Implements the backend functions of `keras.ops` with retrograde operations."""
