"""ClusterSpec: the jobs of a cluster and the network addresses of their tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrograde.values.arguments import shown


class ClusterSpec:
    """The jobs of a cluster and the network addresses of their tasks.

    `cluster` maps job names to lists of addresses, or to dicts from task indices to addresses.

    >>> spec = tf.train.ClusterSpec({"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]})
    >>> spec.num_tasks("worker"), spec.task_address("worker", 1)
    (2, '10.0.0.2:2222')
    """

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, ClusterSpec):
            cluster = cluster._jobs
        if not isinstance(cluster, Mapping):
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network "
                f"addresses, or a `ClusterSpec`. Received: {shown(cluster)}."
            )
        self._jobs = {str(job): _tasks(job, tasks) for job, tasks in sorted(cluster.items())}

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    __hash__ = None

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"

    def as_dict(self) -> dict[str, Any]:
        """Returns a dict from job names to lists, or to dicts if task indices have gaps."""
        return {
            job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """Returns the number of tasks of a job."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Returns the sorted task indices of a job."""
        return list(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Returns the address of a task."""
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}.")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Returns the addresses of a job by task index, with `None` for missing indices."""
        tasks = self._job(job_name)
        return [tasks.get(i) for i in range(max(tasks, default=-1) + 1)]

    def _job(self, name: str) -> dict[int, str]:
        if name not in self._jobs:
            raise ValueError(f"No such job in cluster: {name!r}.")
        return self._jobs[name]


def _tasks(job: Any, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, Mapping):
        addresses = {int(index): address for index, address in sorted(tasks.items())}
    elif isinstance(tasks, (list, tuple)):
        addresses = dict(enumerate(tasks))
    else:
        raise TypeError(
            f"The tasks of job {job!r} must be a list or a dictionary. Received: {shown(tasks)}."
        )
    for address in addresses.values():
        if not isinstance(address, str):
            raise TypeError(
                f"The addresses of job {job!r} must be strings. Received: {shown(address)}."
            )
    return addresses
