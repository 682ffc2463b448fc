"""Recording and replaying."""
