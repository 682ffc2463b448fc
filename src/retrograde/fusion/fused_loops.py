"""Fused elementwise loops over large arrays, block by block and with threads."""

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
from retrograde.values.thresholds import FUSED_BLOCK_SIZE, MIN_FUSED_THREADED_WORK

_LEAST_BLOCK = 128  # elements along the axes that are split
_COSTLY_WEIGHT = 8  # a sine takes this many times as long as a product


class Fused:
    """A group of elementwise `calls` on arrays of one shape, and sums of their results.

    `inputs` are the values it reads, and `outputs` the values that are read outside the group.
    `write` writes a Python function from the arrays of the inputs to a tuple of output arrays.

    The arrays are split into blocks along their first `lead` axes. `repeats` maps values to others
    with the same elements, possibly broadcast. All elements of a `uniform` input are equal. The
    memory of `dead` inputs can be reused for outputs.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        specs: Sequence[Spec] | Mapping[int, Spec],
        outputs: Sequence[int],
        lead: int,
        repeats: Mapping[int, int],
        uniform: frozenset[int],
        dead: frozenset[int],
    ) -> None:
        self.calls = tuple(calls)
        self.outputs = tuple(outputs)
        self.shape = specs[calls[0].outputs[0]].shape
        self.lead = lead
        self.uniform = uniform
        self.specs = specs
        self.reads = [tuple(repeats.get(v, v) for v in call.inputs) for call in calls]
        computed = {call.outputs[0] for call in calls}
        read = dict.fromkeys(v for inputs in self.reads for v in inputs)
        self.inputs = tuple(v for v in read if v not in computed)
        self.last_read = {v: i for i, inputs in enumerate(self.reads) for v in inputs}
        self.writes = [
            out_argument_of(c.primitive, tuple(specs[v] for v in c.inputs), c.attrs) for c in calls
        ]
        self.reused = self._reused_inputs(dead)

    def __repr__(self) -> str:
        names = Counter(call.primitive.name for call in self.calls)
        listed = ", ".join(n if k == 1 else f"{k} {n}" for n, k in names.items())
        return f"<fused on {self.shape}: {listed}>"

    def write(self, writer: SourceWriter, name: str) -> None:
        """Writes the function under this name."""
        writer.namespace |= self._globals()
        _FusedSource(self).write(writer, name)

    def _reused_inputs(self, dead: frozenset[int]) -> dict[int, int]:
        """Returns, for each output, a dead input that is not read after the output is written."""
        reused: dict[int, int] = {}
        for i, call in enumerate(self.calls):
            y = call.outputs[0]
            if y not in self.outputs or is_sum(call):
                continue
            for v in self.inputs:
                fits = v in dead and self.specs[v] == self.specs[y]
                if fits and v not in reused.values() and not self.is_read_from(i, v):
                    reused[y] = v
                    break
        return reused

    def is_read_from(self, i: int, v: int) -> bool:
        """Returns whether a value is read while call `i` writes its result, or afterwards."""
        if self.last_read.get(v, -1) != i:
            return self.last_read.get(v, -1) > i
        writes = self.writes[i]
        if writes is None:  # the result is copied after the call
            return False
        return any(v == w and p not in writes.may_alias for p, w in enumerate(self.reads[i]))

    def _globals(self) -> dict[str, Any]:
        namespace: dict[str, Any] = {
            "np": np,
            "extra_threads": extra_threads,
            "writable_memory": writable_memory,
            "run_shared": blocks.run_shared,
            "block_bounds": blocks.block_bounds,
            "sum_of_halves": blocks.sum_of_halves,
        }
        for i, call in enumerate(self.calls):
            dtype = self.specs[call.outputs[0]].dtype
            namespace[_dtype_name(dtype)] = dtype
            f = call.primitive.on_numpy
            if not is_sum(call) and not isinstance(f, np.ufunc):
                namespace[self.function_name(i)] = partial(f, **call.attrs) if call.attrs else f
        return namespace

    def function_name(self, i: int) -> str:
        """Returns the name of the kernel of call `i` in the source."""
        call = self.calls[i]
        f = call.primitive.on_numpy
        if isinstance(f, np.ufunc):
            return f"np.{f.__name__}"
        number = f"_{call.outputs[0]:d}" if call.attrs else ""
        return f"{call.primitive.name}_kernel{number}"

    def is_worth_threads(self) -> bool:
        """Returns whether there is enough work for several threads."""
        weight = sum(_COSTLY_WEIGHT if call.primitive in COSTLY else 1 for call in self.calls)
        return weight * math.prod(self.shape) >= MIN_FUSED_THREADED_WORK


def is_sum(call: Call) -> bool:
    """Returns whether `call` is a sum or mean. All other calls of a `Fused` are elementwise."""
    return call.primitive.name in ("sum", "mean", "sum_to")


_PRODUCTS = ("multiply", "guarded_multiply")
_REPEATS = ("identity", "stop_gradient", "broadcast_to")  # results have the input's elements


def find_equal_value(
    call: Call,
    reads: tuple[int, ...],
    specs: Sequence[Spec] | Mapping[int, Spec],
    uniform: Mapping[int, Any],
) -> int | None:
    """Returns the value that has the same elements as the result of `call`, as in a product with 1.

    `uniform` has the numbers of values whose elements are all equal.
    """
    if call.primitive.name in _REPEATS:
        return reads[0]
    if call.primitive.name in _PRODUCTS and specs[reads[0]].dtype.kind != "c":
        for one, other in (reads, reads[::-1]):
            if uniform.get(one) == 1:
                return other
    return None


# Functions that the generated source calls


def extra_threads() -> int:
    """Returns the number of threads that can share the work, in addition to this one."""
    return blocks.threads() - 1


def writable_memory(x: np.ndarray) -> np.ndarray:
    """Returns `x` if it can be overwritten, else a new array of the same shape and dtype."""
    if x.flags.c_contiguous and x.flags.writeable:
        return x
    return np.empty(x.shape, x.dtype)


class _FusedSource:
    """Writes the source of a fused loop.

    A value `v3` is an array; `a3` is the same array with its blocks along the first axis; `x3` is
    one block of it. Blocks of intermediate values are in rows of scratch memory, `r0`, `r1` and so
    on, separate for each thread. A row is reused once its value is not read any more.
    """

    def __init__(self, fused: Fused) -> None:
        self.fused = fused
        self.count = math.prod(fused.shape[: fused.lead])
        self.rest = fused.shape[fused.lead :]
        block_size = max(_LEAST_BLOCK, -(-self.count // 4))  # leaves blocks for a few threads
        self.most = max(1, min(FUSED_BLOCK_SIZE // math.prod(self.rest), block_size))
        self.rows: list[np.dtype] = []
        self.rows_of: dict[int, set[int]] = {}  # maps a value to the rows that its block is in

    def write(self, writer: SourceWriter, name: str) -> None:
        """Writes the function."""
        fused = self.fused
        calls = [self._call(i) for i in range(len(fused.calls))]
        threads = "extra_threads()" if fused.is_worth_threads() else "0"
        bounds = f"block_bounds({self.count:d}, {self.most:d})"
        writer.write(f"def {name}({', '.join(f'v{v:d}' for v in fused.inputs)}):")
        writer.write(*self._setup_lines(), "", "def work(blocks):", depth=1)
        writer.write(*self._scratch(), "for start, stop in blocks:", depth=2)
        writer.write(*self._block_lines(), *calls, depth=3)
        writer.write("", f"run_shared(work, {bounds}, {threads})", *self._final_lines(), depth=1)
        writer.write(f"return ({', '.join(f'v{v:d}' for v in fused.outputs)},)", depth=1)

    # Before and after the loop over blocks

    def _setup_lines(self) -> list[str]:
        fused = self.fused
        lines = [f"sums{y:d} = {{}}" for y in self._sum_calls()]
        for y in self._arrays():
            if y in fused.reused:
                lines.append(f"v{y:d} = writable_memory(v{fused.reused[y]:d})")
            elif y in fused.outputs:
                shape, dtype = literal(fused.shape), _dtype_name(fused.specs[y].dtype)
                lines.append(f"v{y:d} = np.empty({shape}, {dtype})")
        return lines + [f"a{v:d} = v{v:d}{self._in_blocks(v)}" for v in self._arrays()]

    def _sum_calls(self) -> list[int]:
        return [call.outputs[0] for call in self.fused.calls if is_sum(call)]

    def _arrays(self) -> list[int]:
        """Returns the inputs and outputs that are arrays."""
        outputs = [v for v in self.fused.outputs if v not in self._sum_calls()]
        return [*self.fused.inputs, *outputs]

    def _final_lines(self) -> list[str]:
        return [self._final_sum(call) for call in self.fused.calls if is_sum(call)]

    def _final_sum(self, call: Call) -> str:
        y = call.outputs[0]
        text = f"sum_of_halves(sums{y:d}, 0, {self.count:d})"
        if call.primitive.name == "mean":
            text += f" / {self.count:d}"
        shape = self.fused.specs[y].shape
        return f"v{y:d} = ({text}).reshape({literal(shape)})" if shape else f"v{y:d} = {text}"

    # Splitting arrays into blocks

    def _padded_shape(self, v: int) -> tuple[int, ...]:
        shape = self.fused.specs[v].shape
        return (1,) * (len(self.fused.shape) - len(shape)) + tuple(shape)

    def _is_whole(self, v: int) -> bool:
        return self._padded_shape(v) == self.fused.shape and v not in self.fused.uniform

    def _is_split(self, v: int) -> bool:
        """Returns whether the array is split, so that its elements differ between blocks."""
        lead = self.fused.lead
        leading = self._padded_shape(v)[:lead]
        return leading == self.fused.shape[:lead] and v not in self.fused.uniform

    def _in_blocks(self, v: int) -> str:
        """Returns the expression that reshapes an array to have its blocks along the first axis."""
        rest = self._padded_shape(v)[self.fused.lead :]
        if v in self.fused.uniform:
            return ".flat[0]"
        if self._is_split(v):
            return f".reshape({literal((self.count, *rest))})"
        return f".reshape({literal(rest if math.prod(rest) > 1 else ())})"

    def _scratch(self) -> list[str]:
        shape = (self.most, *self.rest)
        names = map(_dtype_name, self.rows)
        return [f"row{i} = np.empty({literal(shape)}, {name})" for i, name in enumerate(names)]

    def _block_lines(self) -> list[str]:
        lines = [f"x{v:d} = a{v:d}[start:stop]" for v in self._arrays() if self._is_split(v)]
        return lines + [f"r{i} = row{i}[: stop - start]" for i in range(len(self.rows))]

    # One call on one block

    def _call(self, i: int) -> str:
        fused = self.fused
        call, writes = fused.calls[i], fused.writes[i]
        y, reads = call.outputs[0], fused.reads[i]
        blocks = [
            f"x{v:d}" if self._is_inside(v) or self._is_split(v) else f"a{v:d}" for v in reads
        ]
        if is_sum(call):
            return f"sums{y:d}[start, stop] = np.add.reduce({blocks[0]}, axis=None)"
        name = fused.function_name(i)
        if writes is not None:
            target = self._target(i)
            text = f"{name}({', '.join(blocks)}, out={target})"
            return text if y in fused.outputs else f"x{y:d} = {text}"
        text = f"{name}({', '.join(blocks)})"
        if y in fused.outputs:
            return f"x{y:d}[...] = {text}"
        if not any(self._is_whole(v) for v in reads):  # the result must be broadcast
            target = self._target(i)
            return f"x{y:d} = {target}; x{y:d}[...] = {text}"
        # The result may be a view of an input, whose row must then not be reused.
        self.rows_of[y] = set().union(*(self.rows_of.get(v, ()) for v in reads))
        return f"x{y:d} = {text}"

    def _is_inside(self, v: int) -> bool:
        return v not in self.fused.inputs

    def _target(self, i: int) -> str:
        """Returns where call `i` writes: an output or a free row, possibly an input's row."""
        fused = self.fused
        y = fused.calls[i].outputs[0]
        if y in fused.outputs:
            return f"x{y:d}"
        live = [v for v in self.rows_of if fused.is_read_from(i, v)]
        busy = set().union(*(self.rows_of[v] for v in live))
        dtype = fused.specs[y].dtype
        free = [r for r, d in enumerate(self.rows) if d == dtype and r not in busy]
        if not free:
            free = [len(self.rows)]
            self.rows.append(dtype)
        of_inputs = set().union(*(self.rows_of.get(v, ()) for v in fused.reads[i]))
        row = min(free, key=lambda r: r not in of_inputs)  # which are already in cache
        self.rows_of[y] = {row}
        return f"r{row}"


def _dtype_name(dtype: np.dtype) -> str:
    """Returns the name of `dtype` in the source, where `bool` means Python's `bool`."""
    return "bool_" if dtype.kind == "b" else dtype.name
