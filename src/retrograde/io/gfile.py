"""tf.io.gfile: files and folders, by the names that TensorFlow has for what Python can do."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

from retrograde._api.lazy import from_all
from retrograde.files.atomic import replace_or_write
from retrograde.io.files import as_tensorflow, matching
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
    """What is known of a file: its length in bytes, when it changed, whether it is a folder."""

    length: int
    mtime_nsec: int
    is_directory: bool


@contextlib.contextmanager
def _tensorflows_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise as_tensorflow(error, path) from error


def _name(path: Any) -> str:
    name = os.fspath(path)
    return name.decode() if isinstance(name, bytes) else name


class GFile:
    """An open file, of text, or of bytes if the mode has a "b" in it.

    It is opened when it is first used, as TensorFlow's is.

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
        """The name it was opened with."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode it was opened in."""
        return self._mode

    def _opened(self) -> Any:
        if self._file is None:
            text = {} if "b" in self._mode else {"encoding": "utf-8", "newline": ""}
            with _tensorflows_errors(self._name):
                self._file = open(self._name, self._mode, **text)  # noqa: SIM115 (closed by `close`)
        return self._file

    def size(self) -> int:
        """The length in bytes."""
        return stat(self._name).length

    def read(self, n: int = -1) -> Any:
        """The next `n` characters or bytes, or all that are left."""
        file = self._opened()
        with _tensorflows_errors(self._name):
            try:
                return file.read(n)
            except OverflowError:
                raise OutOfRangeError(None, None, f"read: {brief(n)} is too large.") from None

    def readline(self) -> Any:
        """The next line, with its end."""
        file = self._opened()
        with _tensorflows_errors(self._name):
            return file.readline()

    def readlines(self) -> list:
        """All lines that are left."""
        file = self._opened()
        with _tensorflows_errors(self._name):
            return file.readlines()

    def write(self, file_content: Any) -> None:
        """Writes text; strings are encoded for a file of bytes."""
        wanted = bytes if "b" in self._mode else str
        if isinstance(file_content, str) and wanted is bytes:
            file_content = file_content.encode()
        elif isinstance(file_content, bytes) and wanted is str:
            file_content = file_content.decode()
        file = self._opened()
        with _tensorflows_errors(self._name):
            file.write(file_content)

    def seek(self, offset: int, whence: int = 0) -> None:
        """Goes to a position, counted from the start, from here, or from the end."""
        if offset < 0 and not whence:
            raise OutOfRangeError(
                None, None, f"seek: {as_text(offset)} is before the start of the file."
            )
        file = self._opened()
        with _tensorflows_errors(self._name):
            try:
                file.seek(offset, whence)
            except OverflowError:
                message = f"seek: {brief(offset)} is no position in a file."
                raise OutOfRangeError(None, None, message) from None

    def tell(self) -> int:
        """The position."""
        return self._opened().tell()

    def seekable(self) -> bool:
        """True."""
        return True

    def flush(self) -> None:
        """Hands what was written over to the operating system."""
        if self._file is not None:
            with _tensorflows_errors(self._name):
                self._file.flush()

    def close(self) -> None:
        """Closes the file; it is opened anew if it is used again."""
        if self._file is not None:
            file, self._file = self._file, None
            with _tensorflows_errors(self._name):
                file.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:  # a wrong mode leaves none
            self._file.close()

    def next(self) -> Any:
        """The next line; `StopIteration` at the end."""
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    __next__ = next

    def __iter__(self) -> GFile:
        return self

    def __enter__(self) -> GFile:
        if self._mode[0] != "r":
            self._opened()  # an empty file is made even if nothing is written
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def exists(path: Any) -> bool:
    """Whether there is a file or a folder of this name."""
    return os.path.exists(_name(path))


def isdir(path: Any) -> bool:
    """Whether there is a folder of this name."""
    return os.path.isdir(_name(path))


def listdir(path: Any) -> list[str]:
    """The names in a folder."""
    if not isdir(path):
        raise NotFoundError(None, None, f"Could not find directory {_name(path)}")
    return os.listdir(_name(path))


def glob(pattern: Any) -> list[str]:
    """The paths that match a pattern, or one of several."""
    patterns = [pattern] if isinstance(pattern, (str, bytes, os.PathLike)) else pattern
    return [path for each in patterns for path in sorted(matching(_name(each)))]


def join(path: Any, *paths: Any) -> str:
    """Parts of a path put together."""
    return os.path.join(_name(path), *map(_name, paths))


def mkdir(path: Any) -> None:
    """Makes a folder, in one that exists; it may be there already."""
    with _tensorflows_errors(_name(path)):
        if not isdir(path):
            os.mkdir(_name(path))


def makedirs(path: Any) -> None:
    """Makes a folder, and those on its way."""
    with _tensorflows_errors(_name(path)):
        os.makedirs(_name(path), exist_ok=True)


def remove(path: Any) -> None:
    """Removes a file."""
    with _tensorflows_errors(_name(path)):
        os.remove(_name(path))


def rmtree(path: Any) -> None:
    """Removes a folder and all in it."""
    with _tensorflows_errors(_name(path)):
        shutil.rmtree(_name(path))


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file. One that is overwritten is replaced as a whole."""
    _refuse_existing(dst, overwrite)
    with _tensorflows_errors(_name(src)):
        replace_or_write(_name(dst), lambda path: shutil.copyfile(_name(src), path), flush=False)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Gives a file another name."""
    _refuse_existing(dst, overwrite)
    with _tensorflows_errors(_name(src)):
        os.replace(_name(src), _name(dst))


def _refuse_existing(path: Any, overwrite: bool) -> None:
    if not overwrite and exists(path):
        raise AlreadyExistsError(None, None, f"{_name(path)} exists. Say overwrite=True.")


def stat(path: Any) -> FileStatistics:
    """Length, time and kind of a file."""
    with _tensorflows_errors(_name(path)):
        found = os.stat(_name(path))
    return FileStatistics(found.st_size, found.st_mtime_ns, isdir(path))


def walk(
    top: Any, topdown: bool = True, onerror: Callable[[Any], Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """All folders below `top`: the path, the folders and the files in each."""

    def said(error: OSError) -> None:
        if onerror is not None:
            onerror(as_tensorflow(error, error.filename))

    yield from os.walk(_name(top), topdown, said)


def get_registered_schemes() -> list[str]:
    """What may stand before `://`: nothing, as there are only files of this machine."""
    return [""]
