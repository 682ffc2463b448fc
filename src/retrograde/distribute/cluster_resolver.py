"""tf.distribute.cluster_resolver: finds the tasks of a cluster, and which one this process is."""

from __future__ import annotations

import enum
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from retrograde._api.lazy import from_all
from retrograde.distribute.cluster_spec import ClusterSpec
from retrograde.values.arguments import shown

__all__ = [
    "ClusterResolver",
    "KubernetesClusterResolver",
    "KubernetesExecutableLocation",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "TPUClusterResolver",
    "UnionResolver",
]

__getattr__, __dir__ = from_all(__name__)


class ClusterResolver:
    """The base of cluster resolvers.

    `task_type` and `task_id` say which task of `cluster_spec()` this process is.
    """

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None

    def cluster_spec(self) -> ClusterSpec:
        """Returns the addresses of all tasks."""
        raise NotImplementedError

    def master(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:
        """Returns the address of a task, by default of this one; empty if there is no such task."""
        kind = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if kind is None or index is None:
            return ""
        return _with_layer(
            self.cluster_spec().task_address(kind, index), rpc_layer or self.rpc_layer
        )

    @property
    def environment(self) -> str:
        """The environment that the cluster runs in; empty if it is unknown."""
        return ""

    def num_accelerators(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        config_proto: Any = None,
    ) -> dict[str, int]:
        """Returns how many accelerators of each type this process has."""
        from retrograde.config.devices import jax_devices

        counts = {kind: len(jax_devices(kind)) for kind in ("GPU", "TPU")}
        return {kind: count for kind, count in counts.items() if count}


def _with_layer(address: str, rpc_layer: str | None) -> str:
    return f"{rpc_layer}://{address}" if rpc_layer and address else address


class SimpleClusterResolver(ClusterResolver):
    """Returns a cluster that the program states."""

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: Mapping[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError(
                f"cluster_spec must be a `tf.train.ClusterSpec`. Received: {shown(cluster_spec)}."
            )
        self._cluster_spec, self._master, self._environment = cluster_spec, master, environment
        self._accelerators = num_accelerators
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """Returns the cluster."""
        return self._cluster_spec

    def master(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:
        """Returns the address of a task; without arguments, the master that was passed."""
        if task_type is not None and task_id is not None:
            return super().master(task_type, task_id, rpc_layer)
        return _with_layer(self._master, rpc_layer or self.rpc_layer)

    @property
    def environment(self) -> str:
        """The environment that was passed."""
        return self._environment

    def num_accelerators(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        config_proto: Any = None,
    ) -> dict[str, int]:
        """Returns the numbers that were passed, or the numbers of this process."""
        return dict(self._accelerators or super().num_accelerators())


class UnionResolver(ClusterResolver):
    """Joins the clusters of several resolvers. The first one says which task this process is."""

    def __init__(
        self,
        *args: ClusterResolver,
        rpc_layer: str | None = None,
        task_type: str | None = None,
        task_id: int | None = None,
    ) -> None:
        if not args:
            raise ValueError("At least one ClusterResolver is required.")
        for resolver in args:
            if not isinstance(resolver, ClusterResolver):
                raise TypeError(
                    "All arguments must be a sub-class of `ClusterResolver`. Received: "
                    f"{shown(resolver)}."
                )
        self._resolvers = args
        self.rpc_layer = rpc_layer or args[0].rpc_layer
        self.task_type = args[0].task_type if task_type is None else task_type
        self.task_id = args[0].task_id if task_id is None else task_id

    def cluster_spec(self) -> ClusterSpec:
        """Returns all jobs. Tasks of a job in several resolvers are numbered consecutively."""
        jobs: dict[str, list] = {}
        for resolver in self._resolvers:
            spec = resolver.cluster_spec()
            for job in spec.jobs:
                jobs.setdefault(job, []).extend(spec.job_tasks(job))
        return ClusterSpec(jobs)

    @property
    def environment(self) -> str:
        """The environment of the first resolver."""
        return self._resolvers[0].environment


_TF_CONFIG = "TF_CONFIG"


class TFConfigClusterResolver(ClusterResolver):
    """Reads the cluster from the environment variable TF_CONFIG.

    It holds JSON such as
    `{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}`.
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._task_type, self._task_id = task_type, task_id
        self._rpc_layer, self._environment = rpc_layer, environment

    @property
    def task_type(self) -> str | None:
        """The job of this process."""
        if self._task_type is not None:
            return self._task_type
        task_type = _tf_config().get("task", {}).get("type")
        return None if task_type is None else str(task_type)

    @property
    def task_id(self) -> int | None:
        """The index of this process in its job."""
        if self._task_id is not None:
            return int(self._task_id)
        index = _tf_config().get("task", {}).get("index")
        return None if index is None else int(index)

    @property
    def rpc_layer(self) -> str | None:
        """The protocol that TF_CONFIG or the program names."""
        return self._rpc_layer or _tf_config().get("rpc_layer")

    @property
    def environment(self) -> str:
        """The environment that TF_CONFIG or the program names."""
        return self._environment or str(_tf_config().get("environment", ""))

    def cluster_spec(self) -> ClusterSpec:
        """Returns the cluster; an empty one without TF_CONFIG."""
        return ClusterSpec(_tf_config().get("cluster", {}))


def _tf_config() -> dict[str, Any]:
    text = os.environ.get(_TF_CONFIG, "")
    if not text.strip():
        return {}
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ValueError(
            f"The environment variable TF_CONFIG is not JSON: {error}. Received: {text!r}."
        ) from None
    parts = [config.get(part, {}) for part in ("cluster", "task")] if type(config) is dict else [0]
    if not all(isinstance(part, dict) for part in parts):
        raise ValueError(
            "The environment variable TF_CONFIG must be a JSON object with the objects 'cluster' "
            f"and 'task'. Received: {text!r}."
        )
    return config


class SlurmClusterResolver(ClusterResolver):
    """Reads the cluster from the environment of a SLURM job step.

    `jobs` has the number of tasks of each job, in order; by default all of them are workers.
    Tasks on one node get ports from `port_base` on.
    """

    def __init__(
        self,
        jobs: Mapping[str, int] | None = None,
        port_base: int = 8888,
        gpus_per_node: int | None = None,
        gpus_per_task: int | None = None,
        tasks_per_node: int | Sequence[int] | None = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        self._rank = int(_slurm("SLURM_PROCID"))
        hosts = expand_hostlist(_slurm("SLURM_STEP_NODELIST", "SLURM_NODELIST"))
        if tasks_per_node is None:
            tasks_per_node = expand_counts(
                _slurm("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
            )
        elif isinstance(tasks_per_node, int):
            tasks_per_node = [tasks_per_node] * len(hosts)
        pairs = zip(hosts, tasks_per_node, strict=True)
        self._addresses = [f"{host}:{port_base + i}" for host, n in pairs for i in range(n)]
        self._jobs = {"worker": len(self._addresses)} if jobs is None else dict(jobs)
        if sum(self._jobs.values()) != len(self._addresses):
            raise ValueError(
                f"SlurmClusterResolver: the jobs {self._jobs} have {sum(self._jobs.values())} "
                f"tasks, but the SLURM step has {len(self._addresses)}."
            )
        self.rpc_layer = rpc_layer
        self.task_type, self.task_id = self.get_task_info()

    def cluster_spec(self) -> ClusterSpec:
        """Returns the cluster."""
        addresses = iter(self._addresses)
        return ClusterSpec(
            {job: [next(addresses) for _ in range(n)] for job, n in self._jobs.items()}
        )

    def get_task_info(self) -> tuple[str, int]:
        """Returns the job of this process, and its index in the job."""
        rank = self._rank
        for job, count in self._jobs.items():
            if rank < count:
                return job, rank
            rank -= count
        raise ValueError(
            f"SlurmClusterResolver: SLURM_PROCID is {self._rank}, but there are only "
            f"{len(self._addresses)} tasks."
        )


def _slurm(*names: str) -> str:
    for name in names:
        if os.environ.get(name):
            return os.environ[name]
    raise RuntimeError(
        f"SlurmClusterResolver: the environment variable {' or '.join(names)} is not set. Start "
        "the program with srun."
    )


def expand_hostlist(text: str) -> list[str]:
    """Returns the hosts of a SLURM list: "n[1-2,07],m" is n1, n2, n07 and m."""
    hosts = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        names = [""]
        for plain, ranges in re.findall(r"([^\[\]]+)|\[([^\]]*)\]", part):
            endings = [plain] if plain else _expand_ranges(ranges)
            names = [start + end for start in names for end in endings]
        hosts += names
    return hosts


def _expand_ranges(text: str) -> list[str]:
    suffixes = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        suffixes += [str(n).zfill(len(first)) for n in numbers]
    return suffixes


def expand_counts(text: str) -> list[int]:
    """Returns the numbers of a SLURM list: "2(x3),1" is 2, 2, 2 and 1."""
    counts = []
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):
        counts += [int(count)] * int(times or 1)
    return counts


class KubernetesExecutableLocation(enum.Enum):
    """The location of a program that asks Kubernetes: in a pod, or outside of the cluster."""

    WITHIN_CLUSTER = 0
    OFF_CLUSTER = 1


class KubernetesClusterResolver(ClusterResolver):
    """Asks Kubernetes for the pods of each job, by their labels.

    It needs the package `kubernetes`, or `override_client`, an object with the method
    `list_pod_for_all_namespaces`. A Kubernetes job with indexed completions needs no resolver:
    `MultiWorkerMirroredStrategy()` finds its workers through JAX.
    """

    def __init__(
        self,
        job_to_label_mapping: Mapping[str, Sequence[str]] | None = None,
        tf_server_port: int = 8470,
        rpc_layer: str = "grpc",
        override_client: Any = None,
        executable_location: KubernetesExecutableLocation = (
            KubernetesExecutableLocation.WITHIN_CLUSTER
        ),
    ) -> None:
        self._labels = dict(job_to_label_mapping or {"worker": ["job-name=tensorflow"]})
        self._port, self.rpc_layer = tf_server_port, rpc_layer
        self._client, self._location = override_client, executable_location

    def cluster_spec(self) -> ClusterSpec:
        """Returns the addresses of the pods, which must all be running."""
        if self._client is None:
            self._client = _kubernetes_client(self._location)
        jobs: dict[str, list[str]] = {}
        for job, labels in self._labels.items():
            for label in labels:
                pods = self._client.list_pod_for_all_namespaces(label_selector=label)
                jobs.setdefault(job, []).extend(map(self._address, pods.items))
        return ClusterSpec(jobs)

    def _address(self, pod: Any) -> str:
        if pod.status.phase != "Running":
            raise RuntimeError(
                f"Pod {pod.metadata.name!r} is not running; its phase is {pod.status.phase}."
            )
        return f"{pod.status.host_ip}:{self._port}"


def _kubernetes_client(location: KubernetesExecutableLocation) -> Any:
    try:
        from kubernetes import client, config
    except ImportError:
        raise ImportError(
            "KubernetesClusterResolver needs the package kubernetes: pip install kubernetes."
        ) from None
    if location is KubernetesExecutableLocation.OFF_CLUSTER:
        config.load_kube_config()
    else:
        config.load_incluster_config()
    return client.CoreV1Api()


class TPUClusterResolver(ClusterResolver):
    """The TPUs that JAX finds. It raises a `ValueError` if there are none."""

    def __init__(
        self,
        tpu: Any = None,
        zone: Any = None,
        project: Any = None,
        job_name: str = "worker",
        coordinator_name: Any = None,
        coordinator_address: Any = None,
        credentials: Any = "default",
        service: Any = None,
        discovery_url: Any = None,
    ) -> None:
        from retrograde.config.devices import jax_devices

        if not jax_devices("TPU"):
            raise ValueError(
                f"TPUClusterResolver: JAX finds no TPU. Received: tpu={shown(tpu)}. Use the "
                "strategy that tf.distribute.get_strategy() returns, or "
                "tf.distribute.MirroredStrategy()."
            )
        self.task_type, self.task_id = job_name, 0

    @classmethod
    def connect(cls, tpu: Any = None, zone: Any = None, project: Any = None) -> TPUClusterResolver:
        """Returns a resolver; a TPU that JAX finds is connected."""
        return cls(tpu, zone, project)

    def cluster_spec(self) -> ClusterSpec:
        """Returns an empty cluster: the TPUs belong to this process."""
        return ClusterSpec({})

    @property
    def environment(self) -> str:
        """Empty: JAX knows where it runs."""
        return ""
