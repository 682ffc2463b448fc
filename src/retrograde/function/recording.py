"""What a recording is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from retrograde.core.dispatch import Primitive


class Call(NamedTuple):
    """One applied primitive over numbered values.

    `outputs` holds one number, or several if the primitive has several `outputs`.
    """

    primitive: Primitive
    inputs: tuple[int, ...]
    attrs: dict[str, Any]
    outputs: tuple[int, ...]
