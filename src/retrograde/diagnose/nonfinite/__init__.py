"""Finds the origin of NaN and Inf: `tape.autopsy` and `debugging.nonfinite`."""
