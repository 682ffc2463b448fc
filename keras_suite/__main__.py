"""The command line: creates an environment, runs Keras's tests in it and reports the counts."""

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

# Packages that Keras's tests import, including the other backends.
DEPENDENCIES = "tensorflow-cpu torch==2.13.0 grain orbax-checkpoint tensorboard pandas pillow"
SUITE = Peer(
    "keras-suite", ("-e", ".[keras,xla]", *DEPENDENCIES.split(), "pytest", "pytest-xdist"), ""
)
DIRECTORY = HOME / "keras-suite-tests"
PAGE = ROOT / "docs" / "keras.md"

# Ignored as in Keras's CI: models that are downloaded, and wrappers for scikit-learn.
IGNORED = ("applications", "wrappers")

# The logical CPU devices for the tests of `keras.distribution`.
DEVICES = 8

# The part that every change must pass. It includes training and takes a few minutes.
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
    "backend/jax/distribution_lib_test.py",
    "distribution/distribution_lib_test.py",
)


# Some tests check the backend's name. Their TensorFlow branches use `GradientTape`, so they also
# work with retrograde.
BACKENDS = 'backend.backend() not in ("tensorflow", "jax", "torch")'
WITH_RETROGRADE = {BACKENDS: BACKENDS.replace('"torch")', '"torch", "retrograde")')}


def _enable_tape_branch(next_line: str) -> dict[str, str]:
    """Enables the TensorFlow branch that is followed by `next_line` for retrograde."""
    start = 'if backend.backend() == "tensorflow":\n            import tensorflow as tf\n\n'
    enabled = start.replace('== "tensorflow"', 'in ("tensorflow", "retrograde")')
    enabled = enabled.replace("import tensorflow as tf", "tf = __import__(backend.backend())")
    return {f"{start}            {next_line}": f"{enabled}            {next_line}"}


def _enable_distribution(next_line: str) -> dict[str, str]:
    """Enables the JAX test of `keras.distribution` that is followed by `next_line`."""
    old = 'backend.backend() != "jax",\n    ' + next_line
    return {old: old.replace('!= "jax"', 'not in ("jax", "retrograde")')}


_ONLY_TENSORFLOW = 'backend.backend() != "tensorflow",\n        reason="This test is native'

# The tests of exported models load them with retrograde.
_LOADED_BY_RETROGRADE = {"import tensorflow as tf": "import retrograde as tf"}

_PROPER = 'reason="Only JAX has the proper backend distribution lib",\n)\n'

TEST_CHANGES = {
    "distribution/distribution_lib_test.py": {
        "import tensorflow as tf": "import retrograde as tf",
        **_enable_distribution('reason="Only JAX has the backend to mock at the moment",'),
        **_enable_distribution(f"{_PROPER}class DataParallelDistributionTest"),
        **_enable_distribution(f"{_PROPER}class ModelParallelDistributionTest"),
        **_enable_distribution(f"{_PROPER}@pytest.mark.multi_device"),
    },
    # Tensors of retrograde hold JAX arrays, and are not JAX arrays themselves.
    "backend/jax/distribution_lib_test.py": {
        "inputs, callback=lambda": "backend_dlib._to_backend_tensor(inputs), callback=lambda"
    },
    "export/saved_model_test.py": {
        **_LOADED_BY_RETROGRADE,
        **WITH_RETROGRADE,
        '        "jax",\n        # "torch",': '        "jax", "retrograde",\n        # "torch",',
        _ONLY_TENSORFLOW: _ONLY_TENSORFLOW.replace(
            '!= "tensorflow"', 'not in ("tensorflow", "retrograde")'
        ),
    },
    "export/tfsm_layer_test.py": {
        **_LOADED_BY_RETROGRADE,
        'backend.backend() != "tensorflow"': 'backend.backend() != "retrograde"',
    },
    "trainers/trainer_test.py": {
        'elif backend.backend() == "numpy":': 'elif backend.backend() == "retrograde":',
        '"torch": "cpu",': '"torch": "cpu", "retrograde": "cpu:0",',
    },
    "layers/core/dense_test.py": _enable_tape_branch("@tf.function(jit_compile=True)"),
    "layers/core/einsum_dense_test.py": _enable_tape_branch("@tf.function(jit_compile=True)"),
    "ops/core_test.py": WITH_RETROGRADE | _enable_tape_branch("with tf.GradientTape() as tape1:"),
    "ops/numpy_test.py": WITH_RETROGRADE | _enable_tape_branch("x1 = tf.Variable([1.0, 2.0])"),
    "quantizers/quantizers_test.py": WITH_RETROGRADE
    | _enable_tape_branch("@tf.function(jit_compile=True)"),
}


