"""The cache of compiled programs on disk, through JAX's persistent compilation cache.

A second process that compiles the same programs reads the executables instead. JAX's own settings
take precedence: `JAX_COMPILATION_CACHE_DIR` selects another directory, and
`JAX_ENABLE_COMPILATION_CACHE=false` disables the cache.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import platform
import stat
from pathlib import Path
from typing import Any

MAX_BYTES = 1 << 30  # JAX removes the executables that were not used for the longest time


@functools.cache
def enable_compilation_cache(jax: Any) -> Path | None:
    """Lets JAX keep executables in the user's cache directory.

    Returns the directory, or `None` if the user has configured JAX, if `filelock`, which bounds the
    size, is not installed, or if another user could write to the directory.
    """
    config = jax.config
    if config.jax_compilation_cache_dir is not None or not config.jax_enable_compilation_cache:
        return None
    directory = _cache_directory()
    if importlib.util.find_spec("filelock") is None or not _is_private(directory):
        return None
    config.update("jax_compilation_cache_max_size", MAX_BYTES)
    config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    config.update("jax_compilation_cache_dir", str(directory))
    from jax.experimental.compilation_cache import compilation_cache

    compilation_cache.reset_cache()  # JAX reads the directory only before its first compilation
    return directory


def _cache_directory() -> Path:
    """Returns a directory for executables of this processor, below the user's cache directory."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    processor = f"{platform.machine()} {_processor_features()}"
    digest = hashlib.sha256(processor.encode()).hexdigest()[:16]
    return Path(base, "retrograde", "xla", digest)


def _processor_features() -> str:
    """Returns the instruction sets of the processor. A home directory can have several hosts."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return platform.processor()


def _is_private(directory: Path) -> bool:
    """Creates the directory, and returns whether only this user can write to it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):
        return True
    writable_by_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid == os.getuid() and not writable_by_others and os.access(directory, os.W_OK)
