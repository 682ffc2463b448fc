"""Atomic file replacement: a kill, a full disk or a second writer never corrupts a file.

New content is written to a private directory next to its destination, `.retrograde-tmp/TOKEN`,
flushed to disk and renamed into place. A lock file, `.retrograde-tmp/TOKEN.lock`, is locked while
its writer lives. The operating system releases the lock when the process ends for any reason, so
the next writer can detect the files of a dead one and remove them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from typing import IO, Any

from retrograde.values.errors import ResourceExhaustedError

try:
    import fcntl
except ImportError:  # on Windows, where files of dead writers are not removed
    fcntl = None  # type: ignore[assignment]

STAGING = ".retrograde-tmp"
TOKEN = "[0-9a-f]{16}"
_LOCK = ".lock"
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Error numbers in messages of safetensors and HDF5, which do not set `errno`.
_QUOTED_NUMBER = re.compile(r"\(os error (\d+)\)|\berrno = (\d+)")


class Staging:
    """A private directory for files that will be renamed into `directory`.

    `token` is unique, and `path` is the private directory. `close` removes it.
    """

    def __init__(self, directory: str) -> None:
        self._directory, self._parent = directory, os.path.join(directory, STAGING)
        remove_leftovers(directory)
        self.token, self._lock = _new_lock(self._parent)
        self.path = os.path.join(self._parent, self.token)
        try:
            os.mkdir(self.path)
        except BaseException:
            self.close()
            raise

    def move(self, name: str, new_name: str | None = None) -> None:
        """Renames a complete file or directory into place. Replaces an existing one."""
        new = os.path.join(self._directory, new_name or name)
        os.replace(os.path.join(self.path, name), new)

    def close(self) -> None:
        """Removes the directory, then its lock, which protects the directory."""
        _remove(self.path)
        _remove(self.path + _LOCK)
        _unlock(self._lock)
        with contextlib.suppress(OSError):  # another writer uses it
            os.rmdir(self._parent)

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _new_lock(parent: str) -> tuple[str, IO]:
    """Returns a new token and its locked file."""
    while True:
        token = os.urandom(8).hex()
        path = os.path.join(parent, token + _LOCK)
        with contextlib.suppress(FileExistsError):
            os.mkdir(parent)
        try:
            file = open(path, "xb")  # noqa: SIM115 (`close` closes it)
        except FileNotFoundError:
            if not os.path.isdir(os.path.dirname(parent)):
                raise
            continue  # another writer has just removed the directory
        if _try_lock(file) is not False and _is_same_file(file, path):
            return token, file
        file.close()  # another process mistook it for the lock of a dead writer


def _try_lock(file: IO) -> bool | None:
    """Tries to lock a file. Returns `None` if the file system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _unlock(file: IO) -> None:
    """Unlocks and closes a file. Closing alone is not enough if a forked child has it open."""
    if fcntl is not None and not file.closed:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)
    file.close()


