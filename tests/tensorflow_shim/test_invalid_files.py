"""Tests `retrograde run` and `check` on invalid files: they print one line and no traceback."""

import ast
import json

import pytest

from retrograde.tensorflow_shim.command_line import main
from retrograde.tensorflow_shim.notebooks import cells_of
from tests.tensorflow_shim.helpers import run


def notebook(cells):
    return json.dumps({"cells": cells, "nbformat": 4}).encode()


def cell(source):
    return {"cell_type": "code", "source": source}


SOURCE = "the source of a cell is neither a string nor a list of strings"
CELLS = "it has no list of cells"
NOT_NOTEBOOKS = {
    "source null": (notebook([cell(None)]), SOURCE),
    "source of numbers": (notebook([cell([1])]), SOURCE),
    "source number": (notebook([cell(5)]), SOURCE),
    "source dict": (notebook([cell({"a": 1})]), SOURCE),
    "no source": (notebook([{"cell_type": "code"}]), SOURCE),
    "nested deeply": (b"[" * 100_000, "it nests more than 200 levels of lists and dicts"),
    "cells dict": (notebook({}), CELLS),
    "cells null": (notebook(None), CELLS),
    "cells of numbers": (notebook([1]), CELLS),
    "a list": (b"[]", CELLS),
    "a number": (b"3", CELLS),
    "format 3": (b'{"worksheets": []}', CELLS),
    "twice": (b'{"cells": [], "cells": []}', "the key 'cells' appears twice in one dict"),
    "empty": (b"", "it is not JSON (Expecting value: line 1 column 1 (char 0))"),
    "zeros": (bytes(100), "it is not JSON (Expecting value: line 1 column 1 (char 0))"),
    "binary": (
        bytes(range(128, 256)),
        "it is not JSON ('utf-8' codec can't decode byte 0x80 in position 0: invalid start byte)",
    ),
}


@pytest.mark.parametrize(("data", "reason"), NOT_NOTEBOOKS.values(), ids=NOT_NOTEBOOKS)
def test_files_that_are_not_notebooks(tmp_path, capsys, data, reason):
    path = tmp_path / "a.ipynb"
    path.write_bytes(data)
    message = f"Cannot read {path} as a Jupyter notebook (format 4): {reason}."

    assert main(["run", str(path)]) == 2
    assert capsys.readouterr().err == f"retrograde: {message}\n"
    assert main(["check", str(path)]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        f"{path}: {message}",
        "0 TensorFlow names in 1 file: all supported, 1 unreadable part",
    ]
    assert printed.err == ""


TOO_DEEP = "cannot parse this: it is nested too deeply"
NOT_PYTHON = {
    "zeros": (
        b"print(1)\0",
        "cannot parse this as Python: source code string cannot contain null bytes",
    ),
    "unknown encoding": (b"# coding: x\n1", "cannot parse this as Python: unknown encoding: x"),
    "parentheses": (b"(" * 5000, "cannot parse this as Python: too many nested parentheses"),
    "signs": (b"-" * 5000 + b"1", TOO_DEEP),
    "dots": (b"import tensorflow as tf\ntf" + b".a" * 5000, TOO_DEEP),
    "sum": (b"import tensorflow as tf\n" + b" + ".join([b"tf.a"] * 3000), TOO_DEEP),
    "elif": (b"if 1: pass\n" + b"elif 2: pass\n" * 3000, TOO_DEEP),
}


@pytest.mark.parametrize(("data", "reason"), NOT_PYTHON.values(), ids=NOT_PYTHON)
def test_files_that_are_not_python(tmp_path, capsys, data, reason):
    path = tmp_path / "a.py"
    path.write_bytes(data)

    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[0] == f"{path}:1: {reason}"


@pytest.mark.parametrize("source", ["-" * 5000 + "1", "a\0b", 'x = "\ud800"', "def (:"])
def test_cells_that_are_not_python(tmp_path, capsys, source):
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook([cell(source), cell("import tensorflow as tf\ntf.nothing")]))

    assert main(["check", str(path)]) == 1
    first, second, _ = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{path}, cell 1, line 1: cannot parse this")
    assert second == f"{path}, cell 2, line 2: tf.nothing is not in retrograde."
    result = run(tmp_path, "a.ipynb")
    assert result.returncode == 1
    assert result.stderr.endswith("retrograde: a.ipynb: cell 1 of 2 failed\n")
    assert "Traceback" not in result.stderr


def test_a_name_with_many_parts(tmp_path, capsys):
    name = "tensorflow" + ".a" * 5000
    (tmp_path / "a.py").write_text(f"import {name}\n")

    assert main(["check", str(tmp_path / "a.py")]) == 1
    assert (
        capsys.readouterr().out.splitlines()[0] == f"{tmp_path}/a.py:1: tf.a is not in retrograde."
    )
    result = run(tmp_path, "run", "-m", name)
    assert result.returncode == 1
    assert result.stderr == (
        f"retrograde: cannot run module '{name[:80]}...': the name has too many parts\n"
    )


def test_a_missing_module_prints_one_line(tmp_path):
    result = run(tmp_path, "run", "-m", "nowhere")

    assert result.returncode == 1
    assert result.stderr == "retrograde: cannot run module 'nowhere': No module named nowhere\n"


def test_an_invalid_file_does_not_hide_other_files(tmp_path, capsys):
    (tmp_path / "a.ipynb").write_bytes(b"")
    (tmp_path / "b.py").symlink_to("nowhere")
    (tmp_path / "c.py").write_text("import tensorflow as tf\ntf.nothing\n")

    assert main(["check", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == [
        str(tmp_path / n) for n in ("a.ipynb", "b.py", "c.py")
    ]
    assert lines[3].endswith("in 3 files: 1 not supported, 2 unreadable parts")


def test_a_notebook_can_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "a.ipynb").write_bytes(b"\xef\xbb\xbf" + notebook([cell(["print(", "'read')"])]))

    assert run(tmp_path, "a.ipynb").stdout == "read\n"


def test_ipython_lines_are_found_in_linear_time(tmp_path, monkeypatch):
    """Statements before such a line are not parsed again: 2,000 lines would take minutes."""
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook([cell("x = 1\n%time\n" * 300 + "if x:\n    !ls\n    y = 2\n")]))
    parsed, parse = [], ast.parse
    monkeypatch.setattr(ast, "parse", lambda text: parsed.append(len(text)) or parse(text))

    (notebook_cell,) = cells_of(path)

    assert notebook_cell.skipped == ["%time"] * 300 + ["!ls"]
    assert notebook_cell.source == "x = 1\npass\n" * 300 + "if x:\n    pass\n    y = 2"
    assert len(parsed) == 302
    assert parsed[-1] < 100
