"""Diagnostics for tapes: missing gradients, NaN and Inf, memory, time, graphs, verification."""
