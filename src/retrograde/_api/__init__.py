"""Public names: where they are defined, how they are loaded, and which are missing and why."""
