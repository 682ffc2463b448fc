"""Call: a primitive applied to values that go by numbers."""

from __future__ import annotations

from typing import Any, NamedTuple


class Call(NamedTuple):
    """One applied primitive, or something in the place of one.

    `inputs` and `outputs` are numbers of values; there is one output unless the primitive has
    `outputs`.
    """

    primitive: Any
    inputs: tuple[int, ...]
    attrs: dict[str, Any]
    outputs: tuple[int, ...]
