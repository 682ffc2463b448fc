"""The state file `checkpoint`, which lists the checkpoints of a directory."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from retrograde.files.atomic import replace_file, write_bytes
from retrograde.files.checked_json import parse_json
from retrograde.train._files import CheckpointReader, exists
from retrograde.values.arguments import expect
from retrograde.values.errors import DataLossError

_FILE = "checkpoint"
_LINE = re.compile(r'^(\w+): (".*"|[-+.\w]+)$', re.MULTILINE)
_CHECKSUM = "# CRC-32: "  # a comment in the format of the file


@dataclasses.dataclass
class CheckpointState:
    """The latest checkpoint and all that are kept, oldest first."""

    model_checkpoint_path: str = ""
    all_model_checkpoint_paths: list[str] = dataclasses.field(default_factory=list)
    all_model_checkpoint_timestamps: list[float] = dataclasses.field(default_factory=list)
    last_preserved_timestamp: float | None = None

    def __str__(self) -> str:
        lines = []
        for name, value in vars(self).items():
            values = value if isinstance(value, list) else [] if value is None else [value]
            lines += [f"{name}: {json.dumps(item)}\n" for item in values]
        return "".join(lines)


def update_state(
    directory: str,
    latest: str,
    paths: Sequence[str],
    timestamps: Sequence[float] = (),
    last_preserved: float | None = None,
) -> None:
    """Writes the state file. Paths inside the directory are relative."""
    state = CheckpointState(
        _relative(latest, directory),
        [_relative(path, directory) for path in paths],
        list(timestamps),
        last_preserved,
    )

    text = f"{state}{_CHECKSUM}{_checksum(str(state))}\n".encode()
    replace_file(os.path.join(directory, _FILE), lambda temporary: write_bytes(temporary, text))


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _relative(path: str, directory: str) -> str:
    return os.path.basename(path) if os.path.dirname(path) == directory else os.path.abspath(path)


def get_checkpoint_state(
    checkpoint_dir: Any, latest_filename: str | None = None
) -> CheckpointState | None:
    """Returns the checkpoint state of a directory, or `None` if there is no state file.

    Raises `DataLossError` if the file is corrupt.
    """
    directory = os.fspath(checkpoint_dir)
    path = os.path.join(directory, latest_filename or _FILE)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:  # does not exist
        return None
    values = _parse(content, path)
    return CheckpointState(
        os.path.join(directory, values["model_checkpoint_path"][0]),
        [os.path.join(directory, path) for path in values.get("all_model_checkpoint_paths", ())],
        values.get("all_model_checkpoint_timestamps", []),
        *values.get("last_preserved_timestamp", [])[:1],
    )


def _parse(content: bytes, path: str) -> dict[str, list]:
    """Parses a state file. Returns the values by name."""
    try:
        text, has_checksum, checksum = content.decode().rpartition(_CHECKSUM)
        if has_checksum and checksum != _checksum(text) + "\n":
            raise ValueError
        text = text if has_checksum else checksum
        values: dict[str, list] = {}
        for name, value in _LINE.findall(text):
            values.setdefault(name, []).append(parse_json(value, name))
        latest = os.path.join(os.path.dirname(path), values["model_checkpoint_path"][0])
        if not has_checksum and not os.path.exists(
            f"{latest}.index"
        ):  # TensorFlow writes no checksum
            raise ValueError
    except (DataLossError, KeyError, TypeError, ValueError):
        raise DataLossError(
            None,
            None,
            f"Cannot read {path} as a checkpoint state file: it is corrupt, or its checksum is "
            "missing or wrong. Delete it and pass the checkpoint path to restore.",
        ) from None
    return values


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """Returns the path of the latest checkpoint in a directory, or `None`."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not exists(state.model_checkpoint_path):
        return None
    return state.model_checkpoint_path


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """Returns a reader of a checkpoint, or of the latest checkpoint in a directory."""
    path = os.fspath(ckpt_dir_or_file)
    return CheckpointReader(latest_checkpoint(path) or path)


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Returns the names and shapes of all values in a checkpoint."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """Returns one value of a checkpoint as an array.

    >>> import tempfile
    >>> path = tf.train.Checkpoint(v=tf.Variable(3.0)).write(tempfile.mkdtemp() + "/a")
    >>> tf.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE")
    np.float32(3.0)
    """
    expect(name, str, "load_variable: name", "a string")
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], Any] | None = None,
) -> Iterator[str]:
    """Yields the latest checkpoint of a directory each time a new one appears.

    It ends after `timeout` seconds without a new checkpoint, unless `timeout_fn` is given and
    returns a false value.
    """
    previous = None
    while True:
        latest = _wait_for_new(checkpoint_dir, previous, timeout)
        if latest is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        start_time = time.monotonic()
        previous = latest
        yield latest
        time.sleep(max(0.0, start_time + min_interval_secs - time.monotonic()))


def _wait_for_new(directory: Any, previous: str | None, timeout: float | None) -> str | None:
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        latest = latest_checkpoint(directory)
        if latest not in (None, previous):
            return latest
        remaining = 1.0 if end is None else end - time.monotonic()
        if remaining <= 0:
            return None
        time.sleep(min(remaining, 1.0))