def log(text: str) -> None:
    """Prints progress with the time of day to stderr; stdout has only the report."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog="keras_suite/run.py", description="Run Keras's own tests on retrograde."
    )
    add = parser.add_argument
    add("parts", nargs="*", help="directories or files below keras/src (default: all)")
    add(
        "--short",
        action="store_true",
        help="run only a part, which takes a few minutes, in this environment",
    )
    add("--backend", default="retrograde", help="backend to test (default: retrograde)")
    add("--workers", default="2", help="number of processes (default: 2)")
    add("--write", action="store_true", help=f"write the counts of all runs to docs/{PAGE.name}")
    add("--only-write", action="store_true", help="like --write, but without running tests")
    add(
        "--environments",
        type=Path,
        metavar="DIR",
        help="use DIR/keras-suite/bin/python if it exists",
    )
    return parser.parse_args(arguments)


def copy_keras(python: str) -> None:
    """Copies the Keras of `python` and enables its tests for retrograde."""
    find = "import importlib.util as u; print(u.find_spec('keras').submodule_search_locations[0])"
    results = subprocess.run([python, "-c", find], capture_output=True, text=True, check=True)
    source, target = Path(results.stdout.strip()), DIRECTORY / "keras"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "excluded.toml"):
        shutil.copy(Path(__file__).with_name(name), DIRECTORY)
    for name, changes in TEST_CHANGES.items():
        _replace(target / "src" / name, changes)


def _replace(path: Path, changes: dict[str, str]) -> None:
    text = path.read_text()
    for old, new in changes.items():
        if text.count(old) != 1:
            raise SystemExit(
                f"{path}: expected exactly one {old!r}. Is this another Keras version?"
            )
        text = text.replace(old, new)
    path.write_text(text)


def run(python: str, options: argparse.Namespace, results: Path) -> int:
    """Runs the tests. Returns pytest's status."""
    tests = DIRECTORY / "keras" / "src"
    parts = SHORT if options.short else options.parts or [""]
    command = [python, "-m", "pytest", "-q", "--no-header", "--tb=short"]
    command += ["-c", os.devnull, "--rootdir", str(DIRECTORY), "--confcutdir", str(DIRECTORY)]
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
        command, cwd=DIRECTORY, env=_environment(options.backend, results), check=False
    ).returncode


def _environment(backend: str, results: Path) -> dict[str, str]:
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, (DIRECTORY, ROOT / "src"))),
        "KERAS_HOME": str(DIRECTORY / "home"),
        "KERAS_BACKEND": backend,
        "SUITE_BACKEND": backend,
        "SUITE_RESULTS": str(results),
        "JAX_NUM_CPU_DEVICES": str(DEVICES),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    return child_environment() | variables


def main(arguments: list[str] | None = None) -> int:
    """Runs the tests according to the options. Returns 0 if no test failed."""
    options = parse_arguments(arguments)
    status = 0
    if not options.only_write:
        # The short part needs neither TensorFlow nor PyTorch.
        short = options.short and options.environments is None
        python = sys.executable if short else python_of(SUITE, options.environments, log)
        DIRECTORY.mkdir(parents=True, exist_ok=True)
        copy_keras(python)
        log(f"Keras's tests on {options.backend}")
        results = DIRECTORY / "last.jsonl"
        results.unlink(missing_ok=True)
        status = run(python, options, results)
        if results.exists():
            new_results = Results.read(results)
            print(new_results.table())
            Results.read(DIRECTORY / f"{options.backend}.jsonl").merge(new_results).write()
    if options.write or options.only_write:
        PAGE.write_text(page(PAGE.read_text(), DIRECTORY))
    return status


if __name__ == "__main__":
    sys.exit(main())
