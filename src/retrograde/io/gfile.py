"""tf.io.gfile: TensorFlow's functions for files and directories."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

from retrograde._api.lazy import from_all
from retrograde.files.atomic import replace_or_write
from retrograde.io.files import glob_paths, tensorflow_errors, to_tensorflow_error
from retrograde.values.arguments import as_text, brief, expect
from retrograde.values.errors import AlreadyExistsError, NotFoundError, OutOfRangeError, invalid

__all__ = [
    "GFile",
    "copy",
    "exists",
    "get_registered_schemes",
    "glob",
    "isdir",
    "join",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]

__getattr__, __dir__ = from_all(__name__)

_MODES = ("r", "w", "a", "r+", "w+", "a+")


class FileStatistics(NamedTuple):
    """The length in bytes and modification time of a file, and whether it is a directory."""

    length: int
    mtime_nsec: int
    is_directory: bool


def _name(path: Any) -> str:
    name = os.fspath(path)
    return name.decode() if isinstance(name, bytes) else name


class GFile:
    """A file object for text, or for bytes if the mode contains "b".

    The file is opened when it is first used, as in TensorFlow.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with tf.io.gfile.GFile(f"{folder}/a.txt", "w") as file:
    ...         file.write("one\\ntwo\\n")
    ...     tf.io.gfile.GFile(f"{folder}/a.txt").readlines()
    ['one\\n', 'two\\n']
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        if expect(mode, str, "GFile", "a mode such as 'r'").replace("b", "") not in _MODES:
            raise invalid("mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'")
        self._name, self._mode = _name(name), mode
        self._file: Any = None

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode of the file."""
        return self._mode

    def _open(self) -> Any:
        if self._file is None:
            text = {} if "b" in self._mode else {"encoding": "utf-8", "newline": ""}
            with tensorflow_errors(self._name):
                self._file = open(self._name, self._mode, **text)  # noqa: SIM115 (closed by `close`)
        return self._file

    def size(self) -> int:
        """Returns the length in bytes."""
        return stat(self._name).length

    def read(self, n: int = -1) -> Any:
        """Returns the next `n` characters or bytes, or all that remain."""
        file = self._open()
        with tensorflow_errors(self._name):
            try:
                return file.read(n)
            except OverflowError:
                raise OutOfRangeError(None, None, f"read: {brief(n)} is too large.") from None

    def readline(self) -> Any:
        """Returns the next line, including its line ending."""
        file = self._open()
        with tensorflow_errors(self._name):
            return file.readline()

    def readlines(self) -> list:
        """Returns all remaining lines."""
        file = self._open()
        with tensorflow_errors(self._name):
            return file.readlines()

    def write(self, file_content: Any) -> None:
        """Writes text or bytes; encodes or decodes it if necessary."""
        content_type = bytes if "b" in self._mode else str
        if isinstance(file_content, str) and content_type is bytes:
            file_content = file_content.encode()
        elif isinstance(file_content, bytes) and content_type is str:
            file_content = file_content.decode()
        file = self._open()
        with tensorflow_errors(self._name):
            file.write(file_content)

    def seek(self, offset: int, whence: int = 0) -> None:
        """Moves to a position relative to the start, the current position or the end."""
        if offset < 0 and not whence:
            raise OutOfRangeError(
                None, None, f"seek: {as_text(offset)} is before the start of the file."
            )
        file = self._open()
        with tensorflow_errors(self._name):
            try:
                file.seek(offset, whence)
            except OverflowError:
                message = f"seek: {brief(offset)} is not a valid file position."
                raise OutOfRangeError(None, None, message) from None

    def tell(self) -> int:
        """Returns the current position."""
        return self._open().tell()

    def seekable(self) -> bool:
        """Returns `True`."""
        return True

    def flush(self) -> None:
        """Flushes the buffer to the operating system."""
        if self._file is not None:
            with tensorflow_errors(self._name):
                self._file.flush()

    def close(self) -> None:
        """Closes the file. It is reopened if it is used again."""
        if self._file is not None:
            file, self._file = self._file, None
            with tensorflow_errors(self._name):
                file.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:  # missing if the mode was invalid
            self._file.close()

    def next(self) -> Any:
        """Returns the next line. Raises `StopIteration` at the end."""
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    __next__ = next

    def __iter__(self) -> GFile:
        return self

    def __enter__(self) -> GFile:
        if self._mode[0] != "r":
            self._open()  # creates the file even if nothing is written
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def exists(path: Any) -> bool:
    """Returns whether a file or directory exists."""
    return os.path.exists(_name(path))


def isdir(path: Any) -> bool:
    """Returns whether `path` is a directory."""
    return os.path.isdir(_name(path))


def listdir(path: Any) -> list[str]:
    """Returns the names in a directory."""
    if not isdir(path):
        raise NotFoundError(None, None, f"Could not find directory {_name(path)}")
    return os.listdir(_name(path))


def glob(pattern: Any) -> list[str]:
    """Returns the paths that match one or several patterns."""
    patterns = [pattern] if isinstance(pattern, (str, bytes, os.PathLike)) else pattern
    return [path for each in patterns for path in sorted(glob_paths(_name(each)))]


def join(path: Any, *paths: Any) -> str:
    """Joins the parts of a path."""
    return os.path.join(_name(path), *map(_name, paths))


def mkdir(path: Any) -> None:
    """Creates a directory. The parent must exist; the directory may exist."""
    with tensorflow_errors(_name(path)):
        if not isdir(path):
            os.mkdir(_name(path))


def makedirs(path: Any) -> None:
    """Creates a directory and its missing parents."""
    with tensorflow_errors(_name(path)):
        os.makedirs(_name(path), exist_ok=True)


def remove(path: Any) -> None:
    """Removes a file."""
    with tensorflow_errors(_name(path)):
        os.remove(_name(path))


def rmtree(path: Any) -> None:
    """Removes a directory and its content."""
    with tensorflow_errors(_name(path)):
        shutil.rmtree(_name(path))


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file. An existing file is replaced atomically."""
    _check_overwrite(dst, overwrite)
    with tensorflow_errors(_name(src)):
        replace_or_write(_name(dst), lambda path: shutil.copyfile(_name(src), path), flush=False)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Renames a file."""
    _check_overwrite(dst, overwrite)
    with tensorflow_errors(_name(src)):
        os.replace(_name(src), _name(dst))


def _check_overwrite(path: Any, overwrite: bool) -> None:
    if not overwrite and exists(path):
        raise AlreadyExistsError(
            None, None, f"{_name(path)} already exists. Pass overwrite=True to replace it."
        )


def stat(path: Any) -> FileStatistics:
    """Returns the statistics of a file."""
    with tensorflow_errors(_name(path)):
        status = os.stat(_name(path))
    return FileStatistics(status.st_size, status.st_mtime_ns, isdir(path))


def walk(
    top: Any, topdown: bool = True, onerror: Callable[[Any], Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields the path, the directories and the files of each directory below `top`."""

    def report_error(error: OSError) -> None:
        if onerror is not None:
            onerror(to_tensorflow_error(error, error.filename))

    yield from os.walk(_name(top), topdown, report_error)


def get_registered_schemes() -> list[str]:
    """Returns the supported URL schemes: only local paths, without a scheme."""
    return [""]
