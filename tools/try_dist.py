"""Builds the sdist and the wheel from the last commit, and tries each in a fresh environment.

    python tools/try_dist.py [folder]

The files are left in `folder`, `dist/` if it is not given. Changes that are not committed are not
in them. Each try installs one of the files alone, without JAX and Keras, and runs a few checks.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Runs in the fresh environment, outside the repository.
CHECKS = """
import importlib.metadata, importlib.util, pathlib, sys

import retrograde as tf

assert "site-packages" in tf.__file__, tf.__file__
assert tf.__version__ == importlib.metadata.version("retrograde") == sys.argv[1], tf.__version__
for name in ("jax", "keras"):
    assert importlib.util.find_spec(name) is None, name

x = tf.Variable([1.0, 2.0])
with tf.GradientTape() as tape:
    y = tf.reduce_sum(x * x)
assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]

package = pathlib.Path(tf.__file__).parent
stubs = sorted(path.relative_to(package).as_posix() for path in package.rglob("*.pyi"))
assert stubs == sys.argv[2].split(), stubs
for name in ("py.typed", "_api/tensorflow_names.txt"):
    assert (package / name).is_file(), name
for extra in ("xla", "keras"):
    assert extra in importlib.metadata.metadata("retrograde").get_all("Provides-Extra")
assert importlib.metadata.metadata("retrograde").get_all("License-File") == ["LICENSE"]
"""


def run(*command: object, **options: object) -> str:
    """Runs a command and returns its output; a failure ends this program with the output."""
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, **options
    )
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


def build(source: pathlib.Path, folder: pathlib.Path) -> list[pathlib.Path]:
    """Builds the sdist, and from it the wheel, of the last commit."""
    archive = source / "source.tar"
    run("git", "-C", ROOT, "archive", "--output", archive, "HEAD")
    with tarfile.open(archive) as files:
        files.extractall(source / "tree", filter="data")
    run(sys.executable, "-m", "build", "--outdir", folder, source / "tree")
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


def try_out(file: pathlib.Path, folder: pathlib.Path, version: str, stubs: list[str]) -> None:
    """Installs `file` in a new environment and runs the checks there."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--quiet", file)
    run(python, "-I", "-c", CHECKS, version, " ".join(stubs), cwd=folder)
    if "usage: retrograde" not in run(folder / "bin" / "retrograde", "--help", cwd=folder):
        sys.exit("retrograde --help prints no usage.")
    print(f"{file.name}: installed, imported and tried.")


def main(arguments: list[str]) -> None:
    """Builds into the folder that the first argument names, and tries what was built."""
    folder = pathlib.Path(arguments[0] if arguments else ROOT / "dist").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        files = build(work, folder)
        package = work / "tree" / "src" / "retrograde"
        stubs = sorted(path.relative_to(package).as_posix() for path in package.rglob("*.pyi"))
        if len(files) != 2 or not stubs:
            sys.exit(f"Expected an sdist, a wheel and stubs. Found: {files} and {stubs}.")
        version = files[0].name.split("-")[1]
        for i, file in enumerate(files):
            try_out(file, work / f"environment{i}", version, stubs)


if __name__ == "__main__":
    main(sys.argv[1:])
