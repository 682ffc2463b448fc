"""Benchmarks retrograde against other libraries. Run `python benchmarks/run.py`."""
