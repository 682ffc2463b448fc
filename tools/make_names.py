"""Makes `src/retrograde/_api/names.py`: where the names of each public package are at home.

    python tools/make_names.py

They are read from the imports under `if TYPE_CHECKING` in the packages themselves.
"""

from __future__ import annotations

import ast
import pathlib
import textwrap

ROOT = pathlib.Path(__file__).parents[1] / "src"
HEAD = '''"""Where public names are at home. Made by `tools/make_names.py`."""

HOMES = {
'''


def homes_in(source: str) -> dict[str, list[str]]:
    """The names that a package imports under `if TYPE_CHECKING`, by module."""
    found: dict[str, list[str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                for alias in statement.names:
                    where, entry = _entry(statement.module, alias)
                    found.setdefault(where, []).append(entry)
    return found


def _entry(module: str, alias: ast.alias) -> tuple[str, str]:
    whole = f"{module}.{alias.name}"
    name = alias.asname or alias.name
    if _is_module(whole):
        return "", f"{name}={whole}"
    return module, name if name == alias.name else f"{name}={alias.name}"


def _is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def packages() -> dict[str, pathlib.Path]:
    """The packages that have names to be imported later."""
    files = sorted((ROOT / "retrograde").rglob("__init__.py"))
    named = {".".join(path.parent.relative_to(ROOT).parts): path for path in files}
    return {name: path for name, path in named.items() if "TYPE_CHECKING" in path.read_text()}


def text() -> str:
    """The whole file."""
    lines = [HEAD]
    for package, path in packages().items():
        lines.append(f'    "{package}": {{\n')
        for module, names in sorted(homes_in(path.read_text()).items()):
            lines.append(f'        "{module}": """\n')
            lines += [
                f"            {line}\n" for line in textwrap.wrap(" ".join(sorted(names)), 86)
            ]
            lines.append('        """,\n')
        lines.append("    },\n")
    return "".join([*lines, "}\n"])


if __name__ == "__main__":
    (ROOT / "retrograde" / "_api/names.py").write_text(text())
