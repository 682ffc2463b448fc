"""All programs that run in each layout: one replica, several workers, or several devices."""

from __future__ import annotations

import pathlib

from tests.distribute import keras_programs, mirrored_program, programs, spmd_program


def _keras(folder):
    folders = [pathlib.Path(folder, name) for name in ("training", "programs")]
    for path in folders:
        path.mkdir(exist_ok=True)
    return {
        "keras training": programs.keras_training(str(folders[0])),
        "keras programs": keras_programs.everything(str(folders[1])),
        "files": sorted(path.name for path in folders[0].iterdir()),
    }


def one_replica(folder):
    """Runs the programs whose results are compared with results of several replicas."""
    return {
        "trainings": programs.all_trainings(),
        "networks": spmd_program.all_networks(("replayed",)),
        **_keras(folder),
    }


def two_workers(folder):
    """Runs all programs in a worker."""
    return {
        "semantics": programs.semantics(),  # creates the strategy
        "trainings": programs.all_trainings(),
        "traffic": programs.traffic(),
        "dropout": programs.keras_dropout(),
        **_keras(folder),
        "compiled": spmd_program.workers(),
    }


def four_workers(_folder):
    """Trains in the mode of traced functions, and measures all-reduces."""
    return {"training": programs.training("replayed"), "traffic": programs.traffic()}


def two_devices(folder):
    """Runs all programs with the devices of one process."""
    return {
        "semantics": mirrored_program.semantics(),
        "trainings": programs.all_trainings(),
        **_keras(folder),
        **four_devices(folder),
    }


def four_devices(_folder):
    """Trains networks, and observes compiled steps."""
    return {
        "training": programs.training("replayed"),
        "networks": spmd_program.all_networks(),
        "details": spmd_program.details(programs.make_strategy()),
    }
