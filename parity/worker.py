"""The process of one library. Makes all calls and writes the results, one per line.

The Python of the library runs it as `python -m parity.worker LIBRARY SEED FILE [START]`. The first
START calls are skipped, for example after a crash.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings

from parity.calls import all_calls
from parity.evaluation import evaluate


def main(library: str, seed: str, file: str, start: str = "0") -> None:
    """Appends a result to `file` for each call from `start` on."""
    warnings.simplefilter("ignore")
    tf = importlib.import_module(library)
    with open(file, "a") as output:
        for call in all_calls()[int(start) :]:
            output.write(json.dumps(evaluate(tf, call, int(seed))) + "\n")
            output.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
