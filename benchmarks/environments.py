"""Creates a virtual environment for each peer."""

import platform
import subprocess
import sys
import tomllib
from pathlib import Path

from benchmarks.peers import ROOT
from benchmarks.processes import PeerError

HOME = ROOT / ".bench"
MARKER = "installed.txt"


def marker_text(requirements, python_version):
    """Describes the contents of an environment, one item per line."""
    return "\n".join([f"python {python_version}", *requirements]) + "\n"


def is_current(folder, expected):
    """Returns whether the marker in `folder` exists and has the `expected` text."""
    marker = Path(folder) / MARKER
    return marker.is_file() and marker.read_text() == expected


def python_in(folder):
    names = ("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")
    return Path(folder).joinpath(*names)


def python_of(peer, environments, log):
    """Returns the Python with `peer`, from the folder `environments` or else from `.bench`."""
    if environments is not None and python_in(environments / peer.package).exists():
        return str(python_in(environments / peer.package))
    folder = HOME / peer.package
    marker = marker_text(_all_requirements(peer), platform.python_version())
    if not is_current(folder, marker):
        _set_up(folder, peer, log)
        (folder / MARKER).write_text(marker)
    return str(python_in(folder))


def _all_requirements(peer):
    """Returns the requirements of `peer`, including the dependencies of the project itself."""
    if "-e" not in peer.requirements:
        return peer.requirements
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return (*peer.requirements, *project["dependencies"])


def _set_up(folder, peer, log):
    HOME.mkdir(exist_ok=True)
    (HOME / ".gitignore").write_text("*\n")
    log(f"{peer.package}: creating a virtual environment in {folder.relative_to(ROOT)}")
    _create_environment(folder)
    log(f"{peer.package}: pip install {' '.join(peer.requirements)}")
    pip = [str(python_in(folder)), "-m", "pip", "install", "--disable-pip-version-check"]
    _run([*pip, *peer.requirements])


def _create_environment(folder):
    """Creates an environment, with this interpreter's pip on systems without ensurepip."""
    create = [sys.executable, "-m", "venv", "--clear", str(folder)]
    try:
        _run(create)
    except PeerError:
        _run([*create, "--without-pip"])
        _run([sys.executable, "-m", "pip", "--python", str(python_in(folder)), "install", "pip"])


def _run(command):
    """Runs a command at the root of the repository, with all output on stderr."""
    status = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode
    if status != 0:
        raise PeerError(f"setup: {' '.join(command[1:])} ended with status {status}")
