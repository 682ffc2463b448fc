"""Finds the line of a call in the source code, for tapes that did not store lines."""

from __future__ import annotations

import ast
import linecache

# Functions and operators that call a primitive of another name.
_FUNCTIONS = {
    "sqrt": {"norm", "reduce_std", "reduce_euclidean_norm"},
    "power": {"pow"},
    "divide": {"truediv", "xdivy", "normalize"},
    "multiply": {"scalar_mul"},
}
_OPERATORS = {"power": ast.Pow, "divide": ast.Div, "multiply": ast.Mult, "matmul": ast.MatMult}


def likely_line(filename: str, line: int, primitive: str) -> tuple[int, str] | None:
    """Returns the number and text of the only line in a tape's block that calls `primitive`.

    The block is the last one before `line`, where `gradient()` was called. Returns `None` if no
    line or several lines qualify.
    """
    block = _block(linecache.getlines(filename), line)
    if block is None:
        return None
    lines = {node.lineno for node in ast.walk(block) if _calls(node, primitive)}
    if len(lines) != 1:
        return None
    (number,) = lines
    return number, linecache.getline(filename, number).strip()


def _block(source: list[str], line: int) -> ast.With | None:
    try:
        tree = ast.parse("".join(source))
    except SyntaxError:
        return None
    blocks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        and node.lineno <= line
        and any("GradientTape" in ast.unparse(item.context_expr) for item in node.items)
    ]
    return max(blocks, key=lambda node: node.lineno, default=None)


def _calls(node: ast.AST, primitive: str) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, _OPERATORS.get(primitive, ()))
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", None))
    return name == primitive or name in _FUNCTIONS.get(primitive, ())
