"""Fused: calls on large arrays that run together, block by block in cache, over threads."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from retrograde.core.program import Call
from retrograde.core.rules import Spec
from retrograde.fusion import blocks
from retrograde.fusion.output_arguments import COSTLY, out_argument_of
from retrograde.values.source import SourceWriter, literal
from retrograde.values.thresholds import FUSED_BLOCK as BLOCK
from retrograde.values.thresholds import FUSED_THREADED as _WORTH_A_THREAD

_FEWEST = 128  # along the axes that are cut
_WEIGHT_OF_COSTLY = 8  # how many times longer a sine takes than a product


class Fused:
    """Elementwise `calls` over arrays of one shape, and sums of what they make.

    `inputs` are the values it reads, `outputs` those that are read outside of it. `write` writes a
    Python function from the arrays of the inputs to a tuple of the arrays of the outputs.

    The arrays are cut into blocks along their first `lead` axes. `plain` tells of a value that a
    call reads which other one it merely repeats, broadcast or under another name. Inputs
    that are `uniform` have one number all over. The memory of those that are `spent` may be taken
    for outputs.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        specs: Sequence[Spec] | Mapping[int, Spec],
        outputs: Sequence[int],
        lead: int,
        plain: Mapping[int, int],
        uniform: frozenset[int],
        spent: frozenset[int],
    ) -> None:
        self.calls = tuple(calls)
        self.outputs = tuple(outputs)
        self.shape = specs[calls[0].outputs[0]].shape
        self.lead = lead
        self.uniform = uniform
        self.specs = specs
        self.reads = [tuple(plain.get(v, v) for v in call.inputs) for call in calls]
        made = {call.outputs[0] for call in calls}
        read = dict.fromkeys(v for inputs in self.reads for v in inputs)
        self.inputs = tuple(v for v in read if v not in made)
        self.last_read = {v: i for i, inputs in enumerate(self.reads) for v in inputs}
        self.writes = [
            out_argument_of(c.primitive, tuple(specs[v] for v in c.inputs), c.attrs) for c in calls
        ]
        self.over = self._overwritten(spent)

    def __repr__(self) -> str:
        names = Counter(call.primitive.name for call in self.calls)
        listed = ", ".join(n if k == 1 else f"{k} {n}" for n, k in names.items())
        return f"<fused on {self.shape}: {listed}>"

    def write(self, writer: SourceWriter, name: str) -> None:
        """Writes the function under this name."""
        writer.namespace |= self._globals()
        _Text(self).write(writer, name)

    def _overwritten(self, spent: frozenset[int]) -> dict[int, int]:
        """For outputs, an input of which nothing is left to read where the output is written."""
        over: dict[int, int] = {}
        for i, call in enumerate(self.calls):
            y = call.outputs[0]
            if y not in self.outputs or is_sum(call):
                continue
            for v in self.inputs:
                fits = v in spent and self.specs[v] == self.specs[y]
                if fits and v not in over.values() and not self.is_read_from(i, v):
                    over[y] = v
                    break
        return over

    def is_read_from(self, i: int, v: int) -> bool:
        """Whether a value is needed while the call at `i` writes its result, or afterwards."""
        if self.last_read.get(v, -1) != i:
            return self.last_read.get(v, -1) > i
        writes = self.writes[i]
        if writes is None:  # the result is copied when it is there
            return False
        return any(v == w and p not in writes.over for p, w in enumerate(self.reads[i]))

    def _globals(self) -> dict[str, Any]:
        namespace: dict[str, Any] = {
            "np": np,
            "helpers": helpers,
            "memory_of": memory_of,
            "shared": blocks.shared,
            "shorter_halves": blocks.shorter_halves,
            "sum_of_halves": blocks.sum_of_halves,
        }
        for i, call in enumerate(self.calls):
            dtype = self.specs[call.outputs[0]].dtype
            namespace[_name_of(dtype)] = dtype
            f = call.primitive.on_numpy
            if not is_sum(call) and not isinstance(f, np.ufunc):
                namespace[self.function_name(i)] = partial(f, **call.attrs) if call.attrs else f
        return namespace

    def function_name(self, i: int) -> str:
        """The name of the kernel of the call at `i` in the source."""
        call = self.calls[i]
        f = call.primitive.on_numpy
        if isinstance(f, np.ufunc):
            return f"np.{f.__name__}"
        number = f"_{call.outputs[0]:d}" if call.attrs else ""
        return f"{call.primitive.name}_kernel{number}"

    def is_worth_threads(self) -> bool:
        """Whether the work is enough to wake other threads."""
        weight = sum(_WEIGHT_OF_COSTLY if call.primitive in COSTLY else 1 for call in self.calls)
        return weight * math.prod(self.shape) >= _WORTH_A_THREAD


