"""Public names: lazy loading from stubs, names that are missing, and hooks into `core`."""
