"""Functions and classes of the namespace `tf` that no other namespace defines."""
