"""Answers that TensorFlow once gave, kept for the tests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "tests" / "parity" / "answers.jsonl.gz"
LONGEST = 30_000  # characters of an answer; calls on large images are left to `make parity`


def write(answers: list[dict], seed: int) -> None:
    """Keeps the answers, all but the longest in both precisions."""
    long = {_call(answer) for answer in answers if len(json.dumps(answer)) > LONGEST}
    kept = [seed, *(_shortened(answer) for answer in answers if _call(answer) not in long)]
    with gzip.GzipFile(FILE, "wb", 9, mtime=0) as file:  # the same bytes for the same answers
        file.write("\n".join(map(json.dumps, kept)).encode())


def _shortened(answer: dict) -> dict:
    """Without messages, and without the sources but in one precision: they are the same in all."""
    if "error" in answer:
        answer = answer | {"error": [*answer["error"][:2], ""]}
    if answer["precision"] == "float32":
        return answer
    return {key: value for key, value in answer.items() if key != "sources"}


def _call(answer: dict) -> tuple[str, str]:
    return answer["function"], answer["expression"]


def read() -> tuple[int, dict[str, list[dict]]]:
    """The seed, and the answers of each function."""
    with gzip.open(FILE, "rt") as file:
        seed, *answers = map(json.loads, file)
    found = {}
    for answer in answers:
        found.setdefault(answer["function"], []).append(answer)
    return seed, found
