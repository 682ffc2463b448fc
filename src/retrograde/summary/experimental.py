"""tf.summary.experimental: default step, scopes and raw summaries."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograde._api.lazy import from_all
from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_callbacks import HostCallback, call_host
from retrograde.summary import _events, writer
from retrograde.toplevel.scopes import name_scope
from retrograde.values import variable_scopes
from retrograde.values.arguments import shown

__all__ = ["get_step", "set_step", "summary_scope", "write_raw_pb"]

__getattr__, __dir__ = from_all(__name__)


def get_step() -> Any:
    """Returns the default step of summaries, or `None` if it is not set."""
    return writer.thread.step


def set_step(step: Any) -> None:
    """Sets the default step of summaries. A variable is read for each summary."""
    writer.thread.step = step


@contextlib.contextmanager
def summary_scope(
    name: str, default_name: str = "summary", values: Any = None
) -> Iterator[tuple[str, str]]:
    """Opens a name scope for a summary. Yields the tag and the scope."""
    name = name or default_name
    if not isinstance(name, str):
        raise TypeError(f"The name of a summary must be a string. Received: {shown(name)}.")
    tag = variable_scopes.scopes.name_scopes[-1] + name
    scope_name = "".join(c for c in name if c.isascii() and (c.isalnum() or c in "_.\\/-"))
    with name_scope(scope_name or default_name) as scope:
        yield tag, scope


def write_raw_pb(tensor: Any, step: Any = None, name: str | None = None) -> Tensor:
    """Writes a serialized `Summary` protocol buffer."""
    active_writer = writer.thread.writer
    if not writer.should_record_summaries():
        return as_tensor(False)

    def record(raw: Any, step: Any) -> Any:
        active_writer._append(int(step), _events.summary(raw.item()))
        return np.True_

    return call_host(
        HostCallback("summary", record, pure=False), (as_tensor(tensor), writer.current_step(step))
    )
