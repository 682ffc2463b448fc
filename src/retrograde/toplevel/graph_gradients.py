"""Implements tf.gradients and tf.hessians inside a `tf.function`."""

from __future__ import annotations

from typing import Any

from retrograde.core.recorders import thread
from retrograde.core.tape_arguments import UnconnectedGradients
from retrograde.ops.conversion import as_tensor
from retrograde.values import nest


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list:
    """Computes the gradients of the sum of `ys` with respect to each of `xs`, in a `tf.function`.

    Tensors in `stop_gradients` count as constants. In eager mode this raises an error, as in
    TensorFlow, because the computation was not recorded.

    >>> f = tf.function(lambda x: tf.gradients(x**3, x))
    >>> f(tf.constant(2.0))[0].numpy()
    np.float32(12.0)
    """
    targets, sources = nest.flatten(ys), nest.flatten(xs)
    stops = [] if stop_gradients is None else nest.flatten(stop_gradients)
    tape, targets, sources = _tape_of_trace("gradients", targets, sources, stops)
    weights = None if grad_ys is None else nest.flatten(grad_ys)
    return tape.gradient(targets, sources, weights, unconnected_gradients)


def hessians(
    ys: Any,
    xs: Any,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    name: str = "hessians",
) -> list:
    """Computes the Hessians of the sum of `ys` with respect to each of `xs`, in a `tf.function`.

    In eager mode this raises an error, as in TensorFlow. Use `tape.hessian` there.
    """
    results = []
    for x in nest.flatten(xs):
        tape, targets, (source,) = _tape_of_trace("hessians", nest.flatten(ys), [x], [])
        with tape:
            (gradient,) = tape.gradient(targets, [source], None, UnconnectedGradients.ZERO)
        results.append(tape.jacobian(gradient, source, UnconnectedGradients.ZERO))
    return results


def _tape_of_trace(op_name: str, targets: list, sources: list, stops: list) -> tuple:
    """Returns a tape of the trace from `sources` to `targets`, and both as recorded on it."""
    tracer = thread.recorders.tracer
    if tracer is None:
        raise RuntimeError(
            f"tf.{op_name} is not supported when eager execution is enabled. Use tf.GradientTape "
            "instead."
        )
    from retrograde.program.tf_gradients import tape_of_trace

    tensors = [[as_tensor(x) for x in part] for part in (targets, sources, stops)]
    return tape_of_trace(tracer, *tensors)