def is_sum(call: Call) -> bool:
    """Whether `call` is a sum or mean; the other calls of a Fused are elementwise."""
    return call.primitive.name in ("sum", "mean", "sum_to")


_PRODUCTS = ("multiply", "guarded_multiply")
_REPEATS = ("identity", "stop_gradient", "broadcast_to")  # no work: the same elements again


def repeated(
    call: Call,
    reads: tuple[int, ...],
    specs: Sequence[Spec] | Mapping[int, Spec],
    uniform: Mapping[int, Any],
) -> int | None:
    """The value whose elements `call` gives again, as a product with 1 does.

    `uniform` has the numbers of values that are the same all over.
    """
    if call.primitive.name in _REPEATS:
        return reads[0]
    if call.primitive.name in _PRODUCTS and specs[reads[0]].dtype.kind != "c":
        for one, other in (reads, reads[::-1]):
            if uniform.get(one) == 1:
                return other
    return None


# What the sources call


def helpers() -> int:
    """How many threads there are beside this one to share the work."""
    return blocks.threads() - 1


def memory_of(x: np.ndarray) -> np.ndarray:
    """`x`, to be written over; or an array like it, if its memory is of another form."""
    if x.flags.c_contiguous and x.flags.writeable:
        return x
    return np.empty(x.shape, x.dtype)


