"""The command-line interface `retrograde`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from retrograde.tensorflow_shim import compatibility, runner

# Shown below the options by `--help`.
_EXAMPLES = {
    "retrograde": """examples:
  retrograde run train.py --epochs 3     run a program; `run` can be omitted
  retrograde check project/              list the names that are not supported
  retrograde launch -n 4 train.py        run a program in four worker processes

`retrograde COMMAND --help` describes the options and the exit codes of a command.""",
    "run": """examples:
  retrograde run train.py --epochs 3
  retrograde run notebook.ipynb
  retrograde run --keep-going notebook.ipynb
  retrograde run -m pytest tests/

exit codes:
  the exit code of the program; 1 after an exception or a failed cell;
  2 if the file does not exist or cannot be read""",
    "launch": """examples:
  retrograde launch -n 4 train.py
  retrograde launch -n 4 --max-restarts 3 train.py --epochs 10
  retrograde launch -n 2 --hosts a:29400,b:29400 --host-rank 0 train.py

exit codes:
  0 if all workers succeed; otherwise the exit code of the worker that failed first""",
    "check": """examples:
  retrograde check train.py
  retrograde check project/ notebook.ipynb

exit codes:
  0  all names are supported
  1  some names are not supported
  2  a path does not exist or cannot be read""",
}
_COMMANDS = ("run", "launch", "check", "-h", "--help", "--version")


class _Help(argparse.HelpFormatter):
    """Wraps descriptions and keeps the lines of the examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text in _EXAMPLES.values():
            return text
        return super()._fill_text(text, width, indent)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    args = sys.argv[1:] if arguments is None else arguments
    if args and args[0] not in _COMMANDS:
        if args[0].isalpha() and not os.path.exists(args[0]):
            runner.print_message(
                f"{args[0]!r} is neither a file nor a command. See retrograde --help."
            )
            return 2
        args = ["run", *args]
    options = _parser().parse_args(args)
    return options.command(options)


def _parser() -> argparse.ArgumentParser:
    import retrograde

    parser = argparse.ArgumentParser(
        prog="retrograde",
        description="Run programs written for TensorFlow without TensorFlow.",
        epilog=_EXAMPLES["retrograde"],
        formatter_class=_Help,
    )
    version = f"retrograde {retrograde.__version__} (TensorFlow {retrograde.version.VERSION} API)"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="run a Python file or a notebook (default command)",
        description="Run a Python file or a notebook with retrograde in place of TensorFlow. "
        "`import tensorflow` imports retrograde, and `import keras` imports Keras with the "
        "retrograde backend.",
        epilog=_EXAMPLES["run"],
        formatter_class=_Help,
    )
    run.add_argument(
        "--keep-going", action="store_true", help="continue after a notebook cell has failed"
    )
    run.add_argument(
        "-m",
        dest="module",
        action="store_true",
        help="run a module, as `python -m` does; FILE is its name",
    )
    run.add_argument("file", metavar="FILE", help="a Python file or a notebook (.ipynb)")
    rest = run.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="arguments for the program"
    )
    rest.required = False  # otherwise argparse lists it as missing when FILE is missing
    run.set_defaults(command=_run)
    _add_launch(commands)
    check = commands.add_parser(
        "check",
        help="list the TensorFlow names in a program that retrograde does not support",
        description="List the TensorFlow names that programs use and retrograde does not support, "
        "without running the programs.",
        epilog=_EXAMPLES["check"],
        formatter_class=_Help,
    )
    check.add_argument(
        "paths", nargs="+", metavar="FILE-OR-FOLDER", help="Python files, notebooks or folders"
    )
    check.set_defaults(command=_check)
    return parser


def _add_launch(commands: Any) -> None:
    command = commands.add_parser(
        "launch",
        help="run a program in several worker processes",
        description="Run a program that uses tf.distribute.MultiWorkerMirroredStrategy in several "
        "worker processes. Each worker gets TF_CONFIG, and its output is prefixed with its rank. "
        "If one fails, all are stopped.",
        epilog=_EXAMPLES["launch"],
        formatter_class=_Help,
    )
    command.add_argument(
        "-n",
        dest="workers",
        type=_positive,
        required=True,
        metavar="N",
        help="number of workers on this machine",
    )
    command.add_argument(
        "--max-restarts",
        type=int,
        default=0,
        metavar="R",
        help="start all workers again at most R times after a failure; the program restores its "
        "last checkpoint",
    )
    command.add_argument(
        "--hosts",
        type=lambda text: text.split(","),
        default=(),
        metavar="HOST[:PORT],...",
        help="the machines of the cluster; run this command on each of them; without it, workers "
        "listen on the loopback interface only",
    )
    command.add_argument(
        "--host-rank", type=int, default=0, metavar="I", help="index of this machine in --hosts"
    )
    command.add_argument(
        "-m",
        "--module",
        action="store_true",
        help="run a module, as `python -m` does; FILE is its name",
    )
    command.add_argument("file", metavar="FILE", help="a Python file")
    rest = command.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="arguments for the program"
    )
    rest.required = False
    command.set_defaults(command=_launch)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer, not {text}")
    return number


def _launch(options: argparse.Namespace) -> int:
    from retrograde.distribute.launch import Cluster, launch

    program = [*(["-m"] if options.module else []), options.file, *options.arguments]
    cluster = Cluster(options.workers, options.hosts, options.host_rank)
    return launch(program, cluster, options.max_restarts)


def _run(options: argparse.Namespace) -> int:
    if options.module:
        return runner.run_module(options.file, options.arguments)
    if options.file.endswith(".ipynb"):
        return runner.run_notebook(options.file, options.arguments, options.keep_going)
    return runner.run_file(options.file, options.arguments)


def _check(options: argparse.Namespace) -> int:
    try:
        result = compatibility.check(options.paths)
    except (OSError, ValueError) as error:
        runner.print_message(str(error))
        return 2
    for finding in result.findings:
        print(finding)
    print(_summary(result))
    return 1 if result.findings else 0


def _summary(result: compatibility.Result) -> str:
    names = _count(len(result.names), "TensorFlow name")
    unsupported = {finding.name for finding in result.findings if finding.name}
    verdict = f"{len(unsupported)} not supported" if unsupported else "all supported"
    unreadable = sum(not finding.name for finding in result.findings)
    if unreadable:
        verdict += f", {_count(unreadable, 'unreadable part')}"
    return f"{names} in {_count(result.files, 'file')}: {verdict}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
