"""Quick calls: what is left of a call that needs no log and cannot go another way.

Most of the time of a small function is spent around its kernels, so such a call is written out in
Python for each path: no loops, no lists.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from retrograde.core.tensor import Tensor, next_id
from retrograde.functions.xla_replay import (
    OnDevice,
    counts_are_true,
    device_array,
    held_alone,
    to_give_away,
)

if TYPE_CHECKING:
    from retrograde.functions.paths import Path
    from retrograde.functions.replaying import Replay


def quick_call(path: Path, count: int, read: dict[int, Any], written: dict[int, Any]) -> Callable:
    """A function `call(quietly, *tensors)` of `count` tensors that replays `path`.

    `read` and `written` are variables, by their places.
    """
    namespace: dict[str, Any] = {"path": path, "Tensor": Tensor, "OnDevice": OnDevice}
    namespace |= {"new": object.__new__, "next_id": next_id, "around": path.results.around}
    namespace |= {f"v{place}": variable for place, variable in (read | written).items()}
    arguments = [f"x{i}" for i in range(count)]
    body = _compiled if path.replay.compiles else _replayed
    tensors = [*arguments, *(f"t{place}" for place in read)]
    lines = body(path.replay, tensors, list(written), namespace)
    lines.append("path.replays += 1")
    lines.append(f"return {path.results.expression()}")
    if path.replay.compiles and written:
        # One after the other: nobody else may read what is given away.
        namespace["turn"] = path.turn
        lines = ["with turn:", *(f"    {line}" for line in lines)]
    text = "\n    ".join([f"def call(quietly, {', '.join(arguments)}):", *lines])
    exec(compile(text, "<call>", "exec"), namespace)
    return namespace["call"]


def _look_at(name: str) -> list[str]:
    """Lines that give the tensor of a variable the name `name`."""
    variable = f"v{name[1:]}"
    return [f"{name} = {variable}._tensor", f"if {name} is None: {name} = {variable}._current()"]


def _give_away(number: int, name: str) -> list[str]:
    """Lines that do as `to_give_away`, which is called only if there is something to it."""
    tensor, variable = name, f"v{name[1:]}"
    return [
        f"{tensor} = {variable}._tensor",
        f"if type({tensor}) is OnDevice and {_COUNTS.format(tensor)} == alone: "
        f"a{number} = {tensor}._device",
        f"else: a{number} = to_give_away({variable})",
    ]


_COUNTS = "count({0}) + count({0}._device)"  # neither is less than if nobody else holds them


@functools.cache
def _count_if_alone() -> int:
    """How many hold the tensor and the array of a variable there, if nobody else does."""
    if not counts_are_true():
        return -1
    namespace: dict[str, Any] = {"count": sys.getrefcount}
    text = f"def counts(v):\n    t = v._tensor\n    return {_COUNTS.format('t')}"
    exec(text, namespace)
    return namespace["counts"](held_alone())


def _replayed(
    replay: Replay, tensors: list[str], written: list[int], namespace: dict[str, Any]
) -> list[str]:
    """Lines that make the results `y` and put new values into variables, by NumPy."""
    namespace["replay"] = replay.code()
    count = len(replay.plain.results)
    results = "".join(f"r{i}, " for i in range(count))
    writes = "".join(f"w{place}, " for place in written)
    arrays = "".join(f"{tensor}._array, " for tensor in tensors)
    lines = [line for name in tensors if name[0] == "t" for line in _look_at(name)]
    lines.append(f"({results}), ({writes}) = quietly(replay, {arrays}None)")
    lines += [f"v{place}._put(Tensor(w{place}, v{place}._id))" for place in written]
    for i in range(count):
        lines += [f"y{i} = new(Tensor)", f"y{i}._array = r{i}", f"y{i}._id = next_id()"]
    return lines


def _compiled(
    replay: Replay, tensors: list[str], written: list[int], namespace: dict[str, Any]
) -> list[str]:
    """The same by XLA."""
    program, plain = replay.program(), replay.plain
    namespace |= {"program": program.jitted, "large": program.large, "wide": program.precision}
    namespace |= {"device_array": device_array, "to_give_away": to_give_away}
    namespace |= {"count": sys.getrefcount, "alone": _count_if_alone()}
    names = dict(zip(plain.arguments, tensors, strict=True))
    kept, given_away = program.parameters
    lines = [line for n in kept if names[n][0] == "t" for line in _look_at(names[n])]
    lines += [
        f"a{n} = {names[n]}._device if type({names[n]}) is OnDevice else device_array({names[n]})"
        for n in kept
    ]
    for n in given_away:
        lines += _give_away(n, names[n])
    first, second = ("".join(f"a{n}, " for n in numbers) for numbers in program.parameters)
    made = "".join(f"m{n}, " for n in program.outputs)
    call = f"{made}= program(({first}), ({second}), large)"
    lines.append(f"with wide(): {call}" if program.is_wide else call)
    results = [(f"y{i}", "next_id()", n) for i, n in enumerate(plain.results)]
    writes = [(f"w{place}", f"v{place}._id", n) for place, n in plain.writes.items()]
    for name, tensor_id, n in (*results, *writes):
        lines += [f"{name} = new(OnDevice)", f"{name}._device = m{n}"]
        lines += [f"{name}._host = None", f"{name}._id = {tensor_id}"]
    return [*lines, *(f"with v{place}._lock: v{place}._tensor = w{place}" for place in written)]
