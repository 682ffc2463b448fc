"""Arguments of linear operators: hints, parameters and batch shapes."""

from __future__ import annotations

import inspect
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.linalg.diagonals import adjoint
from retrograde.ops.conversion import as_tensor
from retrograde.toplevel.shaping import broadcast_to
from retrograde.values import dtypes
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.dtypes import DType
from retrograde.values.shapes import broadcast


def as_hints(
    is_non_singular: bool | None,
    is_self_adjoint: bool | None,
    is_positive_definite: bool | None,
    is_square: bool | None,
) -> dict[str, bool | None]:
    """Returns hints as arguments of a constructor."""
    return {
        "is_non_singular": is_non_singular,
        "is_self_adjoint": is_self_adjoint,
        "is_positive_definite": is_positive_definite,
        "is_square": is_square,
    }


def constructor_arguments(local_variables: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a constructor from its `locals()`."""
    cls = type(local_variables["self"])
    names = [n for n in inspect.signature(cls.__init__).parameters if n != "self"]
    return {name: local_variables[name] for name in names if name in local_variables}


def parameter_tensor(value: Any, name: str, dtype: Any = None) -> Any:
    """Converts a parameter to a tensor. Variables are kept, so later assignments take effect."""
    if value is None:
        raise ValueError(f"Argument {name} must be a tensor. Received: None.")
    tensor = tensor_or_variable(value)
    if tensor is not None and not isinstance(tensor, Tensor):
        return value
    return as_tensor(value, dtype)


def dtype_of(value: Any) -> DType:
    """Returns the dtype of a tensor or variable."""
    return dtypes.as_dtype(value.dtype)


def conjugate_transpose(x: Tensor, condition: bool = True) -> Tensor:
    """Returns the conjugate transpose of `x` if `condition` is true, else `x`."""
    return adjoint(x) if condition else x


def broadcast_batch(*tensors: Tensor) -> list[Tensor]:
    """Broadcasts all axes except the last two."""
    batch = broadcast(*(tuple(x.shape[:-2]) for x in tensors))
    if batch is None:
        shapes = ", ".join(str(x.shape) for x in tensors)
        raise ValueError(f"The batch axes of shapes {shapes} do not broadcast.")
    return [
        x if tuple(x.shape[:-2]) == batch else broadcast_to(x, (*batch, *x.shape[-2:]))
        for x in tensors
    ]


def common_batch(operators: Any) -> tuple[int, ...]:
    """Broadcasts the batch shapes of the operators."""
    batch = broadcast(*(tuple(operator.batch_shape) for operator in operators))
    if batch is None:
        shapes = ", ".join(str(operator.batch_shape) for operator in operators)
        raise ValueError(f"The batch shapes {shapes} of the operators do not broadcast.")
    return batch
