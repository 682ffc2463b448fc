"""Describes this machine, for the report."""

import os
import platform
from pathlib import Path


def properties():
    return {
        "Processor": f"{processor()}, {usable_cores()} of {os.cpu_count()} cores used",
        "Memory": f"{memory_gigabytes():.0f} GB",
        "Load before the run": f"{busy_cores():.1f} cores busy",
        "System": system(),
        "Python": platform.python_version(),
    }


def processor():
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def usable_cores():
    """Returns the number of cores this process and its children may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def limit_cores(count):
    """Restricts this process and its children to the first `count` usable cores."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def busy_cores():
    """Returns how many cores were busy over the last minute."""
    return os.getloadavg()[0]


def memory_gigabytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def system():
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    return f"{name}, kernel {platform.release()}, {platform.machine()}"
