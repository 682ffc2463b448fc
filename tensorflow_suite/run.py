"""Runs TensorFlow's own tests: `python tensorflow_suite/run.py --help`.

For a script, Python searches modules in this directory, but the package is one level above.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    runpy.run_module("tensorflow_suite", run_name="__main__", alter_sys=True)
