"""CompositeTensor: one value that is made of several tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrograde.core.tensor import Tensor


class CompositeTensor:
    """A value made of tensors: a SparseTensor, a RaggedTensor, IndexedSlices.

    `tf.nest` takes it apart and puts it together again by `_components` and `_with_components`,
    where it is asked to expand composites. A tape watches the tensor `_followed`. Only if
    `_takes_gradients` is true may it be a source or a target of `gradient`; the gradient is then
    a value of the same kind, made by `_with_gradient` from that of `_followed`.

    Operations work on tensors. Where one meets a composite, its conversion fails with
    `NotOneTensor`, which `hand_over` takes to `_handler` of that composite: what does the
    operation, a primitive or a public function, on values of this kind.
    """

    __slots__ = ()

    _takes_gradients = False
    _instead = "Expected a tensor."  # what a user may do where this is refused
    _in_lists: frozenset[str] = frozenset()  # operations that take lists of such values

    def _components(self) -> Sequence[Tensor]:
        raise NotImplementedError(f"{type(self).__name__} has no single tensor. {self._instead}")

    def _with_components(self, components: Iterator[Any]) -> CompositeTensor:
        """The same around others, of which this takes as many as it needs."""
        raise NotImplementedError(f"{type(self).__name__} has no single tensor. {self._instead}")

    @property
    def _followed(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no single tensor. {self._instead}")

    def _with_gradient(self, g: Any) -> CompositeTensor:
        raise NotImplementedError(f"{type(self).__name__} has no single tensor. {self._instead}")

    def _handler(self, _operation: Any) -> Callable | None:
        return None

    @property
    def _type_spec(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no single tensor. {self._instead}")


class NotOneTensor(ValueError):
    """A composite tensor stands where only one tensor can.

    Often an operation catches this and goes on, so the message is not written before it is read.
    """

    def __init__(self, composite: CompositeTensor) -> None:
        super().__init__()
        self.composite = composite

    def __str__(self) -> str:
        return (
            f"Attempt to convert a value ({self.composite!r}) with an unsupported type "
            f"({type(self.composite)}) to a tensor. {self.composite._instead}"
        )


def dispatch_to_composite(refusal: NotOneTensor, operation: Any, *args: Any, **kwargs: Any) -> Any:
    """What the composite that an operation met makes of it; or the refusal, if it knows nothing."""
    composite = refusal.composite
    handler = composite._handler(operation)
    given = any(isinstance(x, type(composite)) for x in (*args, *kwargs.values()))
    name = getattr(operation, "name", None) or operation.__name__
    if handler is None or not (given or name in composite._in_lists):
        raise refusal
    try:
        return handler(*args, **kwargs)
    except (AttributeError, RecursionError):
        # Handlers read the attributes of the first argument, where a composite tensor is expected;
        # or they call the operation again with the part of it that is one tensor.
        if isinstance(next(iter((*args, *kwargs.values()))), type(composite)):
            raise
        raise refusal from None


def map_instances(kind: type, f: Callable, args: tuple, kwargs: dict) -> tuple[list, dict]:
    """Arguments with `f` of them in place of those of a `kind`."""
    if not any(isinstance(x, kind) for x in (*args, *kwargs.values())):
        raise TypeError(f"Expected a tf.{kind.__name__}. Received: a list with a {kind.__name__}.")
    named = {name: f(x) if isinstance(x, kind) else x for name, x in kwargs.items()}
    return [f(x) if isinstance(x, kind) else x for x in args], named


def dispatched(function: Callable) -> Callable:
    """A public function, open to composite tensors that have a handler for it."""

    @functools.wraps(function)
    def operation(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except NotOneTensor as refusal:
            return dispatch_to_composite(refusal, function, *args, **kwargs)

    return operation
