"""Runs the campaigns from the command line."""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import sys
import time
import traceback
from collections.abc import Iterator

from campaigns import CAMPAIGNS


def main(argv: list[str] | None = None) -> int:
    """Runs campaigns and returns the exit status: 1 if any trial failed."""
    options = _parse(argv)
    if options.tensorflow:
        os.environ["CAMPAIGN_TENSORFLOW"] = options.tensorflow
    failed = 0
    for name in options.only or CAMPAIGNS:
        failed += run(name, options)
    return 1 if failed else 0


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="campaigns", description="Runs randomized robustness tests."
    )
    parser.add_argument(
        "--minutes", type=float, default=2.0, help="how long each campaign runs (default: 2)"
    )
    parser.add_argument("--trials", type=int, help="run this many trials, with no time limit")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first trial")
    parser.add_argument(
        "--short", action="store_true", help="run the small number of trials that CI runs"
    )
    parser.add_argument(
        "--only", type=lambda text: text.split(","), help=f"some of {','.join(CAMPAIGNS)}"
    )
    parser.add_argument(
        "--max-failures", type=int, default=10, help="stop a campaign after this many failures"
    )
    parser.add_argument(
        "--tensorflow",
        metavar="PYTHON",
        help="an interpreter with TensorFlow, to compare random programs with it",
    )
    options = parser.parse_args(argv)
    unknown = set(options.only or ()) - set(CAMPAIGNS)
    if unknown:
        parser.error(f"unknown campaigns: {', '.join(sorted(unknown))}")
    return options


def run(name: str, options: argparse.Namespace) -> int:
    """Runs one campaign, prints its failures and counts, and returns the number of failures."""
    campaign = importlib.import_module(f"campaigns.{name}")
    start = time.monotonic()
    tried = failed = 0
    for seed in _seeds(campaign, options, start):
        tried += 1
        try:
            problem = campaign.trial(seed)
        except Exception:
            problem = traceback.format_exc()
        if problem is not None:
            failed += 1
            command = f"make campaigns ARGS='--only {name} --trials 1 --seed {seed}'"
            print(f"FAILED {name}, seed {seed} ({command})\n{problem}\n", flush=True)
            if failed == options.max_failures:
                break
        _report_progress(name, tried, failed, start)
    seconds = time.monotonic() - start
    last = options.seed + tried - 1
    print(
        f"{name}: {tried} tried, {failed} failed, seeds {options.seed} to {last}, {seconds:.0f} s",
        flush=True,
    )
    return failed


def _seeds(campaign: object, options: argparse.Namespace, start: float) -> Iterator[int]:
    count = campaign.SHORT if options.short else options.trials
    if count is not None:
        yield from range(options.seed, options.seed + count)
        return
    for seed in itertools.count(options.seed):
        if time.monotonic() - start > 60 * options.minutes:
            return
        yield seed


def _report_progress(name: str, tried: int, failed: int, start: float) -> None:
    """Updates a progress line, on terminals only."""
    if sys.stderr.isatty():
        seconds = time.monotonic() - start
        print(f"\r{name}: {tried} tried, {failed} failed, {seconds:.0f} s", end="", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
