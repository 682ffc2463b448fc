"""The command `retrograde`."""

from __future__ import annotations

import argparse
import sys

from retrograde.standin import checking, running

_COMMANDS = ("run", "check", "-h", "--help", "--version")


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] not in _COMMANDS:
        given = ["run", *given]
    options = _parser().parse_args(given)
    return options.command(options)


def _parser() -> argparse.ArgumentParser:
    import retrograde

    parser = argparse.ArgumentParser(
        prog="retrograde",
        description="Run programs written for TensorFlow without TensorFlow.",
    )
    version = f"retrograde {retrograde.__version__}, after TensorFlow {retrograde.version.VERSION}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="run a Python file or a notebook; the word itself may be left out",
        description="Run a Python file or a notebook in which `import tensorflow` means "
        "retrograde, and `import keras` means Keras on retrograde.",
    )
    run.add_argument(
        "--keep-going", action="store_true", help="go on after a cell of a notebook has failed"
    )
    run.add_argument("-m", dest="module", action="store_true", help="FILE names a module")
    run.add_argument("file", metavar="FILE", help="a file of Python, or a notebook (.ipynb)")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="for the program")
    run.set_defaults(command=_run)
    check = commands.add_parser(
        "check",
        help="list the names of TensorFlow in a program that are not here",
        description="Read programs and list the names of TensorFlow in them that retrograde "
        "does not have. Nothing is run. The exit code is 0 if there are none.",
    )
    check.add_argument("paths", nargs="+", metavar="FILE-OR-FOLDER")
    check.set_defaults(command=_check)
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.module:
        return running.run_module(options.file, options.arguments)
    if options.file.endswith(".ipynb"):
        return running.run_notebook(options.file, options.arguments, options.keep_going)
    return running.run_file(options.file, options.arguments)


def _check(options: argparse.Namespace) -> int:
    try:
        result = checking.check(options.paths)
    except (OSError, ValueError) as error:
        print(f"retrograde: {error}", file=sys.stderr)
        return 2
    for finding in result.findings:
        print(finding)
    print(_summary(result))
    return 1 if result.findings else 0


def _summary(result: checking.Result) -> str:
    where = f"in {_count(result.files, 'file')}"
    missing = {finding.name for finding in result.findings}
    if not missing:
        return f"{_count(len(result.names), 'name')} of TensorFlow {where}: all are here"
    return f"{_count(len(result.names), 'name')} of TensorFlow {where}: {len(missing)} not here"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
