"""Running a program as Python itself would, with retrograde in the place of TensorFlow."""

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
from retrograde.tensorflow_shim.finder import install_as_tensorflow

_INTERRUPTED = 130  # what a shell reports of a program that was interrupted


def run_file(path: str, arguments: list[str]) -> int:
    """Runs a Python file as `__main__`; returns the exit code."""
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        return _cannot_open(path, error)
    whole = os.path.abspath(path)
    main = _as_main([path, *arguments], os.path.dirname(os.path.realpath(path)))
    main.__file__ = whole
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", whole)
    return _guarded(lambda: _execute(compile(source, whole, "exec", dont_inherit=True), main))


def run_module(name: str, arguments: list[str]) -> int:
    """Runs a module by its name, as `python -m` does; returns the exit code."""
    _as_main([name, *arguments], os.getcwd())

    def show(error: BaseException) -> None:
        if error.__traceback__ is None and isinstance(error, (ImportError, RecursionError)):
            shown = name if len(name) < 80 else name[:80] + "..."
            reason = "it has too many parts" if isinstance(error, RecursionError) else error
            say(f"cannot run the module {shown!r}: {reason}")
        else:
            _show(error)

    return _guarded(lambda: runpy.run_module(name, run_name="__main__", alter_sys=True), show)


def run_notebook(path: str, arguments: list[str], keep_going: bool) -> int:
    """Runs the cells of code of a notebook, in its folder; returns the exit code."""
    try:
        cells = notebooks.cells_of(path)
    except OSError as error:
        return _cannot_open(path, error)
    except ValueError as error:
        say(str(error))
        return 2
    folder = os.path.dirname(os.path.realpath(path))
    main = _as_main([path, *arguments], folder)
    os.chdir(folder)
    os.environ.setdefault("MPLBACKEND", "agg")  # pictures belong into the notebook
    main.display = _display
    title = pathlib.Path(path).name
    failed = []
    for cell in cells:
        for line in cell.passed_over:
            say(f"{title}, cell {cell.number}: passed over {line.splitlines()[0]}")
        status = _guarded(lambda cell=cell: _run_cell(cell, title, main), traceback.print_exception)
        if status:
            say(f"{title}: cell {cell.number} of {len(cells)} failed")
            failed.append(cell.number)
            if not keep_going or status == _INTERRUPTED:
                return status
    if failed:
        numbers = ", ".join(map(str, failed))
        say(f"{title}: {len(failed)} of {len(cells)} cells failed: {numbers}")
    return 1 if failed else 0


def _run_cell(cell: notebooks.Cell, title: str, main: ModuleType) -> None:
    """Runs one cell, and shows the value of an expression at its end."""
    name = f"<{title}, cell {cell.number}>"
    lines = [f"{line}\n" for line in cell.source.splitlines()]
    linecache.cache[name] = (len(cell.source), None, lines, name)
    body = ast.parse(cell.source, name).body
    shown = isinstance(body[-1], ast.Expr) if body else False
    if shown and cell.source.rstrip().endswith(";"):
        shown = False
    last = body.pop() if shown else None
    _execute(compile(ast.Module(body, []), name, "exec", dont_inherit=True), main)
    if last is not None:
        code = compile(ast.Expression(last.value), name, "eval", dont_inherit=True)
        value = eval(code, vars(main))
        if value is not None:
            _display(value)


def _display(*values: object) -> None:
    for value in values:
        print(repr(value))


def _as_main(arguments: list[str], folder: str) -> ModuleType:
    """A new module `__main__`, with what a program finds in `sys`."""
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


def _guarded(run: Callable[[], object], show: Callable[[BaseException], None] = _show) -> int:
    """Runs a program; an error of its own is shown as Python shows it, without what is below."""
    try:
        run()
    except SystemExit:
        raise
    except BaseException as error:
        show(error.with_traceback(_of_the_program(error)))
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _of_the_program(error: BaseException) -> TracebackType | None:
    """The traceback from where the program begins."""
    below = {__file__, ast.__file__, runpy.__file__}
    frames = error.__traceback__
    while frames is not None:
        name = frames.tb_frame.f_code.co_filename
        if name not in below and not name.startswith("<frozen "):
            break
        frames = frames.tb_next
    return frames


def _cannot_open(path: str, error: OSError) -> int:
    say(f"can't open file {os.path.abspath(path)!r}: [Errno {error.errno}] {error.strerror}")
    return 2


def say(text: str) -> None:
    """Tells the user something that is not the program's own output."""
    print(f"retrograde: {text}", file=sys.stderr, flush=True)
