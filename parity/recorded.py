"""Reads and writes TensorFlow's recorded results, for the tests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "tests" / "parity" / "results.jsonl.gz"
MAX_LENGTH = 30_000  # characters; only `make parity` compares longer results


def write(results: list[dict], seed: int) -> None:
    """Writes the results, except for calls with long results."""
    long = {_call(result) for result in results if len(json.dumps(result)) > MAX_LENGTH}
    kept = [seed, *(_shorten(result) for result in results if _call(result) not in long)]
    with gzip.GzipFile(FILE, "wb", 9, mtime=0) as file:  # the same bytes for the same results
        file.write("\n".join(map(json.dumps, kept)).encode())


def _shorten(result: dict) -> dict:
    """Removes messages, and sources except in float32: they are the same in all precisions."""
    if "error" in result:
        result = result | {"error": [*result["error"][:2], ""]}
    if result["precision"] == "float32":
        return result
    return {key: value for key, value in result.items() if key != "sources"}


def _call(result: dict) -> tuple[str, str]:
    return result["function"], result["expression"]


def read() -> tuple[int, dict[str, list[dict]]]:
    """Returns the seed and the results for each function."""
    with gzip.open(FILE, "rt") as file:
        seed, *results = map(json.loads, file)
    by_function = {}
    for result in results:
        by_function.setdefault(result["function"], []).append(result)
    return seed, by_function
