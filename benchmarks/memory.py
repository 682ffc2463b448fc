"""Measures peak memory, in a new process for each peer."""

from benchmarks.peers import PEER_BY_NAME
from benchmarks.processes import PeerError, WorkerProcess
from benchmarks.report import Result
from benchmarks.workloads import MODEL_MEMORY


def measure(workload, pythons, log):
    """Returns how many megabytes the peak memory grows after the import of the library, if it can.

    `pythons` maps names of peers to the Python of their environment.
    """
    result = Result(workload, "MB")
    for name, python in pythons.items():
        log(f"{workload}: {name}")
        try:
            _measure_one(result, name, python)
        except PeerError as e:
            result.failures[name] = str(e)
    return result


def _measure_one(result, name, python):
    with WorkerProcess(python, PEER_BY_NAME[name]) as worker:
        worker.request("versions")  # imports the library, so that it is not counted
        if result.workload in MODEL_MEMORY:
            model = result.workload.removesuffix("_memory")
            reply = worker.request("model_memory", workload=model)
        else:
            reply = worker.request("memory", workload=result.workload)
    result.values[name] = reply["megabytes"]
    result.checksums[name] = reply["checksum"]
