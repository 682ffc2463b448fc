"""Where NaN and infinity come from: `tape.autopsy` and `debugging.nonfinite`."""
