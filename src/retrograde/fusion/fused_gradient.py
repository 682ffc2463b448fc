"""Gradients of lazily evaluated targets, computed in the same fused loops as the targets."""

from __future__ import annotations

from types import FrameType
from typing import Any

from retrograde.core.backward import Cotangents, backward_pass, depending_on, is_finite
from retrograde.core.recorders import thread
from retrograde.core.tape_arguments import seed
from retrograde.core.tensor import Tensor
from retrograde.fusion.deferred_calls import MAX_DEFERRED_CALLS, compute_only, group_of
from retrograde.values.thresholds import MAX_SIZE_CHECKED_FOR_NAN

_CALLS_PER_RULE = 3  # at most


class _LazyCotangents(Cotangents):
    """Cotangents that are not evaluated during the backward pass."""

    __slots__ = ("flagged",)

    def __init__(self) -> None:
        super().__init__(on_tensors=True)
        self.flagged = False

    def check(self, entry: tuple, g: Any, before: list[tuple]) -> int:
        """Sets `flagged` if a kernel that was evaluated eagerly produced NaN or Inf."""
        self.flagged = self.flagged or not all(is_finite(self.get(i)) for i in entry[1])
        return super().check(entry, g, before)


def fused_gradient(tape: Any, targets: list, sources: list, frame: FrameType) -> list | None:
    """Computes gradients together with their targets, which are still deferred.

    This requires that all calls can be evaluated lazily and that all values are finite. Otherwise
    it returns `None` and leaves the tape unchanged.
    """
    recorders, group = thread.recorders, group_of(targets)
    if recorders or recorders.backward_pass is not None or tape._persistent or group is None:
        return None
    entries = tape._entries
    if not _are_lazy(entries, MAX_DEFERRED_CALLS - len(group.calls)):
        return None
    cotangents = _LazyCotangents()
    for x in targets:
        cotangents.deposit(x._id, seed(x, None, on_tensors=True))
    source_ids = {x._id for x in sources}
    needed = None if tape._roots <= source_ids else depending_on(source_ids, entries)
    backward_pass(entries.copy(), cotangents, source_ids, needed)
    gradients = [cotangents.get(x._id) for x in sources]
    if cotangents.flagged or not all([isinstance(g, Tensor) for g in gradients]):
        return None
    flagged = compute_only([*targets, *gradients]) or group.flagged
    if flagged or not all(
        [x._spec.size > MAX_SIZE_CHECKED_FOR_NAN or is_finite(x._array) for x in targets]
    ):
        return None
    tape._use_up(frame)
    tape._monitored = True
    return gradients


def _are_lazy(entries: list[tuple], max_calls: int) -> bool:
    """Returns whether the rules of `entries` are at most `max_calls` calls, all of them lazy."""
    if _CALLS_PER_RULE * len(entries) > max_calls:
        return False
    primitives = [plan.primitive for plan, _, _, _, _ in entries]
    return all([p is not None and p.defer is not None for p in primitives])
