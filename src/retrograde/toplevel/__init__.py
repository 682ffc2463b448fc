"""Functions and classes of the namespace `tf` itself, which no other namespace defines."""
