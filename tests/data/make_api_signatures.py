"""Creates `api_signatures.json` from a JSON file of TensorFlow's public callables.

    python tests/data/make_api_signatures.py FILE

The file maps namespaces to lists of `{"name": ..., "signature": ...}`, with signatures as printed
by `inspect`. The result has the names and defaults of parameters, without annotations.
"""

from __future__ import annotations

import json
import pathlib
import sys

OPEN, CLOSE = "([{<", ")]}>"


def parameters(signature: str) -> list[list[str]]:
    """Returns `[name]` or `[name, default]` for each parameter of a signature."""
    return [_parameter(part) for part in _split(_inside(signature), ",") if part]


def _inside(signature: str) -> str:
    """Returns the text between the outer parentheses."""
    depth = 0
    for i, c in enumerate(signature):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return signature[1:i]
    raise ValueError(f"not a signature: {signature}")


def _split(text: str, separator: str) -> list[str]:
    """Splits `text` at each `separator` that is outside brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in OPEN) - (c in CLOSE)
        if c == separator and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]


def _parameter(text: str) -> list[str]:
    head, *default = _split(text, "=")
    return [_split(head, ":")[0], *default]


def main(path: str) -> None:
    """Writes `api_signatures.json` with one line for each callable."""
    namespaces = json.loads(pathlib.Path(path).read_text())["namespaces"]
    lines = {
        entry["name"]: parameters(entry["signature"])
        for entries in namespaces.values()
        for entry in entries
        if entry.get("signature")
    }
    text = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(lines.items()))
    pathlib.Path(__file__).with_name("api_signatures.json").write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
