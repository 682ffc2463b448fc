"""Randomized robustness tests: they look for wrong results, lost state and bad errors.

Each module listed in `CAMPAIGNS` defines

- `trial(seed)`, which runs one trial. Everything random in it derives from `seed`. It returns
  `None` if the trial passed, and otherwise a text: the problem and a minimal program or command
  that reproduces it.
- `SHORT`, the number of trials that CI runs.
"""

CAMPAIGNS = ("programs", "calls", "files", "writers", "threads", "memory", "replicas", "restarts")
