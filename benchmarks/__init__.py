"""Benchmarks of retrograde against its peers; start them with `python benchmarks/run.py`."""
