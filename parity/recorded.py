"""Reads and writes TensorFlow's recorded answers, for the tests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "tests" / "parity" / "answers.jsonl.gz"
MAX_LENGTH = 30_000  # characters; only `make parity` compares longer answers


def write(answers: list[dict], seed: int) -> None:
    """Writes the answers, except for calls with long answers."""
    long = {_call(answer) for answer in answers if len(json.dumps(answer)) > MAX_LENGTH}
    kept = [seed, *(_shorten(answer) for answer in answers if _call(answer) not in long)]
    with gzip.GzipFile(FILE, "wb", 9, mtime=0) as file:  # the same bytes for the same answers
        file.write("\n".join(map(json.dumps, kept)).encode())


def _shorten(answer: dict) -> dict:
    """Removes messages, and sources except in float32: they are the same in all precisions."""
    if "error" in answer:
        answer = answer | {"error": [*answer["error"][:2], ""]}
    if answer["precision"] == "float32":
        return answer
    return {key: value for key, value in answer.items() if key != "sources"}


def _call(answer: dict) -> tuple[str, str]:
    return answer["function"], answer["expression"]


def read() -> tuple[int, dict[str, list[dict]]]:
    """Returns the seed and the answers for each function."""
    with gzip.open(FILE, "rt") as file:
        seed, *answers = map(json.loads, file)
    by_function = {}
    for answer in answers:
        by_function.setdefault(answer["function"], []).append(answer)
    return seed, by_function
