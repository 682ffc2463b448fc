"""Paths: the ways that calls of one signature have taken, each a recording ready for replay."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograde.core import nest
from retrograde.core.composites import CompositeTensor
from retrograde.core.conversion import as_array, held_by
from retrograde.core.effects import Host
from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor, wrap
from retrograde.functions.numpy_replay import generate
from retrograde.functions.playing import Divergence, Played, play
from retrograde.functions.recording import Call, Guard, Log, Recording
from retrograde.functions.simplifying import simplified


class Results:
    """The structure that a function returns, and which values of the recording are in it.

    Python's numbers and strings become tensors, as in TensorFlow; `None` and other objects stay.
    """

    def __init__(self, returned: Any, recording: Recording) -> None:
        self._structure = returned
        self._leaves = [_tensor(x) for x in nest.leaves(returned, expand_composites=True)]
        self.tensors = [x for x in self._leaves if isinstance(x, Tensor)]
        self.numbers = [recording.number(x) for x in self.tensors]
        self._single = type(returned) is Tensor
        self._places = [isinstance(x, Tensor) for x in self._leaves]
        self._leaves = [None if isinstance(x, Tensor) else x for x in self._leaves]

    def around(self, tensors: list[Tensor]) -> Any:
        """The structure around other tensors."""
        if self._single:
            return tensors[0]
        given = iter(tensors)
        pairs = zip(self._places, self._leaves, strict=True)
        leaves = iter([next(given) if place else leaf for place, leaf in pairs])
        return nest.packed(self._structure, leaves, expand_composites=True)

    def forget(self) -> None:
        """Lets go of the tensors of the call that was recorded."""
        if self._single:
            self._structure = None
        else:
            leaves = nest.leaves(self._structure, expand_composites=True)
            self._structure = nest.packed(
                self._structure, iter([None for _ in leaves]), expand_composites=True
            )
        self.tensors = []


def _tensor(leaf: Any) -> Any:
    held = held_by(leaf)
    if held is not None:
        return leaf if type(leaf) is Tensor else held._read()
    if leaf is None or isinstance(leaf, CompositeTensor):
        return leaf
    try:
        return Tensor(as_array(leaf))
    except (TypeError, ValueError):
        return leaf


class Path:
    """One recording, ready to be replayed."""

    def __init__(self, recording: Recording, results: Results, inputs: int) -> None:
        self.recording = recording
        self.results = results
        self.keys = tuple([e.key for e in recording.entries if type(e) is Guard])
        self.replays = 0
        self.made = time.time()
        self._inputs = inputs
        self._plain = simplified(recording, results.numbers)
        firsts = zip(recording.variables, recording.first_values, strict=True)
        self._read = [variable for variable, number in firsts if number >= 0]
        self._written = [recording.variables[place] for place in self._plain.writes]
        self._open = [
            (v, v._array.shape)
            for v, number in zip(recording.variables, recording.first_values, strict=True)
            if v._shape is not None and number >= 0
        ]
        calls = [e for e in self._plain.entries if type(e) is Call]
        self._calls_python = any(type(call.primitive) is Host for call in calls)
        self._code: Any = None
        self.writer: Any = None

    def fits(self) -> bool:
        """Whether variables of open shape have the one they had."""
        return all(v._array.shape == shape for v, shape in self._open)

    def source(self) -> str:
        """The code of the replay on NumPy."""
        self._prepare()
        return self.writer.source

    def _prepare(self) -> None:
        self.writer = generate(self._plain, self.recording, self._inputs)
        self._code = self.writer.compiled()

    def replay(self, inputs: list[Tensor], log: Log) -> Any:
        """Does again what was recorded, to other `inputs`. Nothing is kept before all is done."""
        if self._code is None:
            self._prepare()
        arrays = [x._array for x in inputs]
        arrays += [v._array for v in self._read]
        if self._calls_python:
            with np.errstate(all="ignore"):  # unlike a context, it can be entered within itself
                outcome = self._code(*arrays, log)
        else:
            outcome = thread.recorders.quietly(self._code, *arrays, log)
        if type(outcome) is Divergence:
            return outcome
        values, writes = outcome
        for variable, array in zip(self._written, writes, strict=True):
            variable._put(Tensor(array, variable._id))
        self.replays += 1
        return self.results.around([wrap(value) for value in values])

    def play(self, inputs: list[Tensor], log: Log) -> Any:
        """The same through `apply`, so that whoever listens hears of it."""
        played = play(self.recording, inputs, log)
        if type(played) is Divergence:
            return played
        self.commit(played)
        self.replays += 1
        return self.results.around([played.values[n] for n in self.results.numbers])

    def commit(self, played: Played) -> None:
        """Gives variables their new values."""
        for place, tensor in played.writes.items():
            variable = self.recording.variables[place]
            variable._put(Tensor(tensor._array, variable._id))


class Paths:
    """The paths of one signature, as branches that part at guards."""

    def __init__(self) -> None:
        self.all: list[Path] = []
        self.latest: Path | None = None
        self.misses = 0
        self.eager = False
        self.lock = threading.RLock()
        self._branches: dict[tuple, Path] = {}

    def add(self, path: Path) -> None:
        """Takes a new path in."""
        self.all.append(path)
        self.latest = path
        for prefix in _prefixes(path.keys):
            self._branches[prefix] = path

    def first(self) -> Path | None:
        """The path to try first: the one that was right the last time."""
        latest = self.latest
        if latest is None or latest.fits():
            return latest
        return next((path for path in reversed(self.all) if path.fits()), None)

    def other(self, path: Path, divergence: Divergence) -> Path | None:
        """The path that goes along with `path` up to a guard, and there the other way."""
        found = self._branches.get((*path.keys[: divergence.place], divergence.key))
        return found if found is not None and found.fits() else None


def _prefixes(keys: tuple) -> Iterator[tuple]:
    return (keys[: i + 1] for i in range(len(keys)))
