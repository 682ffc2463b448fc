"""Generates, runs, compares and shrinks random programs."""
