"""Runs programs as Python does, with retrograde in place of TensorFlow."""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import io
import linecache
import os
import pathlib
import runpy
import sys
import traceback
from collections.abc import Callable
from types import CodeType, ModuleType, TracebackType

from retrograde.tensorflow_shim import notebooks
from retrograde.tensorflow_shim.import_hook import install_as_tensorflow

_INTERRUPTED = 130  # the exit code of an interrupted program


def run_file(path: str, arguments: list[str]) -> int:
    """Runs a Python file as `__main__`. Returns the exit code."""
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        return _cannot_open(path, error)
    filename = os.path.abspath(path)
    main = _create_main([path, *arguments], os.path.dirname(os.path.realpath(path)))
    main.__file__ = filename
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", filename)
    return _run_and_report(
        lambda: _execute(compile(source, filename, "exec", dont_inherit=True), main)
    )


def run_module(name: str, arguments: list[str]) -> int:
    """Runs a module by name, as `python -m` does. Returns the exit code."""
    _create_main([name, *arguments], os.getcwd())

    def show(error: BaseException) -> None:
        if error.__traceback__ is None and isinstance(error, (ImportError, RecursionError)):
            short_name = name if len(name) < 80 else name[:80] + "..."
            reason = "the name has too many parts" if isinstance(error, RecursionError) else error
            print_message(f"cannot run module {short_name!r}: {reason}")
        else:
            _show(error)

    return _run_and_report(
        lambda: runpy.run_module(name, run_name="__main__", alter_sys=True), show
    )


def run_notebook(path: str, arguments: list[str], keep_going: bool) -> int:
    """Runs the code cells of a notebook in its folder. Returns the exit code."""
    try:
        cells = notebooks.cells_of(path)
    except OSError as error:
        return _cannot_open(path, error)
    except ValueError as error:
        print_message(str(error))
        return 2
    folder = os.path.dirname(os.path.realpath(path))
    main = _create_main([path, *arguments], folder)
    os.chdir(folder)
    os.environ.setdefault("MPLBACKEND", "agg")  # do not open windows
    main.display = _display
    title = pathlib.Path(path).name
    failed = []
    for cell in cells:
        for line in cell.skipped:
            print_message(f"{title}, cell {cell.number}: skipped {line.splitlines()[0]}")
        status = _run_and_report(
            lambda cell=cell: _run_cell(cell, title, main), traceback.print_exception
        )
        if status:
            print_message(f"{title}: cell {cell.number} of {len(cells)} failed")
            failed.append(cell.number)
            if not keep_going or status == _INTERRUPTED:
                return status
    if failed:
        numbers = ", ".join(map(str, failed))
        print_message(f"{title}: {len(failed)} of {len(cells)} cells failed: {numbers}")
    return 1 if failed else 0


def _run_cell(cell: notebooks.Cell, title: str, main: ModuleType) -> None:
    """Runs one cell, and displays the value of its last expression."""
    name = f"<{title}, cell {cell.number}>"
    lines = [f"{line}\n" for line in cell.source.splitlines()]
    linecache.cache[name] = (len(cell.source), None, lines, name)
    body = ast.parse(cell.source, name).body
    displays = isinstance(body[-1], ast.Expr) if body else False
    if displays and cell.source.rstrip().endswith(";"):
        displays = False
    last = body.pop() if displays else None
    _execute(compile(ast.Module(body, []), name, "exec", dont_inherit=True), main)
    if last is not None:
        code = compile(ast.Expression(last.value), name, "eval", dont_inherit=True)
        value = eval(code, vars(main))
        if value is not None:
            _display(value)


def _display(*values: object) -> None:
    for value in values:
        print(repr(value))


def _create_main(arguments: list[str], folder: str) -> ModuleType:
    """Creates the module `__main__` and sets `sys.argv` and `sys.path`."""
    install_as_tensorflow()
    main = ModuleType("__main__")
    main.__builtins__ = builtins  # type: ignore[attr-defined]
    main.__package__ = None
    sys.modules["__main__"] = main
    sys.argv[:] = arguments
    if not sys.flags.safe_path:
        sys.path[0] = folder
    return main


def _execute(code: CodeType, main: ModuleType) -> None:
    exec(code, vars(main))


def _show(error: BaseException) -> None:
    sys.excepthook(type(error), error, error.__traceback__)


def _run_and_report(
    run: Callable[[], object], show: Callable[[BaseException], None] = _show
) -> int:
    """Runs a program and prints its errors as Python does. Returns the exit code."""
    try:
        run()
    except SystemExit:
        raise
    except BaseException as error:
        show(error.with_traceback(_program_traceback(error)))
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _program_traceback(error: BaseException) -> TracebackType | None:
    """Returns the traceback without the frames before the program."""
    internal = {__file__, ast.__file__, runpy.__file__}
    frames = error.__traceback__
    while frames is not None:
        name = frames.tb_frame.f_code.co_filename
        if name not in internal and not name.startswith("<frozen "):
            break
        frames = frames.tb_next
    return frames


def _cannot_open(path: str, error: OSError) -> int:
    print_message(
        f"can't open file {os.path.abspath(path)!r}: [Errno {error.errno}] {error.strerror}"
    )
    return 2


def print_message(text: str) -> None:
    """Prints a message of the command itself to stderr."""
    print(f"retrograde: {text}", file=sys.stderr, flush=True)
