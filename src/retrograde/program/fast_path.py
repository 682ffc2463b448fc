"""Fast calls: generated source for calls without guards and host callbacks.

A small function spends most of its time outside its kernels. So each trace has a generated call,
without loops and lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from retrograde.core.lazy import LazyTensor
from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor, next_id
from retrograde.core.variable_cell import commit
from retrograde.devices.device_tensors import (
    DeviceArray,
    device_array,
    interned,
    kept,
)
from retrograde.program.donation import Donation
from retrograde.program.signature import spec_of_argument
from retrograde.values.source import SourceWriter

if TYPE_CHECKING:
    from retrograde.program.traces import Trace


def make_fast_call(
    trace: Trace,
    read_variables: dict[int, Any],
    written_variables: dict[int, Any],
    donation: Donation | None,
    is_shared: bool,
) -> Callable:
    """Returns a function `call(*arguments)` that replays `trace`.

    It returns `NotImplemented` if the number, types, shapes or dtypes of the arguments differ.
    `read_variables` and `written_variables` are variables by place. `donation` has the variables
    with donated buffers. It ends with the call unless it `is_shared` by all calls.
    """
    executable, specs = trace.executable, trace.argument_specs()
    namespace: dict[str, Any] = {"path": trace, "Tensor": Tensor, "LazyTensor": LazyTensor}
    namespace |= {"new": object.__new__, "next_id": next_id, "rebuild": trace.results.rebuild}
    namespace |= {
        f"v{place:d}": variable for place, variable in (read_variables | written_variables).items()
    }
    namespace |= {f"spec{i}": interned(spec) for i, spec in enumerate(specs)}
    arguments = [f"x{i}" for i in range(len(specs))]
    if executable.compiles:
        lines = _compiled_lines(
            trace, arguments, list(read_variables), list(written_variables), donation, namespace
        )
        if not is_shared:
            lines.append("donation.end_all()")
    else:
        lines = _replay_lines(
            trace, arguments, list(read_variables), list(written_variables), namespace
        )
    lines.append("path.replays += 1")
    lines.append(f"return {trace.results.expression()}")
    count_check = f"if len(arguments) != {len(specs)}: return NotImplemented"
    unpacking = f"[{', '.join(arguments)}] = arguments"
    writer = SourceWriter(**namespace)
    writer.write("def call(*arguments):")
    writer.write(count_check, unpacking, *lines, depth=1)
    return writer.define("call", "call")


def _read_lines(place: int) -> list[str]:
    """Returns lines that assign the tensor of a variable to `t`."""
    return [
        f"t{place:d} = v{place:d}._tensor",
        f"if t{place:d} is None: t{place:d} = v{place:d}._current()",
    ]


def _replay_lines(
    trace: Trace,
    arguments: list[str],
    read_places: list[int],
    written_places: list[int],
    namespace: dict[str, Any],
) -> list[str]:
    """Returns lines that compute the results `y` with NumPy and commit new values of variables."""
    executable = trace.executable
    namespace |= {"replay": executable.code(), "thread": thread}
    checks = []
    for i, x in enumerate(arguments):
        checks += [
            f"if type({x}) is not Tensor and type({x}) is not LazyTensor: return NotImplemented",
            f"b{i} = {x}._array",
            f"if b{i}.shape != spec{i}[0] or b{i}.dtype != spec{i}[1]: return NotImplemented",
        ]
    count = len(executable.program.results)
    results = "".join([f"r{i}, " for i in range(count)])
    writes = "".join([f"u{place:d}, " for place in written_places])
    arrays = "".join([f"b{i}, " for i in range(len(arguments))])
    arrays += "".join([f"t{place:d}._array, " for place in read_places])
    lines = [line for place in read_places for line in _read_lines(place)]
    lines.append(f"({results}), ({writes}) = thread.recorders.quietly(replay, {arrays}None)")
    for i in range(count):
        lines += [f"y{i} = new(Tensor)", f"y{i}._array = r{i}", f"y{i}._id = next_id()"]
    for p in written_places:
        lines += [f"w{p:d} = new(Tensor)", f"w{p:d}._array = u{p:d}", f"w{p:d}._id = v{p:d}._id"]
    return [*checks, *_add_commit(trace, lines, read_places, written_places, namespace)]


def _add_commit(
    trace: Trace,
    lines: list[str],
    read_places: list[int],
    written_places: list[int],
    namespace: dict[str, Any],
) -> list[str]:
    """Adds the lines that commit the new tensors `w` of variables, which `lines` compute.

    If another thread changes a variable between its read and its write, the call is repeated.
    """
    if not written_places:
        return lines
    updated = [place for place in written_places if place in read_places]
    variables = {place: namespace[f"v{place:d}"] for place in written_places}
    namespace |= {"commit": commit, "lock": trace.lock}
    namespace["written"] = tuple(variables.values())
    namespace["updated"] = tuple([variables[place] for place in updated])
    new_tensors = "".join([f"w{place:d}, " for place in written_places])
    if not updated:
        return [*lines, f"commit(written, ({new_tensors}))"]
    old_tensors = "".join([f"t{place:d}, " for place in updated])
    commit_line = f"if commit(written, ({new_tensors}), updated, ({old_tensors})): break"
    return ["with lock:", "  while True:", *[f"    {line}" for line in (*lines, commit_line)]]


def _compiled_lines(
    trace: Trace,
    arguments: list[str],
    read_places: list[int],
    written_places: list[int],
    donation: Donation | None,
    namespace: dict[str, Any],
) -> list[str]:
    """Returns lines that compute the results `y` with XLA and commit new values of variables."""
    compiled, program = trace.executable.compiled(), trace.executable.program
    namespace |= {"program": compiled.jitted, "large": compiled.large, "wide": compiled.precision}
    namespace |= {"kept": kept.get, "device_array": device_array, "donation": donation}
    namespace |= {"spec_of_argument": spec_of_argument, "DeviceArray": DeviceArray}
    lines = []
    for i, x in enumerate(arguments):
        lines += [
            f"k = kept(id({x}))",
            f"if k is not None and k[1] is spec{i}: a{i} = k[0]",
            f"elif spec_of_argument({x}) != spec{i}: return NotImplemented",
            f"else: a{i} = device_array({x})",
        ]
    checks, lines = lines, []
    names = {n: f"a{i}" for i, n in enumerate(program.arguments)}
    variables = program.arguments[len(arguments) :]
    for place, n in zip(read_places, variables, strict=True):
        if n in compiled.parameters:
            lines += [*_read_lines(place), f"{names[n]} = device_array(t{place:d})"]
    argument_names = "".join([f"{names[n]}, " for n in compiled.parameters])
    argument_names += "*large, " if compiled.large else ""
    call = (
        f"program({argument_names})"
        if donation is None
        else f"donation.run(program, ({argument_names}))"
    )
    lines.append(f"with wide(): made = {call}" if compiled.is_wide else f"made = {call}")
    places = {n: i for i, n in enumerate(compiled.outputs)}
    results = [(f"y{i}", "next_id()", places[n]) for i, n in enumerate(program.results)]
    writes = [(f"w{p:d}", f"v{p:d}._id", places[program.writes[p]]) for p in written_places]
    for name, tensor_id, place in (*results, *writes):
        lines += [f"{name} = new(LazyTensor)", f"{name}._spec = d = new(DeviceArray)"]
        lines += [f"d.device_array = made[{place:d}]", f"{name}._id = {tensor_id}"]
    passed_places = [
        p for p, n in zip(read_places, variables, strict=True) if n in compiled.parameters
    ]
    return [*checks, *_add_commit(trace, lines, passed_places, written_places, namespace)]
