"""Meshes: several JAX devices that run one compiled program together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_in_use: list[bool] = []  # has an element if an array on several CPU devices exists


def use_mesh(sharding: Any) -> None:
    """Records that arrays with this `jax.sharding.Sharding` exist."""
    devices = sharding.device_set
    if len(devices) > 1 and not _in_use and any(d.platform == "cpu" for d in devices):
        _in_use.append(True)


def runs_one_at_a_time() -> bool:
    """Returns whether programs have to end before others begin.

    Programs that exchange values between several CPU devices share one pool of threads. If two of
    them run at the same time, each may wait for threads that the other one occupies.
    """
    return bool(_in_use)


def blocking(program: Callable) -> Callable:
    """Returns `program` as a function that waits until the results are computed."""
    from jax import block_until_ready

    return lambda *arrays: block_until_ready(program(*arrays))
