"""One virtual environment for each peer."""

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
    """What an environment was made from, one item a line."""
    return "\n".join([f"python {python_version}", *requirements]) + "\n"


def is_current(folder, wanted):
    """Whether the marker in `folder` exists and says `wanted`."""
    marker = Path(folder) / MARKER
    return marker.is_file() and marker.read_text() == wanted


def python_in(folder):
    names = ("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")
    return Path(folder).joinpath(*names)


def python_of(peer, ready, say):
    """The Python that has `peer`: from the folder `ready` if it is there, else from `.bench`."""
    if ready is not None and python_in(ready / peer.package).exists():
        return str(python_in(ready / peer.package))
    folder = HOME / peer.package
    wanted = marker_text(_all_requirements(peer), platform.python_version())
    if not is_current(folder, wanted):
        _set_up(folder, peer, say)
        (folder / MARKER).write_text(wanted)
    return str(python_in(folder))


def _all_requirements(peer):
    """The requirements of `peer`; for the project itself, with its dependencies."""
    if "-e" not in peer.requirements:
        return peer.requirements
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return (*peer.requirements, *project["dependencies"])


def _set_up(folder, peer, say):
    HOME.mkdir(exist_ok=True)
    (HOME / ".gitignore").write_text("*\n")
    say(f"{peer.package}: making a virtual environment in {folder.relative_to(ROOT)}")
    _make_environment(folder)
    say(f"{peer.package}: pip install {' '.join(peer.requirements)}")
    pip = [str(python_in(folder)), "-m", "pip", "install", "--disable-pip-version-check"]
    _run([*pip, *peer.requirements])


def _make_environment(folder):
    """Some systems ship venv without ensurepip; there this interpreter's pip does its work."""
    make = [sys.executable, "-m", "venv", "--clear", str(folder)]
    try:
        _run(make)
    except PeerError:
        _run([*make, "--without-pip"])
        _run([sys.executable, "-m", "pip", "--python", str(python_in(folder)), "install", "pip"])


def _run(command):
    """Run at the root of the repository, with all output on stderr."""
    status = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode
    if status != 0:
        raise PeerError(f"set-up: {' '.join(command[1:])} ended with status {status}")
