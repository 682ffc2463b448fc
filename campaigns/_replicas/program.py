"""Trains a network in all modes and dtypes. `retrograde launch` runs this module in workers."""

from __future__ import annotations

import argparse
import pathlib
import pickle
from typing import Any

import retrograde as tf
from campaigns._replicas.networks import NETWORKS, train
from campaigns.replicas import TOLERANCES
from retrograde.ops.collectives import current_group

MODES = ("eager", "replayed", "xla")


def main() -> None:
    """Trains, and stores the losses and final variables of this worker, by dtype and mode."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("kind", choices=("alone", "processes", "devices"))
    parser.add_argument("count", type=int)
    parser.add_argument("steps", type=int)
    options = parser.parse_args()
    strategy = _strategy(options.kind, options.count)
    results = {
        (dtype, mode): train(options.network, strategy, mode, options.steps, dtype)[:2]
        for dtype in TOLERANCES
        for mode in MODES
    }
    path = pathlib.Path(options.folder, f"{current_group().rank}.pickle")
    path.write_bytes(pickle.dumps(results))


def _strategy(kind: str, count: int) -> Any:
    if kind == "alone":
        return tf.distribute.get_strategy()
    if kind == "processes":
        return tf.distribute.MultiWorkerMirroredStrategy()
    (cpu, *_) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * count
    )
    return tf.distribute.MirroredStrategy()


if __name__ == "__main__":
    main()
