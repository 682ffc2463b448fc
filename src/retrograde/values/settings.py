"""The settings that `tf.config` reads and writes."""

from __future__ import annotations

from typing import Any

from retrograde.values.locks import fork_safe_lock

_lock = fork_safe_lock()

settings: dict[str, Any] = {
    "run_functions_eagerly": False,
    "replica_scopes": 0,  # that threads are in
    "has_fast_calls": True,  # whether functions need not check the two settings above
    "soft_device_placement": True,
    "device_policy": "silent",
    "synchronous_execution": True,
    "tensor_float_32": True,
    "op_determinism": False,
    "jit": "",
    "optimizer_options": {},
    "inter_op_threads": 0,
}


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Sets whether functions run eagerly."""
    settings["run_functions_eagerly"] = bool(run_eagerly)
    _set_fast_calls()


def count_replica_scopes(step: int) -> None:
    """Counts the scopes in which functions depend on the replica. `step` is 1 or -1."""
    with _lock:
        settings["replica_scopes"] += step
        _set_fast_calls()


def _set_fast_calls() -> None:
    settings["has_fast_calls"] = not (
        settings["run_functions_eagerly"] or settings["replica_scopes"]
    )
