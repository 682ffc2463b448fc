"""Functions in saved models: traces as plain data, and functions loaded from it."""
