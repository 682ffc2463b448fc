"""Converts the examples to notebooks for Jupyter, with the outputs of a full run.

`python tools/notebooks.py record gan vae` runs examples in full, and stores what they print, their
figures and their run times. `python tools/notebooks.py write FOLDER` writes all notebooks, and so
does the build of the documentation. A notebook contains the helper modules of its program, so it
needs no other file.
"""

import ast
import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
IMAGES = ROOT / "docs" / "images"
OUTPUTS = EXAMPLES / "outputs"

SETUP = """import retrograde

retrograde.install_as_tensorflow()  # `import tensorflow` imports retrograde from here on"""
INTRODUCTION = """# {title}

{text}

This notebook runs `{name}.py` of retrograde's gallery, with its outputs. It needs the packages of
`pip install '.[keras,xla,demo]'` in a clone of the repository. Without the first cell, it runs on
TensorFlow. `main(["--small"])` is a short run, without a plot."""


def gallery():
    """Returns the entries of the gallery."""
    with open(EXAMPLES / "gallery.toml", "rb") as file:
        return tomllib.load(file)


def notebook(name):
    """Returns the notebook of an example, as the text of a file."""
    source = read(name)
    docstring = ast.get_docstring(ast.parse(source))
    output, _ = recorded(name)
    figure = base64.b64encode((IMAGES / f"{name}.png").read_bytes()).decode()
    title = gallery()[name]["title"]
    cells = [markdown(INTRODUCTION.format(title=title, text=docstring, name=name)), code(SETUP)]
    for helper in helpers(name):
        summary = ast.get_docstring(ast.parse(read(helper))).splitlines()[0]
        cells += [markdown(f"## Helpers\n\n{summary}"), code(program(helper))]
    cells += [markdown("## The program")]
    text = program(name).replace("__doc__", repr(docstring.splitlines()[0]))
    cells += [code(part) for part in definitions(text)]
    cells += [
        markdown("## Run it"),
        code("results = main([])", *([stream(output)] if output else [])),
        code(
            f'from IPython.display import Image\n\nImage("demo/{name}.png")',
            {"output_type": "display_data", "metadata": {}, "data": {"image/png": figure}},
        ),
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    content = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1) + "\n"


def markdown(text):
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def code(text, *outputs):
    cell = {"cell_type": "code", "metadata": {}, "source": text, "outputs": list(outputs)}
    return cell | {"execution_count": None}


def stream(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


def read(name):
    return (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")


def helpers(name):
    """Returns the helper modules that a program imports, in the order of their imports."""
    modules = [
        node.module for node in ast.parse(read(name)).body if isinstance(node, ast.ImportFrom)
    ]
    direct = [module for module in modules if (EXAMPLES / f"{module}.py").exists()]
    indirect = [helper for module in direct for helper in helpers(module)]
    return list(dict.fromkeys([*indirect, *direct]))


def program(name):
    """Returns a module without its docstring, its imports of helpers and the call of `main`."""
    docstring, *nodes = ast.parse(read(name)).body
    lines = read(name).splitlines()
    for node in [docstring, *nodes]:
        imports_helper = isinstance(node, ast.ImportFrom) and node.module in helpers(name)
        if node is docstring or imports_helper or isinstance(node, ast.If):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip()


def definitions(text):
    """Splits a program into its imports and constants, and its functions and classes."""
    lines = text.splitlines()
    starts = [0]
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            starts.append(min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1)
    parts = zip(starts, [*starts[1:], len(lines)], strict=True)
    return [part for a, b in parts if (part := "\n".join(lines[a:b]).strip())]


def digest(name):
    """Returns a digest of the code of an example and its helpers, without their docstrings."""
    total = hashlib.sha256()
    for module in [*helpers(name), name]:
        tree = ast.parse(read(module))
        for node in ast.walk(tree):
            documented = isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))
            if documented and ast.get_docstring(node) is not None:
                node.body = node.body[1:]
        total.update(ast.dump(tree).encode())
    return total.hexdigest()[:16]


def recorded(name):
    """Returns what a full run of an example printed, and the digest of its code.

    Both are empty if the output is not recorded.
    """
    file = OUTPUTS / f"{name}.txt"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    first, _, output = text.partition("\n")
    return output, first.removeprefix("code ")


def record(name):
    """Runs an example in full. Stores what it prints and its figure, and returns the CPU time."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "retrograde", "run", EXAMPLES / f"{name}.py"]
        before = os.times()
        run = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        after = os.times()
        figure = pathlib.Path(folder, "demo", f"{name}.png").read_bytes()
    OUTPUTS.mkdir(exist_ok=True)
    text = f"code {digest(name)}\n{run.stdout}"
    (OUTPUTS / f"{name}.txt").write_text(text, encoding="utf-8")
    (IMAGES / f"{name}.png").write_bytes(figure)
    children = ("children_user", "children_system")
    return sum(getattr(after, field) - getattr(before, field) for field in children)


def main(arguments):
    command, *names = arguments
    if command == "record":
        for name in names or gallery():
            print(f"{name}: {record(name):.0f} s of CPU time", flush=True)
    elif command == "write":
        folder = pathlib.Path(names[0])
        folder.mkdir(parents=True, exist_ok=True)
        for name in gallery():
            (folder / f"{name}.ipynb").write_text(notebook(name), encoding="utf-8")
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
