"""`tape.graph`: the way from sources to a target as a picture."""
