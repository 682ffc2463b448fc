"""DistributedGradientTape: gradients that are averaged over replicas."""

from __future__ import annotations

from typing import Any

from retrograde.core.tape import GradientTape
from retrograde.distribute import collectives
from retrograde.distribute.reduction import ReduceOp, as_reduce_op


class DistributedGradientTape:
    """A tape whose `gradient` is averaged over all replicas, or summed with `op="SUM"`.

    It is for training loops that run in each worker without `strategy.run`. In a replica,
    `optimizer.apply_gradients` sums gradients itself.

    >>> x = tf.Variable(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = x * x
    >>> tape = tf.distribute.DistributedGradientTape(tape)
    >>> tape.gradient(y, x).numpy()
    np.float32(6.0)
    """

    def __init__(self, tape: GradientTape, op: ReduceOp | str = ReduceOp.MEAN) -> None:
        self._tape = tape
        self._op = as_reduce_op(op)

    def gradient(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the gradients, averaged over all replicas."""
        return collectives.all_reduce(
            self._op, self._tape.gradient(target, sources, *args, **kwargs)
        )

    def __enter__(self) -> DistributedGradientTape:
        self._tape.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._tape.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)
