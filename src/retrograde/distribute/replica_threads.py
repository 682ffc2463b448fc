"""Replicas of one process: each runs in a thread, one at a time, up to the next collective.

When all replicas have reached a collective, the thread that called `Strategy.run` computes it with
ordinary operations on the values of all replicas. So it is recorded by the tracer and the tapes of
that thread, and a traced function contains the work of all replicas in one program.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from retrograde.core.apply import apply
from retrograde.core.custom_gradient import record_custom
from retrograde.core.recorders import Recorders, thread
from retrograde.core.tensor import Tensor
from retrograde.distribute.context import context, enter
from retrograde.ops import collectives, random_state
from retrograde.ops.shaping import concat, take_slice
from retrograde.program.replica_merging import ReplicaRounds
from retrograde.values.variable_scopes import scopes


class _Point(NamedTuple):
    """A collective that a replica has reached: `merge(values of all)` returns a result for each."""

    name: str
    value: Any
    merge: Callable[[list], Sequence]


class _Cancelled(BaseException):
    """Ends a replica after another replica has failed."""


class _Replica(threading.Thread):
    """One replica. It runs only while the calling thread waits in `resume`."""

    def __init__(self, runner: ReplicaThreads, number: int, f: Callable[[], Any]) -> None:
        super().__init__(name=f"replica {number}", daemon=True)
        self.number, self.point = number, None
        self.result: Any = None
        self.error: BaseException | None = None
        self.has_ended = False
        self._runner, self._f = runner, f
        self._turn, self._pause = threading.Semaphore(0), threading.Semaphore(0)
        self._response: Any = None
        self._is_cancelled = False

    def resume(self, response: Any = None) -> None:
        """Runs the replica up to its next collective or its end."""
        self._response, self.point = response, None
        if not self.is_alive():
            self.start()
        self._turn.release()
        self._pause.acquire()

    def cancel(self) -> None:
        """Ends the replica at the collective where it waits."""
        if self.is_alive():
            self._is_cancelled = True
            self._turn.release()
            self.join()

    def reach(self, point: _Point) -> Any:
        """Waits at a collective for the other replicas, and returns its result."""
        self.point = point
        self._pause.release()
        self._turn.acquire()
        if self._is_cancelled:
            raise _Cancelled
        response = self._response
        if isinstance(response, BaseException):
            raise response
        return response

    def run(self) -> None:
        self._turn.acquire()
        try:
            if not self._is_cancelled:
                self._runner.enter(self)
                with random_state.in_replica(self.number):
                    self.result = self._f()
        except _Cancelled:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.has_ended = True
            self._f = None
            self._pause.release()


class ReplicaThreads:
    """Runs a function in several replicas of this process."""

    def __init__(self, strategy: Any, functions: Sequence[Callable[[], Any]]) -> None:
        self._strategy = strategy
        self._recorders, self._creators = list(thread.recorders), list(scopes.variable_creators)
        self._name_scopes = list(scopes.name_scopes)
        self._random_state = random_state.shared_state()
        self._replicas = [_Replica(self, i, f) for i, f in enumerate(functions)]

    def enter(self, replica: _Replica) -> None:
        """Sets up the thread of a replica with the state of the calling thread."""
        thread.recorders = Recorders(self._recorders)
        scopes.variable_creators, scopes.name_scopes = list(self._creators), list(self._name_scopes)
        random_state.share_state(self._random_state)
        enter(self._strategy, True, replica.number)
        context.local = replica

    def run(self) -> list:
        """Returns the results of all replicas."""
        waiting = list(self._replicas)
        try:
            self._run_round([None] * len(waiting))
            while not all(replica.has_ended for replica in waiting):
                self._run_round(self._compute_collective())
            return [replica.result for replica in waiting]
        finally:
            for replica in waiting:
                replica.cancel()

    def _run_round(self, responses: Sequence) -> None:
        """Runs all replicas up to the next collective or their end."""
        tracer = thread.recorders.tracer
        parts = []
        for replica, response in zip(self._replicas, responses, strict=True):
            start = len(tracer.steps) if tracer is not None else 0
            replica.resume(response)
            if replica.error is not None:
                raise replica.error
            parts.append((start, len(tracer.steps) if tracer is not None else 0))
        if tracer is not None:
            if tracer.replica_rounds is None:
                tracer.replica_rounds = ReplicaRounds(self._strategy._jax_devices)
            tracer.replica_rounds.rounds.append(parts)

    def _compute_collective(self) -> Sequence:
        """Computes the collective at which all replicas wait."""
        points = [replica.point for replica in self._replicas]
        names = [None if point is None else point.name for point in points]
        if len(set(names)) > 1:
            reached = ", ".join(
                f"replica {i} {'has ended' if name is None else f'is at {name}'}"
                for i, name in enumerate(names)
            )
            raise RuntimeError(
                f"Replicas do different things: {reached}. All replicas have to call the same "
                "collectives in the same order."
            )
        return points[0].merge([point.value for point in points])


def merge_across_replicas(name: str, value: Any, merge: Callable[[list], Sequence]) -> Any:
    """Returns the result of this replica of `merge(values of all replicas)`."""
    replica = context.local
    tracer = thread.recorders.tracer
    if tracer is not None and tracer not in replica._runner._recorders:
        raise RuntimeError(
            f"`{name}` called while defining a new graph or a tf.function. This can often happen "
            "if the function `fn` passed to `strategy.run()` contains a nested `@tf.function`, and "
            "the nested `@tf.function` contains a synchronization point, such as aggregating "
            "gradients (e.g, optimizer.apply_gradients). Call strategy.run() inside of the "
            "tf.function instead."
        )
    return replica.reach(_Point(name, value, merge))


def sum_over_replicas(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Returns the sum of each tensor over the replicas of this process; its gradient is a sum."""

    def merge(values: list) -> list:
        return [_sum_tensors(values)] * len(values)

    sums = merge_across_replicas("all_reduce", list(tensors), merge)

    def rule(needed: tuple[bool, ...], g: Any) -> list:
        gs = g if type(g) is tuple else (g,)
        summed = sum_over_replicas(list(gs))
        return [s if wanted else None for s, wanted in zip(summed, needed, strict=True)]

    return list(record_custom("all_reduce", rule, list(tensors), list(sums)))


def _sum_tensors(values: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Returns the sum of each tensor over the replicas. Tensors of one dtype are added at once."""
    rows = list(zip(*values, strict=True))
    results: list[Any] = [None] * len(rows)
    dtypes = [row[0]._spec.dtype for row in rows]
    for dtype in dict.fromkeys(dtypes):
        indices = [i for i, other in enumerate(dtypes) if other == dtype]
        inputs = tuple([x for i in indices for x in rows[i]])
        sums = apply(collectives.sum_replicas, inputs, {"replicas": len(values)})
        for i, y in zip(indices, sums, strict=True):
            results[i] = y
    return results


def gather_from_replicas(x: Tensor, axis: int) -> Tensor:
    """Returns the tensors of the replicas of this process along `axis`."""

    def merge(values: list) -> list:
        sizes = [value._spec.shape[axis] for value in values]
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        gathered = concat(*values, axis=axis)
        return [(gathered, start) for start in starts]

    gathered, start = merge_across_replicas("all_gather", x, merge)
    size = x._spec.shape[axis]

    def rule(_needed: tuple[bool, ...], g: Any) -> list:
        (total,) = sum_over_replicas([g])
        shape = total._spec.shape
        where = [(0, n, 1) for n in shape]
        where[axis] = (start, start + size, 1)
        return [take_slice(total, where=tuple(where))]

    return record_custom("all_gather", rule, [x], gathered)
