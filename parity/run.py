"""Compares retrograde with TensorFlow: `python parity/run.py --help`.

For a script, Python adds its folder to `sys.path`; the package is one level above.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    runpy.run_module("parity", run_name="__main__", alter_sys=True)
