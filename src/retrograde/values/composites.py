"""CompositeTensor: the base class of values that consist of several tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrograde.core.tensor import Tensor


class CompositeTensor:
    """A value that consists of tensors: a SparseTensor, a RaggedTensor, IndexedSlices.

    `tf.nest` with `expand_composites` uses `_components` and `_with_components`. A tape watches the
    tensor `_followed`. The value can be a source or target of `gradient` only if
    `_takes_gradients`. The gradient is then a value of the same class, which `_with_gradient`
    creates from the gradient of `_followed`.

    Operations work on tensors. Converting a composite to a tensor raises `NotOneTensor`. Then
    `dispatch_to_composite` calls the `_handler` of the composite for the operation, a primitive or
    a public function.
    """

    __slots__ = ()

    _is_tensor = True  # the result of tf.is_tensor
    _takes_gradients = False
    _instead = "Expected a tensor."  # advice in the message if this is refused
    _differentiable = "Use the tensor in its attribute `values`."  # advice for gradients
    _in_lists: frozenset[str] = frozenset()  # operations that accept lists of such values

    def _components(self) -> Sequence[Tensor]:
        raise NotImplementedError(
            f"{type(self).__name__} does not support this operation. {self._instead}"
        )

    def _with_components(self, components: Iterator[Any]) -> CompositeTensor:
        """Returns the same value with other components, taken from the iterator as needed."""
        raise NotImplementedError(
            f"{type(self).__name__} does not support this operation. {self._instead}"
        )

    @property
    def _followed(self) -> Tensor:
        raise NotImplementedError(
            f"{type(self).__name__} does not support this operation. {self._instead}"
        )

    def _with_gradient(self, g: Any) -> CompositeTensor:
        raise NotImplementedError(
            f"{type(self).__name__} does not support this operation. {self._instead}"
        )

    def _watched(self) -> Sequence[Tensor]:
        """Returns the tensors that a tape watches."""
        return (self._followed,)

    def _stack(self, _values: Sequence[Any]) -> CompositeTensor:
        """Stacks this value and others, for a dataset."""
        raise TypeError(f"Elements of type {type(self).__name__} cannot be batched.")

    def _static_key(self) -> Any:
        """Returns what distinguishes values with the same components, for signatures."""
        return None

    def _handler(self, _operation: Any) -> Callable | None:
        return None

    @property
    def _type_spec(self) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} does not support this operation. {self._instead}"
        )


class NotOneTensor(ValueError):
    """Raised if a composite tensor is passed where a single tensor is required.

    Operations often catch this error, so the message is formatted on demand.
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
    """Calls the handler of a composite for `operation`; raises the refusal if there is none."""
    composite = refusal.composite
    handler = composite._handler(operation)
    is_argument = any(isinstance(x, type(composite)) for x in (*args, *kwargs.values()))
    name = getattr(operation, "name", None) or operation.__name__
    if handler is None or not (is_argument or name in composite._in_lists):
        raise refusal
    try:
        return handler(*args, **kwargs)
    except (AttributeError, RecursionError):
        # A handler expects a composite as its first argument. For others, reading its attributes
        # fails, or the handler calls the operation again.
        if isinstance(next(iter((*args, *kwargs.values()))), type(composite)):
            raise
        raise refusal from None


def map_instances(kind: type, f: Callable, args: tuple, kwargs: dict) -> tuple[list, dict]:
    """Applies `f` to the arguments that are instances of `kind`."""
    if not any(isinstance(x, kind) for x in (*args, *kwargs.values())):
        raise TypeError(f"Expected a tf.{kind.__name__}. Received: a list with a {kind.__name__}.")
    named = {name: f(x) if isinstance(x, kind) else x for name, x in kwargs.items()}
    return [f(x) if isinstance(x, kind) else x for x in args], named


def dispatched(function: Callable) -> Callable:
    """Decorates a public function to dispatch to the handlers of composite tensors."""

    @functools.wraps(function)
    def operation(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except NotOneTensor as refusal:
            return dispatch_to_composite(refusal, function, *args, **kwargs)

    return operation
