"""Explains why a gradient is `None`: `tape.explain` and the `on_none` option."""
