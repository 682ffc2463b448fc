"""The number of processors that this process may use."""

from __future__ import annotations

import math
import os
from functools import cache


def processors() -> int:
    """Returns the number of processors that the CPU affinity and a container quota allow."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    return int(max(1, min(allowed, quota())))


@cache
def quota(root: str = "/") -> float:
    """Returns the CPU quota of the control groups (cgroups) of this process, in processors.

    A container shows all processors of its host, but throttles a process that exceeds its quota.
    The files, below `root`, are read once.
    """
    share = min([_quota_of(os.path.join(root, path)) for path in _groups(root)], default=math.inf)
    return share if math.isinf(share) else math.ceil(share)


def _groups(root: str) -> list[str]:
    """Returns the directories of the control groups of this process and of their parents."""
    try:
        with open(os.path.join(root, "proc/self/cgroup"), encoding="utf-8") as file:
            lines = [line.strip().split(":", 2) for line in file]
    except (OSError, ValueError):
        return []
    paths = []
    for parts in lines:
        if len(parts) != 3 or not ("cpu" in parts[1].split(",") or parts[:2] == ["0", ""]):
            continue
        top = "sys/fs/cgroup" if parts[:2] == ["0", ""] else "sys/fs/cgroup/cpu"
        names = [name for name in parts[2].split("/") if name not in ("", ".", "..")]
        paths += [os.path.join(top, *names[:i]) for i in range(len(names) + 1)]
    return paths


def _quota_of(group: str) -> float:
    """Returns the CPU quota of a control group, in processors."""
    try:
        if os.path.exists(os.path.join(group, "cpu.max")):
            quota, period = _words(group, "cpu.max")
        else:
            (quota,), (period,) = (_words(group, f"cpu.cfs_{n}_us") for n in ("quota", "period"))
        return float(quota) / float(period) if float(quota) > 0 else math.inf
    except (OSError, ValueError, ZeroDivisionError):  # no such file, or "max"
        return math.inf


def _words(group: str, name: str) -> list[str]:
    with open(os.path.join(group, name), encoding="utf-8") as file:
        return file.read().split()