def _is_same_file(file: IO, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _remove(path: str) -> None:
    """Removes a file or directory. Another process may do the same concurrently."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.remove(path)


def remove_leftovers(directory: str) -> None:
    """Removes the temporary files of dead writers in a directory."""
    parent = os.path.join(directory, STAGING)
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for name in names:
        match = re.fullmatch(f"({TOKEN}){re.escape(_LOCK)}", name)
        if match:
            _remove_if_dead(parent, match[1])
    with contextlib.suppress(OSError):  # another writer uses it
        os.rmdir(parent)


def _remove_if_dead(parent: str, token: str) -> bool:
    """Removes the temporary files of a writer if it is dead. Returns whether it is dead."""
    path = os.path.join(parent, token)
    try:
        file = open(path + _LOCK, "rb+")  # noqa: SIM115 (`_unlock` closes it)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        if not _try_lock(file):
            return False
        _remove(path)
        _remove(path + _LOCK)
        return True
    finally:
        _unlock(file)


def remove_superseded(directory: str, pattern: str, current: Callable[[], Any]) -> None:
    """Removes content of a directory that its index does not refer to.

    Names of content match `pattern`, a regular expression with one group, the token of the
    writer. `current()` returns the name in the index. Content of a live writer is kept, because
    the writer may be about to update the index.
    """
    parent = os.path.join(directory, STAGING)
    names = [(name, re.fullmatch(pattern, name)) for name in sorted(os.listdir(directory))]
    dead = [name for name, match in names if match and _remove_if_dead(parent, match[1])]
    in_use = current() if dead else None  # read after the writers ended
    for name in dead:
        if name != in_use:
            path = os.path.join(directory, name)
            _remove(path)


@contextlib.contextmanager
def lock_directory(directory: str) -> Iterator[None]:
    """Locks a directory across processes, if the file system supports it."""
    with contextlib.ExitStack() as stack:
        if fcntl is not None:
            descriptor = os.open(directory, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            with contextlib.suppress(OSError):  # some network file systems lock files only
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                stack.callback(fcntl.flock, descriptor, fcntl.LOCK_UN)
        yield


# Single files


def replace_file(path: str, write: Callable[[str], Any], flush: bool = True) -> None:
    """Calls `write(temporary)` and renames the temporary file to `path`.

    If the process is killed at any time, `path` has its old or its new content. If two processes
    write concurrently, the last one to finish wins. A full disk raises a
    `ResourceExhaustedError`. The temporary file has the same name in another directory. Without
    `flush`, a crash of the machine can lose the new content.
    """
    path = os.path.realpath(path)  # replaces the target of a symlink, not the symlink
    directory, name = os.path.split(path)
    with full_disk_as_resource_exhausted(path), Staging(directory) as staging:
        temporary = os.path.join(staging.path, name)
        write(temporary)
        os.chmod(temporary, _mode(path, staging.path))
        if flush:
            sync(temporary)
        staging.move(name)
        if flush:
            sync_directory(directory)


def _mode(path: str, directory: str) -> int:
    """Returns the permissions of the replaced file, or the default permissions of a new one."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return os.stat(directory).st_mode & 0o666


def replace_or_write(path: str, write: Callable[[str], Any], flush: bool = True) -> None:
    """Replaces a file atomically if possible; otherwise calls `write(path)`.

    Pipes, devices, mount points and files in read-only directories cannot be replaced.
    """
    if _can_replace(path):
        try:
            replace_file(path, write, flush)
            return
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.EXDEV):
                raise
    write(path)


def _can_replace(path: str) -> bool:
    """Returns whether `path` is a writable regular file or missing, in a writable directory."""
    path = os.path.realpath(path)
    try:
        replaceable = stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.W_OK)
    except FileNotFoundError:
        replaceable = True
    except OSError:
        return False
    return replaceable and os.access(os.path.dirname(path), os.W_OK | os.X_OK)


def write_bytes(path: str, content: bytes) -> None:
    """Writes a new file and flushes it to disk."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync(path: str) -> None:
    """Flushes a file to disk."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def sync_directory(path: str) -> None:
    """Flushes the entries of a directory to disk."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Full disks


@contextlib.contextmanager
def full_disk_as_resource_exhausted(path: str) -> Iterator[None]:
    """Converts errors from a full disk, quota or size limit to `ResourceExhaustedError`."""
    try:
        yield
    except Exception as error:
        number = error_number(error)
        if number not in _DISK_FULL:
            raise
        raise ResourceExhaustedError(
            None,
            None,
            f"Cannot write {path}: {os.strerror(number)}. The previous content, if any, is "
            "unchanged. Free disk space or write to another disk.",
        ) from error


def is_disk_full(error: OSError) -> bool:
    """Returns whether an error means that the disk is full or a quota or limit is reached."""
    return error.errno in _DISK_FULL


def error_number(error: BaseException | None) -> int | None:
    """Returns the `errno` of an error, from its message or cause if necessary."""
    while error is not None:
        if isinstance(error, OSError) and error.errno is not None:
            return error.errno
        match = _QUOTED_NUMBER.search(str(error))
        if match:
            return int(match[1] or match[2])
        error = error.__cause__ or error.__context__
    return None
