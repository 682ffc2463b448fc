"""Runs the benchmarks, prints tables and, with `--write`, writes docs/benchmarks.md."""

import argparse
import contextlib
import dataclasses
import datetime
import sys
import time
from pathlib import Path

from benchmarks import growth, import_time, machine, memory, neighbors, rounds
from benchmarks.environments import python_of
from benchmarks.goals import GOALS
from benchmarks.peers import (
    COMPILED_PEERS,
    INPUT_PIPELINE_PEERS,
    KERAS_PEERS,
    KERAS_TAPE_PEERS,
    MODEL_PEERS,
    PEER_BY_NAME,
    PEERS,
    ROOT,
)
from benchmarks.processes import PeerError, WorkerProcess
from benchmarks.report import Report, disagreements, page, section_of, with_section
from benchmarks.workloads import (
    COMPILED,
    DESCRIPTIONS,
    IMPORTS,
    KERAS,
    KERAS_LOOPS,
    MEMORY,
    MODEL_MEMORY,
    MODELS,
    PIPELINES,
)

PAGE = ROOT / "docs" / "benchmarks.md"

FULL = (rounds.Effort(rounds=7, loops=8, seconds=0.02), import_time.Effort(runs=11, peer_runs=3))
QUICK = (rounds.Effort(rounds=2, loops=3, seconds=0.01), import_time.Effort(runs=3, peer_runs=1))


def log(text):
    """Prints progress to stderr, with the time of day; stdout has only the tables."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def names_from(known):
    """Returns an `argparse` converter for comma-separated lists of names in `known`."""

    def convert(text):
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(unknown)}. Expected some of: {', '.join(known)}."
            )
        return [name for name in known if name in names]

    return convert


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="benchmarks/run.py",
        description="Benchmark retrograde against other libraries.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="workloads:\n" + "\n".join(f"  {n:18}{d}" for n, d in DESCRIPTIONS.items()),
    )
    add = parser.add_argument
    add("--only", type=names_from(DESCRIPTIONS), default=list(DESCRIPTIONS), metavar="WORKLOAD,...")
    add("--peers", type=names_from(PEER_BY_NAME), default=list(PEER_BY_NAME), metavar="PEER,...")
    add("--rounds", type=int, help=f"number of rounds (default {FULL[0].rounds})")
    add("--quick", action="store_true", help="few and short rounds, for a quick estimate")
    add(
        "--neighbors",
        action="store_true",
        help="only measure how other processes slow down retrograde and PyTorch",
    )
    add("--growth", action="store_true", help="only measure growth with calls and batch size")
    add("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    add("--cores", type=int, metavar="N", help="run all peers on N cores (default: all)")
    add(
        "--environments",
        type=Path,
        metavar="DIR",
        help="use DIR/PEER/bin/python, if it exists, instead of .bench/PEER",
    )
    options = parser.parse_args(arguments)
    for name in ("rounds", "cores"):
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name}: got {value}, expected at least 1")
    return options


def find_pythons(names, environments):
    """Returns the Python of each peer, and the reasons for peers without one."""
    pythons, unavailable = {}, {}
    for name in names:
        try:
            pythons[name] = python_of(PEER_BY_NAME[name], environments, log)
        except (PeerError, OSError) as e:
            unavailable[name] = str(e)
    return pythons, unavailable


def find_versions(workers):
    """Returns the versions in each worker, and the reasons for workers that fail to start."""
    versions, unavailable = {}, {}
    for name, worker in workers.items():
        log(f"starting {name}")
        try:
            versions[name] = worker.request("versions")
        except (PeerError, OSError) as e:
            unavailable[name] = str(e)
    return versions, unavailable


def select(peers, values):
    """Returns the items of `values` whose keys are names of `peers`."""
    return {peer.name: values[peer.name] for peer in peers if peer.name in values}


def group_of(workload):
    """Returns the peers that run a workload."""
    for group, peers in (
        (COMPILED, COMPILED_PEERS),
        (KERAS, KERAS_PEERS),
        (MODELS | MODEL_MEMORY, MODEL_PEERS),
        (KERAS_LOOPS, KERAS_TAPE_PEERS),
    ):
        if workload in group:
            return peers
    return INPUT_PIPELINE_PEERS if workload in PIPELINES else PEERS


def measure_all(names, pythons, workers, step_effort, import_effort):
    """Returns a result for each workload. Stops the workers before measuring memory and imports."""
    results = []
    for name in names:
        if name not in MEMORY | MODEL_MEMORY | IMPORTS:
            peers = select(group_of(name), workers)
            results.append(rounds.measure(name, peers, step_effort, log))
    for worker in workers.values():
        worker.stop()
    for name in names:
        if name in MEMORY | MODEL_MEMORY:
            results.append(memory.measure(name, select(group_of(name), pythons), log))
    pythons = select(PEERS, pythons)
    if any(name in IMPORTS for name in names):
        results.append(import_time.measure(pythons, import_effort, log))
    return results


def peers_for(options):
    """Returns the names of the peers that the options require."""
    required = {peer.name for name in options.only for peer in group_of(name)}
    return [name for name in PEER_BY_NAME if name in required and name in options.peers]


def run(options, step_effort, import_effort):
    pythons, unavailable = find_pythons(peers_for(options), options.environments)
    with contextlib.ExitStack() as stack:
        workers = {
            name: stack.enter_context(WorkerProcess(python, PEER_BY_NAME[name]))
            for name, python in pythons.items()
        }
        versions, failed = find_versions(workers)
        usable = {name: workers[name] for name in versions}
        pythons = {name: pythons[name] for name in versions}
        results = measure_all(options.only, pythons, usable, step_effort, import_effort)
    return Report(peers_for(options), results, unavailable | failed, versions, GOALS)


def efforts_of(options):
    steps, imports = QUICK if options.quick else FULL
    if options.rounds is not None:
        steps = dataclasses.replace(steps, rounds=options.rounds)
    return steps, imports


def measure_neighbors(options):
    """Returns the tables of busy neighbors."""
    rows = [
        row for row in neighbors.ROWS if options.only == list(DESCRIPTIONS) or row in options.only
    ]
    return neighbors.tables(neighbors.measure(rows, options.environments, log))


def measure_growth(options):
    """Returns the tables of growth."""
    return growth.section(growth.measure(options.environments, log))


def print_section(section, write):
    """Prints a section and, if `write` is true, adds it to the page."""
    print(section)
    if write:
        PAGE.write_text(with_section(PAGE.read_text(), section))
        log(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


def main(arguments=None):
    """Runs the benchmarks. Returns 0, or 1 if the peers computed different results."""
    options = parse_arguments(arguments)
    if options.cores is not None:
        machine.limit_cores(options.cores)
    properties = machine.properties()
    log(", ".join(properties.values()))
    if options.neighbors:
        return print_section(measure_neighbors(options), options.write)
    if options.growth:
        return print_section(measure_growth(options), options.write)
    step_effort, import_effort = efforts_of(options)
    report = run(options, step_effort, import_effort)
    print(report.text())
    if options.write:
        PAGE.parent.mkdir(exist_ok=True)
        today = datetime.date.today().isoformat()
        before = PAGE.read_text() if PAGE.exists() else ""
        text = page(report, properties, today, step_effort.rounds)
        for heading in (neighbors.HEADING, growth.HEADING):
            section = section_of(before, heading)
            text = with_section(text, section) if section else text
        PAGE.write_text(text)
        log(f"wrote {PAGE.relative_to(ROOT)}")
    return 1 if disagreements(report.results) else 0


if __name__ == "__main__":
    sys.exit(main())