class _Text:
    """The writing of a source.

    A value `v3` is an array; `a3` is the same array with its blocks along the first axis; `x3` is
    one block of it. Blocks of values that stay inside lie in rows of scratch memory, `r0`, `r1`
    and so on, one set for each thread; a row whose value is not read any more is taken again.
    """

    def __init__(self, fused: Fused) -> None:
        self.fused = fused
        self.count = math.prod(fused.shape[: fused.lead])
        self.rest = fused.shape[fused.lead :]
        enough = max(_FEWEST, -(-self.count // 4))  # blocks for a few threads
        self.most = max(1, min(BLOCK // math.prod(self.rest), enough))
        self.rows: list[np.dtype] = []
        self.looks_into: dict[int, set[int]] = {}  # the rows in which the block of a value lies

    def write(self, writer: SourceWriter, name: str) -> None:
        """Writes the function."""
        fused = self.fused
        calls = [self._call(i) for i in range(len(fused.calls))]
        threads = "helpers()" if fused.is_worth_threads() else "0"
        halves = f"shorter_halves({self.count:d}, {self.most:d})"
        writer.write(f"def {name}({', '.join(f'v{v:d}' for v in fused.inputs)}):")
        writer.write(*self._before(), "", "def work(blocks):", depth=1)
        writer.write(*self._scratch(), "for start, stop in blocks:", depth=2)
        writer.write(*self._cuts(), *calls, depth=3)
        writer.write("", f"shared(work, {halves}, {threads})", *self._after(), depth=1)
        writer.write(f"return ({', '.join(f'v{v:d}' for v in fused.outputs)},)", depth=1)

    # Before and after the loop over blocks

    def _before(self) -> list[str]:
        fused = self.fused
        lines = [f"sums{y:d} = {{}}" for y in self._sums()]
        for y in self._arrays():
            if y in fused.over:
                lines.append(f"v{y:d} = memory_of(v{fused.over[y]:d})")
            elif y in fused.outputs:
                shape, dtype = literal(fused.shape), _name_of(fused.specs[y].dtype)
                lines.append(f"v{y:d} = np.empty({shape}, {dtype})")
        return lines + [f"a{v:d} = v{v:d}{self._in_blocks(v)}" for v in self._arrays()]

    def _sums(self) -> list[int]:
        return [call.outputs[0] for call in self.fused.calls if is_sum(call)]

    def _arrays(self) -> list[int]:
        """The values that are arrays to be read or written, from outside."""
        outputs = [v for v in self.fused.outputs if v not in self._sums()]
        return [*self.fused.inputs, *outputs]

    def _after(self) -> list[str]:
        return [self._whole_sum(call) for call in self.fused.calls if is_sum(call)]

    def _whole_sum(self, call: Call) -> str:
        y = call.outputs[0]
        text = f"sum_of_halves(sums{y:d}, 0, {self.count:d})"
        if call.primitive.name == "mean":
            text += f" / {self.count:d}"
        shape = self.fused.specs[y].shape
        return f"v{y:d} = ({text}).reshape({literal(shape)})" if shape else f"v{y:d} = {text}"

    # How arrays are cut

    def _padded(self, v: int) -> tuple[int, ...]:
        shape = self.fused.specs[v].shape
        return (1,) * (len(self.fused.shape) - len(shape)) + tuple(shape)

    def _is_whole(self, v: int) -> bool:
        return self._padded(v) == self.fused.shape and v not in self.fused.uniform

    def _is_cut(self, v: int) -> bool:
        """Whether the array differs from block to block."""
        lead = self.fused.lead
        leading = self._padded(v)[:lead]
        return leading == self.fused.shape[:lead] and v not in self.fused.uniform

    def _in_blocks(self, v: int) -> str:
        """What makes the array one with its blocks along the first axis."""
        rest = self._padded(v)[self.fused.lead :]
        if v in self.fused.uniform:
            return ".flat[0]"
        if self._is_cut(v):
            return f".reshape({literal((self.count, *rest))})"
        return f".reshape({literal(rest if math.prod(rest) > 1 else ())})"

    def _scratch(self) -> list[str]:
        shape = (self.most, *self.rest)
        names = map(_name_of, self.rows)
        return [f"row{i} = np.empty({literal(shape)}, {name})" for i, name in enumerate(names)]

    def _cuts(self) -> list[str]:
        lines = [f"x{v:d} = a{v:d}[start:stop]" for v in self._arrays() if self._is_cut(v)]
        return lines + [f"r{i} = row{i}[: stop - start]" for i in range(len(self.rows))]

    # One call on one block

    def _call(self, i: int) -> str:
        fused = self.fused
        call, writes = fused.calls[i], fused.writes[i]
        y, reads = call.outputs[0], fused.reads[i]
        blocks = [f"x{v:d}" if self._is_inside(v) or self._is_cut(v) else f"a{v:d}" for v in reads]
        if is_sum(call):
            return f"sums{y:d}[start, stop] = np.add.reduce({blocks[0]}, axis=None)"
        name = fused.function_name(i)
        if writes is not None:
            into = self._room(i)
            text = f"{name}({', '.join(blocks)}, out={into})"
            return text if y in fused.outputs else f"x{y:d} = {text}"
        text = f"{name}({', '.join(blocks)})"
        if y in fused.outputs:
            return f"x{y:d}[...] = {text}"
        if not any(self._is_whole(v) for v in reads):  # the kernel returns less
            into = self._room(i)
            return f"x{y:d} = {into}; x{y:d}[...] = {text}"
        # The result may look into an input, whose row is then needed for as long as it is.
        self.looks_into[y] = set().union(*(self.looks_into.get(v, ()) for v in reads))
        return f"x{y:d} = {text}"

    def _is_inside(self, v: int) -> bool:
        return v not in self.fused.inputs

    def _room(self, i: int) -> str:
        """Where the call at `i` writes: its output, or a row that is free, of inputs too."""
        fused = self.fused
        y = fused.calls[i].outputs[0]
        if y in fused.outputs:
            return f"x{y:d}"
        live = [v for v in self.looks_into if fused.is_read_from(i, v)]
        busy = set().union(*(self.looks_into[v] for v in live))
        dtype = fused.specs[y].dtype
        free = [r for r, d in enumerate(self.rows) if d == dtype and r not in busy]
        if not free:
            free = [len(self.rows)]
            self.rows.append(dtype)
        of_inputs = set().union(*(self.looks_into.get(v, ()) for v in fused.reads[i]))
        row = min(free, key=lambda r: r not in of_inputs)  # theirs are in the cache already
        self.looks_into[y] = {row}
        return f"r{row}"


def _name_of(dtype: np.dtype) -> str:
    """Returns the name of `dtype` in the source, where `bool` is Python's."""
    return "bool_" if dtype.kind == "b" else dtype.name
