"""Threads that compute elements ahead of time."""

from __future__ import annotations

import collections
import concurrent.futures
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from retrograde.devices.scopes import device_scope, on_host
from retrograde.ops import random_state
from retrograde.values.errors import FailedPreconditionError
from retrograde.values.locks import fork_safe_lock


class Run:
    """One iteration over a dataset. It stops its workers when it ends or is dropped.

    `iterations` maps the id of each `Seeds` to its `IterationNumbers`.
    """

    def __init__(self, iterations: dict[int, Any] | None = None) -> None:
        self._open: dict[int, Callable] = {}
        self.closed = False
        self.iterations = {} if iterations is None else iterations

    def add(self, worker: Any) -> None:
        """Registers a worker to be closed at the end."""
        if self.closed:
            worker.close()
        self._open[id(worker)] = worker.close

    def discard(self, worker: Any) -> None:
        """Unregisters a worker that has ended."""
        self._open.pop(id(worker), None)

    def close(self) -> None:
        """Stops all workers and waits for them."""
        self.closed = True
        while self._open:
            self._open.popitem()[1]()


def _check_process(process: int) -> None:
    """Raises an error in a forked child, which does not have the threads of its parent."""
    if process != os.getpid():
        raise FailedPreconditionError(
            None,
            None,
            "This dataset iterator was created before a fork, and its threads do not exist in the "
            "forked process. Create the iterator in the process that uses it.",
        )


class Prefetcher:
    """An iterator that computes up to `size` elements ahead of time in a thread.

    An exception in the thread is raised when the element is requested. The thread continues with
    the next element.
    """

    def __init__(self, elements: Iterator, size: int, run: Run) -> None:
        self._ready: collections.deque = collections.deque()
        self._changed = threading.Condition(fork_safe_lock())
        self._process = os.getpid()
        self._state = {"stopped": False, "ended": False}
        self._thread = threading.Thread(
            target=on_host(_fill),
            args=(elements, size, self._ready, self._changed, self._state),
            name="retrograde-data-prefetch",
            daemon=True,
        )
        self._run = run
        run.add(self)
        self._thread.start()

    def __iter__(self) -> Prefetcher:
        return self

    def __next__(self) -> Any:
        _check_process(self._process)
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._state["ended"])
            if not self._ready:
                self._run.discard(self)
                self._thread.join()
                raise StopIteration
            element, error = self._ready.popleft()
            self._changed.notify_all()
        if error is not None:
            try:
                raise error
            finally:
                del error  # avoids a reference cycle of this frame and the traceback
        return element

    def close(self) -> None:
        """Stops the thread and waits for it."""
        with self._changed:
            self._state["stopped"] = True
            self._changed.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join()


def _fill(
    elements: Iterator, size: int, ready: Any, changed: threading.Condition, state: dict
) -> None:
    while True:
        with changed:
            changed.wait_for(lambda: len(ready) < size or state["stopped"])
            if state["stopped"]:
                break
        try:
            result = next(elements), None
        except StopIteration:
            break
        except BaseException as error:
            result = None, error
        with changed:
            ready.append(result)
            changed.notify_all()
        del result  # the traceback of an error refers to frames, and these to the iterator
    with changed:
        state["ended"] = True
        changed.notify_all()


class ParallelMap:
    """Computes `function` of each element ahead of time with `count` threads.

    Each call has its own stream of random numbers, so that they do not depend on the thread.
    """

    def __init__(
        self,
        function: Callable,
        elements: Iterator,
        count: int,
        deterministic: bool,
        streams: Iterator[random_state.State],
        run: Run,
    ) -> None:
        self._function, self._elements, self._streams = function, elements, streams
        self._count, self._in_order, self._run = count, deterministic, run
        self._pool = concurrent.futures.ThreadPoolExecutor(count, "retrograde-data-map")
        self._pending: collections.deque = collections.deque()
        self._error: Exception | None = None
        self._process = os.getpid()
        run.add(self)

    def __iter__(self) -> ParallelMap:
        return self

    def __next__(self) -> Any:
        _check_process(self._process)
        self._submit()
        if not self._pending:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            self._run.discard(self)
            self.close()
            raise StopIteration
        result = self._pending.popleft() if self._in_order else self._pop_completed()
        self._submit()
        return result.result()

    def _submit(self) -> None:
        """Submits work until there are two pending calls for each thread."""
        while len(self._pending) < 2 * self._count and self._error is None:
            try:
                element = next(self._elements)
            except StopIteration:
                return
            except Exception as error:  # raised after the results of earlier elements
                self._error = error
                return
            self._pending.append(
                self._pool.submit(
                    _call_with_random_state, next(self._streams), self._function, element
                )
            )

    def _pop_completed(self) -> concurrent.futures.Future:
        done, _ = concurrent.futures.wait(
            self._pending, return_when=concurrent.futures.FIRST_COMPLETED
        )
        result = next(iter(done))
        self._pending.remove(result)
        return result

    def close(self) -> None:
        """Cancels pending calls and waits for running ones."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _call_with_random_state(state: random_state.State, function: Callable, element: Any) -> Any:
    with random_state.replaying(state), device_scope(None):
        return function(element)
