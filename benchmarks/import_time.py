"""Measures how long an import takes in a new interpreter."""

import statistics
import subprocess
import time
from dataclasses import dataclass

from benchmarks.peers import ROOT
from benchmarks.processes import child_environment
from benchmarks.report import Result

BARE = "pass"


@dataclass(frozen=True)
class Effort:
    """The number of new interpreters: `runs` for retrograde and NumPy, `peer_runs` for others."""

    runs: int
    peer_runs: int


def measure(pythons, effort, log):
    """Returns the median import times, without the startup time of the interpreter.

    retrograde and NumPy alternate in one environment; the slow peers run in their own.
    `pythons` maps names of peers to the Python of their environment.
    """
    result = Result("import", "s")
    if "retrograde" in pythons:
        _measure_group(result, pythons["retrograde"], ["numpy", "retrograde"], effort.runs, log)
    for name in pythons:
        if name != "retrograde":
            _measure_group(result, pythons[name], [name], effort.peer_runs, log)
    return result


def _measure_group(result, python, packages, runs, log):
    log(f"import: {' and '.join(packages)}, runs: {runs}")
    programs = {BARE: BARE} | {package: f"import {package}" for package in packages}
    try:
        times = time_interleaved(python, programs, runs)
    except subprocess.SubprocessError as e:
        result.failures[packages[-1]] = str(e)
        return
    bare = statistics.median(times.pop(BARE))
    for package, seconds in times.items():
        result.values[package] = statistics.median(seconds) - bare


def time_interleaved(python, programs, runs):
    """Returns the seconds of each run, without the first round, which fills the caches."""
    times = {name: [] for name in programs}
    for _ in range(runs + 1):
        for name, program in programs.items():
            times[name].append(_seconds(python, program))
    return {name: seconds[1:] for name, seconds in times.items()}


def _seconds(python, program):
    start = time.perf_counter()
    subprocess.run(
        [python, "-c", program],
        cwd=ROOT,
        env=child_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=300,
    )
    return time.perf_counter() - start
