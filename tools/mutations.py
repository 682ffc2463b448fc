"""Creates mutants of Python source: copies with one small fault."""

from __future__ import annotations

import ast
import copy
import difflib
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ANNOTATIONS = frozenset({"annotation", "returns", "type_params"})


@dataclass
class Mutant:
    """A change of one node, found by `path`: field names and positions from the module down."""

    file: str
    path: tuple
    kind: str
    replacement: ast.AST
    line: int

    def tree(self, source: str) -> ast.Module:
        """Returns the tree of the changed module. All other nodes keep their positions."""
        tree = ast.parse(source)
        *way, (name, position) = self.path
        parent = _follow(tree, way)
        old = _follow(parent, [(name, position)])
        new = ast.fix_missing_locations(ast.copy_location(copy.deepcopy(self.replacement), old))
        if position is None:
            setattr(parent, name, new)
        else:
            getattr(parent, name)[position] = new
        return tree

    def text(self, source: str) -> str:
        """Returns the source of the changed module."""
        node = _follow(ast.parse(source), self.path)
        lines = source.encode().splitlines(keepends=True)
        first, last = node.lineno - 1, node.end_lineno - 1
        new = ast.unparse(ast.fix_missing_locations(copy.deepcopy(self.replacement)))
        if isinstance(node, ast.stmt):
            new = textwrap.indent(new, " " * node.col_offset).lstrip()
        else:
            new = f"({new})"
        before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
        lines[first : last + 1] = [before + new.encode() + after]
        return b"".join(lines).decode()

    def diff(self, source: str) -> str:
        """Returns the change as a unified diff without context lines."""
        lines = difflib.unified_diff(
            source.splitlines(), self.text(source).splitlines(), self.file, self.kind, "", "", 0, ""
        )
        return "\n".join(lines)


def mutants_of(file: str, source: str) -> list[Mutant]:
    """Returns every mutant of a module. Each compiles and differs from the module."""
    tree = ast.parse(source)
    return [
        Mutant(file, path, kind, replacement, node.lineno)
        for path, node in _paths_and_nodes(tree, ())
        for kind, replacement in _replacements(node, is_condition=path[-1][0] == "test")
    ]


def changed_functions(before: CodeType, after: CodeType) -> dict[CodeType, CodeType] | None:
    """Returns the new code of each function that differs; `None` if a module or class body does."""
    changed: dict[CodeType, CodeType] = {}
    pairs = [(before, after)]
    while pairs:
        old, new = pairs.pop()
        if old == new:
            continue
        inner, inner_new = _nested_code(old), _nested_code(new)
        if old.co_flags & inspect.CO_OPTIMIZED:
            changed[old] = new
        elif len(inner) != len(inner_new) or _own_code(old) != _own_code(new):
            return None
        if len(inner) == len(inner_new):
            pairs += zip(inner, inner_new, strict=True)
    return changed


def _nested_code(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _own_code(code: CodeType) -> tuple:
    constants = [repr(c) for c in code.co_consts if not isinstance(c, CodeType)]
    return code.co_code, code.co_names, constants


def _follow(node: ast.AST, path: tuple | list) -> ast.AST:
    for name, position in path:
        child = getattr(node, name)
        node = child if position is None else child[position]
    return node


def _paths_and_nodes(node: ast.AST, path: tuple) -> Iterator[tuple[tuple, ast.AST]]:
    """Yields the nodes below `node` that may change.

    Annotations, docstrings, code for type checkers, error messages and lists of public names are
    not changed.
    """
    for name, value in ast.iter_fields(node):
        if name in ANNOTATIONS:
            continue
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for position, child in children:
            if not isinstance(child, ast.AST) or _is_unchanged(child):
                continue
            child_path = (*path, (name, position))
            if hasattr(child, "lineno"):
                yield child_path, child
            if not isinstance(child, (ast.Raise, ast.Assert, ast.JoinedStr)):
                yield from _paths_and_nodes(child, child_path)


def _is_unchanged(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) in ("__all__", "__slots__")
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in ("warnings.warn", "cast", "TypeVar")
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _replacements(node: ast.AST, is_condition: bool) -> Iterator[tuple[str, ast.AST]]:
    """Yields the nodes that may replace a node, each with the name of the change."""
    if is_condition:
        yield "negated condition", ast.UnaryOp(ast.Not(), node)
    if isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)):
        if type(node.op) in OPERATORS:
            yield "operator", _with(node, op=OPERATORS[type(node.op)]())
        elif isinstance(node.op, ast.MatMult):
            yield "operator", _with(node, left=node.right, right=node.left)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in COMPARISONS[type(node.ops[0])]:
            yield "comparison", _with(node, ops=[other()])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield "operator", node.operand
    elif isinstance(node, ast.Constant):
        yield from _other_constants(node)
    elif isinstance(node, ast.Call) and len(node.args) > 1:
        first, second, *rest = node.args
        if not any(isinstance(argument, ast.Starred) for argument in (first, second)):
            yield "swapped arguments", _with(node, args=[second, first, *rest])
    if isinstance(node, ast.Return) and node.value and ast.unparse(node.value) != "None":
        yield "return None", ast.Return(ast.Constant(None))
    if _can_be_removed(node):
        yield "removed statement", ast.Pass()


def _other_constants(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, (int, float)):
        yield "constant", ast.Constant(value + 1)
    elif isinstance(value, str) and value:
        yield "constant", ast.Constant(value + "_")


def _can_be_removed(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):  # most modules fail without the assignment to a name
        return not isinstance(node.targets[0], (ast.Name, ast.Tuple))
    return isinstance(
        node, (ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)
    )


def _with(node: ast.AST, **fields: object) -> ast.AST:
    values = {name: getattr(node, name) for name in node._fields} | fields
    return type(node)(**values)
