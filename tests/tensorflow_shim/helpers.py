"""Runs programs with Python and with the `retrograde` command."""

import os
import pathlib
import subprocess
import sys

import retrograde

SOURCE = pathlib.Path(retrograde.__file__).parents[1]


def run(folder, *command):
    """Runs `python -m retrograde COMMAND` in a folder."""
    return run_python(folder, "-m", "retrograde", *command)


def run_python(folder, *command, path=()):
    """Runs `python COMMAND` in a folder, with `path` on the module search path."""
    paths = os.pathsep.join(map(str, (*path, SOURCE)))
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
