"""Tests `retrograde run`."""

import json
import multiprocessing
import re
import textwrap

import pytest

from retrograde.tensorflow_shim import command_line
from tests.tensorflow_shim.helpers import run, run_python

PROGRAM = '''\
"""A program that prints its environment."""
import os
import pickle
import sys

import neighbor
import tensorflow as tf


class Thing:
    pass


def fail():
    raise ValueError("on purpose")


if __name__ == "__main__":
    print(sys.argv, __name__, __doc__, __spec__, __package__, os.path.basename(__file__))
    print(sys.path[0] == os.path.dirname(os.path.realpath(__file__)), neighbor.NAME)
    print(type(pickle.loads(pickle.dumps(Thing()))) is Thing)
    if "exit" in sys.argv:
        sys.exit(7)
    if "fail" in sys.argv:
        fail()
    print(tf.constant(2.0).numpy())
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    (folder / "sub" / "package").mkdir(parents=True)
    (folder / "sub" / "train.py").write_text(PROGRAM)
    (folder / "sub" / "neighbor.py").write_text("NAME = 'neighbor'\n")
    (folder / "sub" / "package" / "__init__.py").write_text("")
    (folder / "sub" / "package" / "part.py").write_text(
        "from . import __name__ as package\n"
        "import tensorflow\n"
        "print(package, tensorflow.__version__)\n"
    )
    (folder / "broken.py").write_text("import os\nx = = 1\n")
    fake = folder / "fake"
    fake.mkdir()
    (fake / "tensorflow.py").write_text(
        "class constant:\n  def __init__(self, x): self.numpy = lambda: x\n"
    )
    return folder


@pytest.mark.parametrize("arguments", [["--steps", "3"], ["exit"], ["fail", "-m", "-x"]])
def test_a_program_runs_as_under_python(folder, arguments):
    actual = run(folder, "run", "sub/train.py", *arguments)
    expected = run_python(folder, "sub/train.py", *arguments, path=[folder / "fake"])

    assert actual.stdout == expected.stdout
    assert actual.stderr == expected.stderr
    assert actual.returncode == expected.returncode


def test_run_is_the_default_command(folder):
    result = run(folder, "sub/train.py", "run", "check")

    assert result.returncode == 0
    assert "['sub/train.py', 'run', 'check'] __main__" in result.stdout


def test_a_module_can_be_run_by_name(folder):
    result = run(folder / "sub", "run", "-m", "package.part")

    assert result.stdout == "package 2.21.0\n"


def test_files_that_cannot_be_run(folder):
    broken, missing = run(folder, "broken.py"), run(folder, "missing.py")

    assert broken.returncode == 1
    assert broken.stderr == run_python(folder, "broken.py").stderr
    assert missing.returncode == 2
    where = folder / "missing.py"
    assert missing.stderr == (
        f"retrograde: can't open file '{where}': [Errno 2] No such file or directory\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "retrograde: 'trian' is neither a file nor a command. See retrograde --help."),
        (["run"], "retrograde run: error: the following arguments are required: FILE"),
    ],
)
def test_invalid_commands(folder, arguments, message):
    result = run(folder, *arguments)

    assert result.returncode == 2
    assert result.stderr.splitlines()[-1] == message


@pytest.mark.parametrize("command", [None, "run", "launch", "check"])
def test_help_shows_examples_line_by_line(command, capsys):
    with pytest.raises(SystemExit) as stop:
        command_line.main([*([command] if command else []), "--help"])

    assert stop.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    examples = lines[lines.index("examples:") + 1 :]
    assert examples[0].startswith(f"  retrograde {command or 'run'} ")
    assert examples[1].startswith(f"  retrograde {command or 'check'} ")


NOTEBOOK = [
    ("markdown", "# Title"),
    (
        "code",
        "!pip install tensorflow \\\n    matplotlib\n%matplotlib inline\nimport tensorflow",
    ),
    ("code", "%%time\nx = tensorflow.constant([1.0, 2.0])\ntext = '''\n%d\n'''\nlen(text)"),
    ("code", "%%bash\nls"),
    ("code", "def double(x):\n    if x is None:\n        !echo none\n    return 2 * x\nx.shape?"),
    ("code", "1 / 0"),
    ("code", "double(x).numpy().tolist();"),
    ("code", "display(double(x).numpy().tolist())\nmissing"),
    ("code", "import os, sys\n(os.path.basename(os.getcwd()), sys.argv[1:])"),
]


@pytest.fixture
def notebook(tmp_path):
    cells = [{"cell_type": kind, "source": [text]} for kind, text in NOTEBOOK]
    (tmp_path / "books").mkdir()
    path = tmp_path / "books" / "guide.ipynb"
    path.write_text(json.dumps({"nbformat": 4, "cells": cells}))
    return path


def test_a_cell_can_start_indented(tmp_path):
    source = "\n    x = 1\n    if x:\n        x += 1\n    x"
    cells = [{"cell_type": "code", "source": source}]
    (tmp_path / "guide.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))

    result = run(tmp_path, "run", "guide.ipynb")
    assert (result.stdout, result.stderr) == ("2\n", "")


def test_a_notebook_stops_at_a_failing_cell(notebook):
    result = run(notebook.parent, "run", "guide.ipynb")

    assert result.returncode == 1
    assert result.stdout == "4\n"
    assert result.stderr == textwrap.dedent("""\
        retrograde: guide.ipynb, cell 1: skipped !pip install tensorflow \\
        retrograde: guide.ipynb, cell 1: skipped %matplotlib inline
        retrograde: guide.ipynb, cell 2: skipped %%time
        retrograde: guide.ipynb, cell 3: skipped %%bash
        retrograde: guide.ipynb, cell 4: skipped !echo none
        retrograde: guide.ipynb, cell 4: skipped x.shape?
        Traceback (most recent call last):
          File "<guide.ipynb, cell 5>", line 1, in <module>
            1 / 0
            ~~^~~
        ZeroDivisionError: division by zero
        retrograde: guide.ipynb: cell 5 of 8 failed
        """)


def test_keep_going_runs_all_cells_and_counts_failures(notebook):
    result = run(notebook.parents[1], "run", "--keep-going", "books/guide.ipynb", "--fast")

    assert result.returncode == 1
    assert result.stdout == "4\n[2.0, 4.0]\n('books', ['--fast'])\n"
    assert re.findall(r"(?m)^retrograde: .*failed.*$", result.stderr) == [
        "retrograde: guide.ipynb: cell 5 of 8 failed",
        "retrograde: guide.ipynb: cell 7 of 8 failed",
        "retrograde: guide.ipynb: 2 of 8 cells failed: 5, 7",
    ]


def test_a_file_that_is_not_a_notebook(tmp_path):
    (tmp_path / "old.ipynb").write_text('{"nbformat": 3, "worksheets": []}')
    result = run(tmp_path, "old.ipynb")

    assert result.returncode == 2
    assert result.stderr == (
        "retrograde: Cannot read old.ipynb as a Jupyter notebook (format 4): it has no list of "
        "cells.\n"
    )


# Child processes

POOL = """
import multiprocessing
import sys

import tensorflow as tf


def derivative(x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**2
    return multiprocessing.current_process().name, float(tape.gradient(y, x)), tf.__version__


if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        name, gradient, version = pool.map(derivative, [3.0])[0]
    assert name != multiprocessing.current_process().name
    print(gradient, version == tf.__version__)
"""


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("spawn", ["pool.py"]),
        ("spawn", ["-m", "pool"]),
        ("forkserver", ["pool.py"]),
        ("fork", ["pool.py"]),
    ],
)
def test_child_processes_import_retrograde(tmp_path, method, arguments):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform has no {method}")
    (tmp_path / "pool.py").write_text(POOL)

    result = run(tmp_path, "run", *arguments, method)

    assert (result.stdout, result.returncode) == ("6.0 True\n", 0), result.stderr


def test_child_processes_of_a_program_that_calls_install_as_tensorflow(tmp_path):
    (tmp_path / "pool.py").write_text(
        POOL.replace(
            "import tensorflow",
            "import retrograde\nretrograde.install_as_tensorflow()\nimport tensorflow",
        )
    )

    result = run_python(tmp_path, "pool.py", "spawn")

    assert (result.stdout, result.returncode) == ("6.0 True\n", 0), result.stderr
