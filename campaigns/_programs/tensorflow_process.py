"""Runs programs with TensorFlow, in another interpreter.

The other process executes this file. It gets one line of JSON for each program and replies with
one, after it has written the results to a file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

_ROOT = Path(__file__).resolve().parent.parent.parent


class Process:
    """An interpreter in which TensorFlow runs programs eagerly."""

    def __init__(self, python: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._file = str(Path(self._folder.name) / "results.npz")
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [python, str(Path(__file__)), self._file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"},
        )

    def run(self, source: str) -> Any:
        """Returns the `Outcome` of a program; the class of its error has TensorFlow's name."""
        from campaigns._programs.runner import Outcome, Result

        print(json.dumps(source), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("The process that runs TensorFlow ended.")
        reply = json.loads(line)
        results = []
        with np.load(self._file) as arrays:
            for i, (label, dtype) in enumerate(reply["results"]):
                results.append(Result(label, dtype, arrays.get(str(i))))
        error = None if reply["error"] is None else type(reply["error"], (Exception,), {})()
        if error is not None:
            error.args = (reply["message"],)
        return Outcome(results, error)


def _serve(file: str) -> None:
    output = sys.stdout
    sys.stdout = sys.stderr  # TensorFlow may print
    sys.path[0] = str(_ROOT)
    import tensorflow as tf

    from campaigns._programs.runner import run

    for line in sys.stdin:
        outcome = run(json.loads(line), tf, lambda f: f)
        arrays = {str(i): k.value for i, k in enumerate(outcome.results) if k.value is not None}
        np.savez(file, **{n: _storable(x) for n, x in arrays.items()})
        error = outcome.error
        reply = {
            "results": [(k.label, k.dtype) for k in outcome.results],
            "error": None if error is None else type(error).__name__,
            "message": str(error)[:300],
        }
        print(json.dumps(reply), file=output, flush=True)


def _storable(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


if __name__ == "__main__":
    _serve(sys.argv[1])
