"""The settings that `tf.config` reads and writes."""

from __future__ import annotations

from typing import Any

settings: dict[str, Any] = {
    "run_functions_eagerly": False,
    "soft_device_placement": True,
    "device_policy": "silent",
    "synchronous_execution": True,
    "tensor_float_32": True,
    "op_determinism": False,
    "jit": "",
    "optimizer_options": {},
    "inter_op_threads": 0,
}
