"""Makes all calls in both libraries, compares the results, and prints or writes a report."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.environments import python_in, python_of
from benchmarks.peers import PEER_BY_NAME, ROOT
from benchmarks.processes import child_environment
from parity import programs, recorded
from parity.calls import all_calls
from parity.compare import CRASH, DIFFERENT
from parity.report import Report, page
from tensorflow_suite.report import section

PAGE = ROOT / "docs" / "parity.md"


def log(text: str) -> None:
    """Prints progress to stderr, with the time of day; stdout has only the report."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(
        prog="parity/run.py",
        description="Compare retrograde with TensorFlow, function by function.",
    )
    add = parser.add_argument
    add("--seed", type=int, help="the seed of the inputs (default: random)")
    add("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    add("--record", action="store_true", help="record TensorFlow's results for the tests")
    add("--programs", action="store_true", help="only run the examples and the guides")
    add(
        "--environments",
        type=Path,
        metavar="DIR",
        help="use DIR/tensorflow/bin/python and DIR/retrograde/bin/python, if they exist",
    )
    return parser.parse_args(arguments)


def results_of(library: str, python: str, seed: int, folder: Path) -> list[dict]:
    """Returns a library's results for all calls. A call that crashes the process is an error."""
    file = folder / f"{library}.jsonl"
    file.touch()
    calls = all_calls()
    done = 0
    while done < len(calls):
        log(f"{library}: {len(calls) - done} calls")
        command = [python, "-m", "parity.worker", library, str(seed), str(file), str(done)]
        subprocess.run(
            command, cwd=ROOT, env=_environment(), stderr=subprocess.DEVNULL, check=False
        )
        with file.open("r+") as lines:
            before, done = done, sum(1 for _ in lines)
            if done == before == 0:
                raise SystemExit(f"{library} cannot be started: {' '.join(command)}")
            if done < len(calls):
                lines.write(json.dumps(_fatal(calls[done])) + "\n")
                done += 1
    return [json.loads(line) for line in file.read_text().splitlines()]


def _environment() -> dict[str, str]:
    """Puts the source of this checkout before any installed package."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return child_environment() | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _fatal(call: tuple) -> dict:
    return {**call._asdict(), "sources": [], "error": ["value", CRASH, "the process ended"]}


def version_of(python: str) -> str:
    """Returns the version of TensorFlow in an environment."""
    program = "import importlib.metadata as m; print(m.version('tensorflow-cpu'))"
    fallback = program.replace("-cpu", "")
    for text in (program, fallback):
        run = subprocess.run([python, "-c", text], capture_output=True, text=True, check=False)
        if run.returncode == 0:
            return run.stdout.strip()
    return "unknown"


def main(arguments: list[str] | None = None) -> int:
    """Compares the libraries. Returns 1 if there are unexplained differences, else 0."""
    options = parse_arguments(arguments)
    seed = random.randrange(2**31) if options.seed is None else options.seed
    log(f"--seed {seed}")
    environments = options.environments
    theirs_python = python_of(PEER_BY_NAME["tensorflow"], environments, log)
    ours_python = sys.executable
    if environments is not None and python_in(environments / "retrograde").exists():
        ours_python = str(python_in(environments / "retrograde"))
    with tempfile.TemporaryDirectory() as folder:
        tables, differs = [], False
        for kind in (programs.EXAMPLES, programs.GUIDES):
            outcomes, results = programs.compare(
                kind, theirs_python, ours_python, Path(folder), log
            )
            tables.append(programs.table(kind.kind, outcomes))
            differs = differs or any(outcome.mismatches for outcome in outcomes.values())
            if options.record:
                kind.record(results)
                log(f"wrote {kind.results_file.relative_to(ROOT)}")
        print(*tables, sep="\n\n")
        if options.programs:
            return int(differs)
        theirs = results_of("tensorflow", theirs_python, seed, Path(folder))
        ours = results_of("retrograde", ours_python, seed, Path(folder))
    report = Report(theirs, ours)
    print(report.text())
    if options.write:
        properties = {
            "TensorFlow": version_of(theirs_python),
            "date": datetime.date.today().isoformat(),
            "seed": str(seed),
        }
        PAGE.write_text(page(report, properties, tables) + section(PAGE.read_text()))
        log(f"wrote {PAGE.relative_to(ROOT)}")
    if options.record:
        recorded.write(theirs, seed)
        log(f"wrote {recorded.FILE.relative_to(ROOT)}")
    return int(differs or bool(report.with_kind(DIFFERENT)))


if __name__ == "__main__":
    sys.exit(main())
