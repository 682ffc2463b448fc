"""Files that are replaced as a whole: a kill, a full disk or a second writer never tears one.

New content is prepared in a private directory next to its destination, `.retrograde-tmp/TOKEN`,
flushed to the disk and renamed into place. A lock file, `.retrograde-tmp/TOKEN.lock`, is locked
while its writer lives. The operating system releases the lock when the process ends in any way, so
the next writer can tell what a dead one left behind and removes it.
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
except ImportError:  # on Windows, where leftovers of dead writers stay
    fcntl = None  # type: ignore[assignment]

STAGING = ".retrograde-tmp"
TOKEN = "[0-9a-f]{16}"
_LOCK = ".lock"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# The numbers of errors in messages of safetensors and of HDF5, which have no other place for them.
_NUMBER = re.compile(r"\(os error (\d+)\)|\berrno = (\d+)")


class Staging:
    """A private directory in `directory`, for files that are going to be renamed into it.

    `token` is unique, and `path` is where the files are made. `close` removes what is left.
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
        """Renames a file or directory that is complete into place, over one that is there."""
        new = os.path.join(self._directory, new_name or name)
        os.replace(os.path.join(self.path, name), new)

    def close(self) -> None:
        """Removes the directory and its lock. The lock goes last: it protects the directory."""
        _remove(self.path)
        _remove(self.path + _LOCK)
        _unlock(self._lock)
        with contextlib.suppress(OSError):  # another writer is at work
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
            continue  # the last writer removed the directory just now
        if _locked(file) is not False and _is_at(file, path):
            return token, file
        file.close()  # another process took it for one of a dead writer


def _locked(file: IO) -> bool | None:
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
    """Unlocks and closes a file. A child that was forked meanwhile may still hold it open."""
    if fcntl is not None and not file.closed:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)
    file.close()


def _is_at(file: IO, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _remove(path: str) -> None:
    """Removes a file or a directory. Another process may be doing the same."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.remove(path)


def remove_leftovers(directory: str) -> None:
    """Removes the temporaries that dead writers left in a directory."""
    parent = os.path.join(directory, STAGING)
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for name in names:
        match = re.fullmatch(f"({TOKEN}){re.escape(_LOCK)}", name)
        if match:
            _reap(parent, match[1])
    with contextlib.suppress(OSError):  # another writer is at work
        os.rmdir(parent)


def _reap(parent: str, token: str) -> bool:
    """Removes the temporaries of one writer if it is dead. Returns whether it is not alive."""
    path = os.path.join(parent, token)
    try:
        file = open(path + _LOCK, "rb+")  # noqa: SIM115 (`_unlock` closes it)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        if not _locked(file):
            return False
        _remove(path)
        _remove(path + _LOCK)
        return True
    finally:
        _unlock(file)


def remove_superseded(directory: str, pattern: str, current: Callable[[], Any]) -> None:
    """Removes content of a directory that its index does not name.

    Names of content match `pattern`, a regular expression whose one group is the token of the
    writer. `current()` returns the name in the index. Content of a writer that is still alive
    stays, since the writer may be about to name it in the index.
    """
    parent = os.path.join(directory, STAGING)
    names = [(name, re.fullmatch(pattern, name)) for name in sorted(os.listdir(directory))]
    dead = [name for name, match in names if match and _reap(parent, match[1])]
    in_use = current() if dead else None  # read after the writers ended
    for name in dead:
        if name != in_use:
            path = os.path.join(directory, name)
            _remove(path)


@contextlib.contextmanager
def exclusive(directory: str) -> Iterator[None]:
    """A block that one process at a time runs for a directory, where directories can be locked."""
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
    """Puts a file at `path` that `write(temporary)` makes, once all of it is on the disk.

    Whenever the process is killed, `path` has its old or its new content. Of two processes that
    write at a time, the last one to finish wins. A full disk raises a `ResourceExhaustedError`.
    The temporary file has the same name, in another directory. Without `flush`, only a crash of
    the whole machine can lose the new content.
    """
    path = os.path.realpath(path)  # the target of a link is replaced, not the link
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
    """The permissions of the file that is replaced, or those that the umask gives a new one."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return os.stat(directory).st_mode & 0o666


def replace_or_write(path: str, write: Callable[[str], Any], flush: bool = True) -> None:
    """Replaces a file as a whole if it can be, and otherwise lets `write(path)` write in place.

    Pipes, devices and files that are mounted cannot be replaced, nor can those in directories that
    take no new files.
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
    """Whether `path` is a regular file or no file yet, in a directory that takes new files."""
    path = os.path.realpath(path)
    try:
        replaceable = stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.W_OK)
    except FileNotFoundError:
        replaceable = True
    except OSError:
        return False
    return replaceable and os.access(os.path.dirname(path), os.W_OK | os.X_OK)


def write_bytes(path: str, content: bytes) -> None:
    """Writes a new file and flushes it to the disk."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync(path: str) -> None:
    """Flushes a file to the disk."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def sync_directory(path: str) -> None:
    """Flushes the names in a directory to the disk."""
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
    """A block in which an error from a full disk, a quota or a limit is TensorFlow's class."""
    try:
        yield
    except Exception as error:
        number = error_number(error)
        if number not in _FULL:
            raise
        raise ResourceExhaustedError(
            None,
            None,
            f"Cannot write {path}: {os.strerror(number)}. Its previous content, if any, "
            "is "
            "unchanged. Free space there, or write to another disk.",
        ) from error


def is_full(error: OSError) -> bool:
    """Whether an error says that a disk is full, or that a quota or a limit is reached."""
    return error.errno in _FULL


def error_number(error: BaseException | None) -> int | None:
    """The number of the operating system's error that `error` is, quotes, or was caused by."""
    while error is not None:
        if isinstance(error, OSError) and error.errno is not None:
            return error.errno
        quoted = _NUMBER.search(str(error))
        if quoted:
            return int(quoted[1] or quoted[2])
        error = error.__cause__ or error.__context__
    return None
