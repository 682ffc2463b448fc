"""The number of available processors, from the affinity and control group quotas."""

import math
import os

import pytest

from retrograde.fusion import blocks, processors

V2 = {"proc/self/cgroup": "0::/pod/task\n"}
V1 = {"proc/self/cgroup": "12:memory:/pod\n5:cpu,cpuacct:/pod\n"}
CASES = {
    "no files": ({}, math.inf),
    "no limit": (V2 | {"sys/fs/cgroup/pod/cpu.max": "max 100000\n"}, math.inf),
    "two processors": (V2 | {"sys/fs/cgroup/pod/task/cpu.max": "200000 100000\n"}, 2),
    "one and a half": (V2 | {"sys/fs/cgroup/pod/cpu.max": "150000 100000\n"}, 2),
    "parent group": (
        V2
        | {
            "sys/fs/cgroup/pod/task/cpu.max": "800000 100000\n",
            "sys/fs/cgroup/cpu.max": "50000 100000\n",
        },
        1,
    ),
    "cgroup v1": (
        V1
        | {
            "sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us": "400000\n",
            "sys/fs/cgroup/cpu/pod/cpu.cfs_period_us": "100000\n",
        },
        4,
    ),
    "cgroup v1 without a limit": (
        V1
        | {
            "sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/pod/cpu.cfs_period_us": "100000\n",
        },
        math.inf,
    ),
    "malformed": (V2 | {"sys/fs/cgroup/pod/cpu.max": "a b c\n"}, math.inf),
}


@pytest.mark.parametrize(("files", "expected"), CASES.values(), ids=CASES)
def test_quotas_of_control_groups(tmp_path, files, expected):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    assert processors.quota(str(tmp_path)) == expected


@pytest.mark.parametrize(("share", "expected"), [(1, 1), (2, 2), (math.inf, 3)])
def test_the_smaller_of_affinity_and_quota_is_used(monkeypatch, share, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr(processors, "quota", lambda: share)

    assert processors.processors() == expected
    assert blocks.threads() == expected
