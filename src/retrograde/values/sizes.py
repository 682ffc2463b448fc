"""Sizes of unknown dimensions."""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class Size(int):
    """The size of an unknown dimension: an integer that differs between two cases.

    Code that computes shapes runs once with the size of the first case, which is the value of the
    integer. Arithmetic computes both cases, so that the results that depend on an unknown dimension
    are known to do so. A size is printed as `None` and equals a number only in both cases.
    """

    other: int  # the size in the second case

    def __new__(cls, first: int, other: int) -> Size:
        size = super().__new__(cls, first)
        size.other = other
        return size

    def __eq__(self, value: object) -> bool:
        if type(value) is int:
            note_sizes((value,))
        return isinstance(value, int) and cases(self) == cases(value)

    def __ne__(self, value: object) -> bool:
        return not self == value

    def __hash__(self) -> int:
        return hash(cases(self))

    def __repr__(self) -> str:
        return "None"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return "None"

    def __copy__(self) -> Size:
        return self

    def __deepcopy__(self, memo: dict) -> Size:
        return self

    def __reduce__(self) -> tuple:
        return Size, cases(self)


def cases(value: int) -> tuple[int, int]:
    """Returns the number in the first and in the second case."""
    first = int(value)
    return first, value.other if type(value) is Size else first


def in_both_cases(first: int, other: int) -> int:
    """Returns one integer for two cases: a `Size` if they differ."""
    return first if first == other else Size(first, other)


def _binary(function: Callable, reflected: bool) -> Callable:
    def compute(self: Size, value: Any) -> Any:
        if not isinstance(value, int):
            return NotImplemented
        pairs = zip(cases(self), cases(value), strict=True)
        return in_both_cases(*[function(b, a) if reflected else function(a, b) for a, b in pairs])

    return compute


def _remainder(self: Size, value: Any) -> Any:
    if type(value) is int and _thread.notes is not None:
        _thread.notes.divisors[value] = None
    return _binary(operator.mod, reflected=False)(self, value)


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    _function = getattr(operator, _name)
    setattr(Size, f"__{_name}__", _binary(_function, reflected=False))
    setattr(Size, f"__r{_name}__", _binary(_function, reflected=True))
setattr(Size, "__mod__", _remainder)  # noqa: B010
setattr(Size, "__neg__", lambda self: in_both_cases(*[-n for n in cases(self)]))  # noqa: B010


class Notes(NamedTuple):
    """Numbers that a function with unknown sizes depends on, in order.

    `divisors` are numbers that it divides sizes by. `sizes` are known sizes that met unknown ones.
    """

    divisors: dict[int, None]
    sizes: dict[int, None]


class _Thread(threading.local):
    notes: Notes | None = None


_thread = _Thread()


@contextlib.contextmanager
def taking_notes() -> Iterator[Notes]:
    """Yields the notes of the functions that run in a `with` block."""
    before = _thread.notes
    _thread.notes = Notes({}, {})
    try:
        yield _thread.notes
    finally:
        _thread.notes = before


def note_sizes(sizes: Iterable[int]) -> None:
    """Notes that the known ones of `sizes` met an unknown size."""
    if _thread.notes is not None:
        _thread.notes.sizes.update([(n, None) for n in sizes if type(n) is int and n > 1])


def has_size(value: Any) -> bool:
    """Returns whether `value`, or an element of a nested list, tuple or dict, is a `Size`."""
    if isinstance(value, (list, tuple)):
        return any([has_size(element) for element in value])
    if isinstance(value, dict):
        return any([has_size(element) for element in value.values()])
    return type(value) is Size


def in_case(value: Any, case: int) -> Any:
    """Returns `value` with the number of one case, 0 or 1, in place of each `Size`."""
    if type(value) is Size:
        return cases(value)[case]
    if isinstance(value, dict):
        return {key: in_case(element, case) for key, element in value.items()}
    if type(value) in (list, tuple):
        return type(value)([in_case(element, case) for element in value])
    return value


def public_shape(shape: Iterable[int]) -> tuple[int | None, ...]:
    """Returns a shape with `None` in place of each `Size`."""
    return tuple([None if type(n) is Size else n for n in shape])
