"""The command `retrograde`."""

from __future__ import annotations

import argparse
import os
import sys

from retrograde.tensorflow_shim import checking, running

_COMMANDS = ("run", "check", "-h", "--help", "--version")


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] not in _COMMANDS:
        if given[0].isalpha() and not os.path.exists(given[0]):
            running.say(f"{given[0]!r} is no file, and no command. See retrograde --help.")
            return 2
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
    run.add_argument("file", metavar="FILE", help="a Python file, or a notebook (.ipynb)")
    rest = run.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="for the program"
    )
    rest.required = False  # else argparse says so where FILE is missing
    run.set_defaults(command=_run)
    check = commands.add_parser(
        "check",
        help="list what of TensorFlow a program uses that retrograde lacks",
        description="List the names of TensorFlow that programs use and retrograde does not have. "
        "Nothing is run. The exit code is 0 if there are none, 1 if there are, and 2 if a program "
        "cannot be found.",
    )
    check.add_argument(
        "paths", nargs="+", metavar="FILE-OR-FOLDER", help="Python files, notebooks, or folders"
    )
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
        running.say(str(error))
        return 2
    for finding in result.findings:
        print(finding)
    print(_summary(result))
    return 1 if result.findings else 0


def _summary(result: checking.Result) -> str:
    used = f"{_count(len(result.names), 'name')} of TensorFlow"
    missing = {finding.name for finding in result.findings if finding.name}
    verdict = f"{len(missing)} not here" if missing else "all are here"
    unread = sum(not finding.name for finding in result.findings)
    if unread:
        verdict += f", but {_count(unread, 'part')} could not be read"
    return f"{used} in {_count(result.files, 'file')}: {verdict}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
