"""Failures of other workers, and how a worker ends without keeping the others waiting."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from retrograde.values.errors import UnavailableError


class WorkerLostError(UnavailableError):
    """Another worker ended, stopped or ran a different program, so a collective cannot finish.

    The workers of a strategy fail together: restart all of them from the last checkpoint.
    `retrograde launch --max-restarts` does that.
    """


# Texts in the errors that JAX, XLA and gloo raise if a collective fails. `np.asarray` raises them
# as a ValueError, a jitted function as a JaxRuntimeError.
_TEXTS = (
    "Gloo",
    "gloo",
    "coordination service",
    "CoordinationService",
    "DEADLINE_EXCEEDED",
    "UNAVAILABLE",
    "Connection reset by peer",
    "Connection closed by peer",
    "NCCL",
)


def is_worker_loss(error: BaseException) -> bool:
    """Returns whether `error` says that a collective failed because of another worker."""
    if not isinstance(error, (RuntimeError, ValueError)):
        return False
    text = str(error)
    return any(part in text for part in _TEXTS)


def within(seconds: float, f: Callable[[], Any]) -> Any:
    """Returns `f()`, or `None` if it fails or takes longer, as calls to a dead coordinator do."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(f())
        except Exception:
            return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return results[0] if results else None


_ABORT_SECONDS = 6.0
_abort_handlers: list[Any] = []  # C functions, which have to stay alive


def on_abort(report: Callable[[], str]) -> None:
    """Reports that XLA ends the process, and gives the main thread six seconds to do so itself.

    If the coordinator dies, or workers run different collectives, a thread of XLA calls `abort()`
    at once, often before Python sees the error of the collective. The handler of SIGABRT is called
    in that thread, and not as a Python handler would be in the main thread, which may wait for the
    collective. `report()` returns the error message.
    """
    if sys.platform != "linux":
        return

    def handle(_number: int) -> None:
        message = report()
        if threading.current_thread() is not threading.main_thread():
            time.sleep(_ABORT_SECONDS)
        with contextlib.suppress(OSError, ValueError):
            print(f"{WorkerLostError.__name__}: {message}", file=sys.stderr)
        _flush()
        os._exit(1)

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(handle)
    _abort_handlers.append(handler)
    _set_abort_handler(handler)


def delay_abort() -> None:
    """Gives Python six seconds to end, in place of the handler of `on_abort`.

    Threads cannot run Python code any more while the interpreter ends. The C function `sleep` is
    called with the number of the signal, 6.
    """
    if sys.platform == "linux":
        _set_abort_handler(ctypes.CDLL(None).sleep)


def _set_abort_handler(function: Any) -> None:
    library = ctypes.CDLL(None)
    library.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    library.signal(signal.SIGABRT, ctypes.cast(function, ctypes.c_void_p))


def end_on_exceptions(report: Callable[[str], Any]) -> None:
    """Ends the process at once after an uncaught exception, with exit code 1.

    Otherwise it would wait for the other workers, which wait for it. `report` gets one line that
    describes the exception.
    """
    show = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        try:
            show(kind, error, trace)
            report(traceback.format_exception_only(kind, error)[-1].strip())
        finally:
            _flush()
            os._exit(130 if issubclass(kind, KeyboardInterrupt) else 1)

    def thread_hook(arguments: Any) -> None:
        """Reports an exception in a thread; the main thread handles it."""
        report(f"{arguments.exc_type.__name__} in thread {arguments.thread}")
        show_in_thread(arguments)

    show_in_thread = threading.excepthook
    sys.excepthook = hook
    threading.excepthook = thread_hook


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
