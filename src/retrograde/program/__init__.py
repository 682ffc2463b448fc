"""function(): a Python function is run once, and what it did is done again."""
