"""The command line: set up an environment, run Keras's tests in it, count, and on request write."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.environments import HOME, python_of
from benchmarks.peers import ROOT, Peer
from benchmarks.processes import child_environment
from keras_suite.report import Results, page

# Its tests import these; of TensorFlow, PyTorch and JAX, whatever the backend.
WANTED = "tensorflow-cpu torch==2.13.0 grain orbax-checkpoint tensorboard pandas pillow"
SUITE = Peer("keras-suite", ("-e", ".[keras,xla]", *WANTED.split(), "pytest", "pytest-xdist"), "")
FOLDER = HOME / "keras-suite-tests"
PAGE = ROOT / "docs" / "keras.md"

# As upstream does: models that are downloaded, and wrappers for scikit-learn.
IGNORED = ("applications", "wrappers")

# What changes run must pass: a part that trains, and ends within a few minutes.
SHORT = (
    "trainers/trainer_test.py",
    "optimizers",
    "models/sequential_test.py",
    "models/functional_test.py",
    "models/model_test.py",
    "layers/core/dense_test.py",
    "layers/core/embedding_test.py",
    "layers/normalization/batch_normalization_test.py",
    "layers/rnn/lstm_test.py",
)


# Where tests know the names of backends. Gradients they take with TensorFlow's tape, which is ours.
BACKENDS = 'backend.backend() not in ("tensorflow", "jax", "torch")'
WITH_OURS = {BACKENDS: BACKENDS.replace('"torch")', '"torch", "retrograde")')}


def _on_tapes(following: str) -> dict[str, str]:
    """A branch for TensorFlow, told from others by what follows, for retrograde as well."""
    start = 'if backend.backend() == "tensorflow":\n            import tensorflow as tf\n\n'
    ours = start.replace('== "tensorflow"', 'in ("tensorflow", "retrograde")')
    ours = ours.replace("import tensorflow as tf", "tf = __import__(backend.backend())")
    return {f"{start}            {following}": f"{ours}            {following}"}


OPENED = {
    "trainers/trainer_test.py": {
        'elif backend.backend() == "numpy":': 'elif backend.backend() == "retrograde":',
        '"torch": "cpu",': '"torch": "cpu", "retrograde": "cpu:0",',
    },
    "layers/core/dense_test.py": _on_tapes("@tf.function(jit_compile=True)"),
    "layers/core/einsum_dense_test.py": _on_tapes("@tf.function(jit_compile=True)"),
    "ops/core_test.py": WITH_OURS | _on_tapes("with tf.GradientTape() as tape1:"),
    "ops/numpy_test.py": WITH_OURS | _on_tapes("x1 = tf.Variable([1.0, 2.0])"),
    "quantizers/quantizers_test.py": WITH_OURS | _on_tapes("@tf.function(jit_compile=True)"),
}


def say(text: str) -> None:
    """Progress, on stderr with the time of day; stdout has the report only."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="keras_suite/run.py", description="Run Keras's own tests on retrograde."
    )
    add = parser.add_argument
    add("parts", nargs="*", help="folders or files below keras/src (default: all)")
    add("--short", action="store_true", help="only a part, of a few minutes, in this environment")
    add("--backend", default="retrograde", help="another backend, to compare with (torch)")
    add("--workers", default="2", help="processes (default: 2)")
    add("--write", action="store_true", help=f"write the counts of all runs to docs/{PAGE.name}")
    add("--only-write", action="store_true", help="the same, without a run")
    add(
        "--environments",
        type=Path,
        metavar="DIR",
        help="take DIR/keras-suite/bin/python if it exists",
    )
    return parser.parse_args(arguments)


def copy_keras(python: str) -> None:
    """A copy of the Keras that `python` has, with its tests open to a sixth backend."""
    find = "import importlib.util as u; print(u.find_spec('keras').submodule_search_locations[0])"
    found = subprocess.run([python, "-c", find], capture_output=True, text=True, check=True)
    source, target = Path(found.stdout.strip()), FOLDER / "keras"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "excluded.toml"):
        shutil.copy(Path(__file__).with_name(name), FOLDER)
    for name, changes in OPENED.items():
        _replace(target / "src" / name, changes)


def _replace(path: Path, changes: dict[str, str]) -> None:
    text = path.read_text()
    for old, new in changes.items():
        if text.count(old) != 1:
            raise SystemExit(f"{path}: expected once: {old!r}. Is this another version of Keras?")
        text = text.replace(old, new)
    path.write_text(text)


def run(python: str, options: argparse.Namespace, results: Path) -> int:
    """Runs the tests. Returns pytest's status."""
    tests = FOLDER / "keras" / "src"
    parts = SHORT if options.short else options.parts or [""]
    command = [python, "-m", "pytest", "-q", "--no-header", "--tb=short"]
    command += ["-c", os.devnull, "--rootdir", str(FOLDER), "--confcutdir", str(FOLDER)]
    command += [
        "-n",
        options.workers,
        "--dist",
        "loadfile",
        "-o",
        "python_files=*_test.py",
        "-W",
        "ignore",
    ]
    command += [f"--ignore={tests / name}" for name in IGNORED]
    command += [str(tests / part) for part in parts]
    return subprocess.run(
        command, cwd=FOLDER, env=_environment(options.backend, results), check=False
    ).returncode


def _environment(backend: str, results: Path) -> dict[str, str]:
    ours = {
        "PYTHONPATH": os.pathsep.join(map(str, (FOLDER, ROOT / "src"))),
        "KERAS_HOME": str(FOLDER / "home"),
        "KERAS_BACKEND": backend,
        "SUITE_BACKEND": backend,
        "SUITE_RESULTS": str(results),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    return child_environment() | ours


def main(arguments: list[str] | None = None) -> int:
    """Runs what the options ask for. Returns 0 if no test failed."""
    options = parse_arguments(arguments)
    status = 0
    if not options.only_write:
        # The short part gets along without TensorFlow and PyTorch.
        short = options.short and options.environments is None
        python = sys.executable if short else python_of(SUITE, options.environments, say)
        FOLDER.mkdir(parents=True, exist_ok=True)
        copy_keras(python)
        say(f"Keras's tests on {options.backend}")
        results = FOLDER / "last.jsonl"
        results.unlink(missing_ok=True)
        status = run(python, options, results)
        if results.exists():
            found = Results.read(results)
            print(found.table())
            Results.read(FOLDER / f"{options.backend}.jsonl").updated(found).write()
    if options.write or options.only_write:
        PAGE.write_text(page(PAGE.read_text(), FOLDER))
    return status


if __name__ == "__main__":
    sys.exit(main())
