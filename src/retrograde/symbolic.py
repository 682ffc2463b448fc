"""tf.gradients and tf.hessians: derivatives of a graph, of which there is none in eager mode."""

from __future__ import annotations

from typing import Any

from retrograde.core.tape_arguments import UnconnectedGradients

__all__ = ["gradients", "hessians"]


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> Any:
    """Raises in eager mode, as in TensorFlow: a tape has to be there before the computation."""
    raise _needs_a_tape("gradients")


def hessians(
    ys: Any,
    xs: Any,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    name: str = "hessians",
) -> Any:
    """Raises in eager mode, as in TensorFlow. `tape.hessian` is what to use."""
    raise _needs_a_tape("hessians")


def _needs_a_tape(what: str) -> RuntimeError:
    return RuntimeError(
        f"tf.{what} is not supported when eager execution is enabled. Use tf.GradientTape instead."
    )
