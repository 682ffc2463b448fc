"""MultiWorkerMirroredStrategy: one replica in each process of a cluster."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.distribute.cluster_resolver import ClusterResolver, TFConfigClusterResolver
from retrograde.distribute.input import InputContext
from retrograde.distribute.process_group import Worker, start
from retrograde.distribute.reduction import CommunicationOptions, ReduceOp
from retrograde.distribute.strategy import Strategy
from retrograde.distribute.variables import variable_class
from retrograde.ops import random_state
from retrograde.values.arguments import expect

# Environment variables by which JAX detects a cluster. Other variables of SLURM and Open MPI are
# also set for jobs with a single process.
_CLUSTER_VARIABLES = ("JAX_COORDINATOR_ADDRESS", "SLURM_STEP_NODELIST", "OMPI_MCA_orte_hnp_uri")
_KUBERNETES_VARIABLES = ("KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX")


class MultiWorkerMirroredStrategy(Strategy):
    """Trains one replica in each worker process, and sums their gradients.

    The workers are listed by `cluster_resolver`, by default in the environment variable TF_CONFIG.
    Without a list, JAX detects clusters of SLURM, Open MPI and Kubernetes. If no cluster is found,
    there is one replica. Create the strategy at the beginning of the program, before JAX is used.

    `retrograde launch -n 4 train.py` starts workers on one machine.
    """

    def __init__(
        self,
        cluster_resolver: ClusterResolver | None = None,
        communication_options: CommunicationOptions | None = None,
    ) -> None:
        super().__init__()
        options = communication_options or CommunicationOptions()
        self._options = expect(
            options, CommunicationOptions, "MultiWorkerMirroredStrategy", "CommunicationOptions"
        )
        self._resolver = cluster_resolver or TFConfigClusterResolver()
        worker = _worker(self._resolver)
        self._group = start(worker, options.timeout_seconds)
        self._rank = self._group.rank

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of workers."""
        return self._group.size

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """The cluster resolver, which has the task type and task id of this worker."""
        return self._resolver

    def run(
        self, fn: Callable, args: Sequence = (), kwargs: Mapping | None = None, options: Any = None
    ) -> Any:
        """Calls `fn` in the replica of this worker and returns its result."""
        if self._group.size == 1:
            return super().run(fn, args, kwargs)
        with self._enter_scope(in_replica=True), random_state.in_replica(self._rank):
            return fn(*args, **(kwargs or {}))

    def _reduce(self, op: ReduceOp, value: Any) -> Any:
        return value if self._group.size == 1 else super()._reduce(op, value)

    def _create_variable(self, create: Callable, **arguments: Any) -> Any:
        """Creates a variable with the initial value of the first worker."""
        del create  # creates plain variables
        kind = variable_class(arguments.get("synchronization"))
        variable = type.__call__(kind, **arguments)
        variable._strategy = self
        (array,) = self._group.broadcast([variable._array])
        variable._hold(Tensor(array, variable._id))
        self._created.append(weakref.ref(variable))
        return variable

    @property
    def _input_context(self) -> InputContext:
        return InputContext(self._group.size, self._rank, self._group.size)

    def __repr__(self) -> str:
        return f"<MultiWorkerMirroredStrategy, worker {self._rank} of {self._group.size}>"


def _worker(resolver: ClusterResolver) -> Worker | None:
    """Returns the rank of this process and the cluster size, or `None` if JAX detects them."""
    cluster = resolver.cluster_spec()
    if not cluster:
        is_detected = any(map(os.environ.get, _CLUSTER_VARIABLES)) or all(
            map(os.environ.get, _KUBERNETES_VARIABLES)
        )
        return None if is_detected else Worker(0, 1, "")
    tasks = [
        (job, i) for job in ("chief", "worker") if job in cluster.jobs
        for i in cluster.task_indices(job)
    ]  # fmt: skip
    me = (resolver.task_type, resolver.task_id)
    if resolver.task_type == "evaluator":
        return Worker(0, 1, "")
    if me not in tasks:
        raise ValueError(
            f"MultiWorkerMirroredStrategy: this process is task {me[1]} of job {me[0]!r}, which "
            f"is not among the workers {cluster.as_dict()}. Set 'task' in TF_CONFIG."
        )
    return Worker(tasks.index(me), len(tasks), _loopback(cluster.task_address(*tasks[0])))


def _loopback(address: str) -> str:
    """Replaces "localhost" by 127.0.0.1, so that the coordinator only listens on this machine."""
    host, _, port = address.rpartition(":")
    return f"127.0.0.1:{port}" if host == "localhost" else address
