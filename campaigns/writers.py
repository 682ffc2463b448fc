"""Writes files under kills, full disks, Control-C, concurrent writers, and flipped bits.

A trial saves a value, injects a fault while it saves the next value, and loads. The result must be
one of the two values, complete. After one more save, no temporary files may remain. Other trials
flip one bit of a file, which loading must detect.

The trials run in a separate process, which has imported everything, has one thread, and forks each
writer.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import errno
import functools
import inspect
import json
import logging
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SHORT = 25

FAULTS = (
    "kill",
    "kill",
    "kill",
    "limit",
    "disk",
    "trace",
    "trace",
    "signal",
    "two",
    "flip",
    "flip",
)
SIZES = (10, 3_000, 100_000)
TIMEOUT = 60  # seconds
ROUNDS = 4  # kills per trial
MEMORY = "/dev/shm"  # flushing is fast there, which allows more trials


def trial(seed: int) -> str | None:
    """Runs one trial in the process that forks the writers."""
    return _server().run(seed)


class _Server:
    def __init__(self) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "campaigns.writers"]
        unshare = shutil.which("unshare")
        if unshare and os.geteuid() == 0:  # the mounts are removed with the process
            private = [unshare, "--mount", "--propagation", "private"]
            if subprocess.run([*private, "true"], capture_output=True).returncode == 0:
                command = [*private, *command]
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        root = pathlib.Path(__file__).resolve().parent.parent
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env=os.environ | threads,
        )
        atexit.register(self._process.stdin.close)

    def run(self, seed: int) -> str | None:
        self._process.stdin.write(f"{seed}\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline()
        if not reply:
            _server.cache_clear()
            return f"The process of the trials ended with {self._process.wait()}."
        return json.loads(reply)


@functools.cache
def _server() -> _Server:
    return _Server()


def _serve() -> None:
    """Runs trials, with seeds from stdin, one per line."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print
    logging.disable(logging.WARNING)  # Keras warns that HDF5 is a legacy format
    for line in sys.stdin:
        try:
            reply = _Trial(int(line)).run()
        except Exception:
            reply = traceback.format_exc()
        output.write(json.dumps(reply) + "\n")
        output.flush()


# Writers


def _parts(value: int, size: int) -> list[np.ndarray]:
    return [np.full(size, value, np.float32), np.full([3, 2], value, np.float64)]


def _only(arrays: Any) -> int:
    """Returns the common value of all elements."""
    values = np.unique(np.concatenate([np.ravel(array).astype(float) for array in arrays]))
    assert len(values) == 1, f"a mixture of {values.tolist()}"
    return int(values[0])


def _checkpoint(value: int, size: int) -> tuple[Any, list]:
    import retrograde as tf

    parts = [tf.Variable(part) for part in _parts(value, size)]
    parts.append(tf.Variable([str(value)] * 3))
    return tf.train.Checkpoint(parts=parts), parts


def _value_of(parts: list) -> int:
    strings = np.asarray([int(text) for text in parts[-1].numpy()])
    return _only([*(part.numpy() for part in parts[:-1]), strings])


def write_checkpoint(path: str, value: int, size: int) -> None:
    _checkpoint(value, size)[0].write(f"{path}/a")


def read_checkpoint(path: str, size: int) -> int:
    checkpoint, parts = _checkpoint(0, size)
    checkpoint.read(f"{path}/a").assert_consumed()
    return _value_of(parts)


def save_checkpoint(path: str, value: int, size: int) -> None:
    _checkpoint(value, size)[0].save(f"{path}/c")


def read_latest(path: str, size: int) -> int:
    import retrograde as tf

    latest = tf.train.latest_checkpoint(path)
    assert latest is not None, "there is no latest checkpoint"
    checkpoint, parts = _checkpoint(0, size)
    checkpoint.restore(latest).assert_existing_objects_matched()
    return _value_of(parts)


def write_managed(path: str, value: int, size: int) -> None:
    import retrograde as tf

    checkpoint, parts = _checkpoint(0, size)
    manager = tf.train.CheckpointManager(checkpoint, path, max_to_keep=2)
    with contextlib.suppress(tf.errors.NotFoundError):  # another writer has just deleted it
        manager.restore_or_initialize()
    for part, new in zip(parts, _parts(value, size), strict=False):
        part.assign(new)
    parts[-1].assign([str(value)] * 3)
    manager.save()


def write_saved_model(path: str, value: int, size: int) -> None:
    import retrograde as tf

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.parts = [tf.Variable(part) for part in _parts(value, size)]
            self.constant = tf.constant(value)

        @tf.function(input_signature=[])
        def total(self):
            return self.parts[0] + float(value) - self.parts[0]

    tf.saved_model.save(Model(), path)


def read_saved_model(path: str, _size: int) -> int:
    import retrograde as tf

    loaded = tf.saved_model.load(path)
    arrays = [part.numpy() for part in loaded.parts]
    return _only([*arrays, loaded.constant.numpy(), loaded.total().numpy()])


def _dataset(value: int, size: int) -> Any:
    import retrograde as tf

    elements = tf.data.Dataset.range(4)
    return elements.map(lambda i: (tf.fill([size], float(value)), tf.fill([2], str(value)), i))


def _value_of_elements(elements: Any) -> int:
    elements = list(elements)
    assert [int(i) for _, _, i in elements] == [0, 1, 2, 3], "elements are missing"
    texts = [np.asarray([int(text) for text in s.numpy()]) for _, s, _ in elements]
    return _only([*(x.numpy() for x, _, _ in elements), *texts])


def write_dataset(path: str, value: int, size: int) -> None:
    _dataset(value, size).save(path, shard_func=lambda _x, _s, i: i // 2 * 0)


def read_dataset(path: str, _size: int) -> int:
    import retrograde as tf

    return _value_of_elements(tf.data.Dataset.load(path))


def write_cache(path: str, value: int, size: int) -> None:
    assert _value_of_elements(_dataset(value, size).cache(f"{path}/{value}")) == value


def read_cache(path: str, _size: int) -> int:
    """Returns the last value with a complete cache. Incomplete caches do not exist."""
    import retrograde as tf

    values = []
    for folder in pathlib.Path(path).glob("[0-9]*"):
        with contextlib.suppress(tf.errors.NotFoundError):
            values.append(_value_of_elements(tf.data.Dataset.load(folder)))
            assert values[-1] == int(folder.name)
    return max(values)


def write_snapshot(path: str, value: int, size: int) -> None:
    assert _value_of_elements(_dataset(value, size).snapshot(f"{path}/{value}")) == value


def read_snapshot(path: str, size: int) -> int:
    values = []
    for folder in pathlib.Path(path).glob("[0-9]*"):
        complete = any(folder.glob("*/dataset.json")) or any(folder.glob("dataset.json"))
        value = _value_of_elements(_dataset(int(folder.name), size).snapshot(str(folder)))
        assert value == int(folder.name)
        values += [value] if complete else []
    return max(values)


def _model(value: int, size: int) -> Any:
    model = _build_model(size)
    model.set_weights([np.full_like(weight, value) for weight in model.get_weights()])
    return model


@functools.cache
def _build_model(size: int) -> Any:
    from retrograde import keras

    width = max(1, size // 100)
    model = keras.Sequential([keras.Input((90,)), keras.layers.Dense(width), keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    return model


def write_keras(path: str, value: int, size: int) -> None:
    _model(value, size).save(f"{path}/m.keras")


def read_keras(path: str, _size: int) -> int:
    from retrograde import keras

    return _only(keras.saving.load_model(f"{path}/m.keras", compile=False).get_weights())


def write_keras_folder(path: str, value: int, size: int) -> None:
    from retrograde import keras

    keras.saving.save_model(_model(value, size), f"{path}/m", zipped=False)


def read_keras_folder(path: str, _size: int) -> int:
    from retrograde import keras

    return _only(keras.saving.load_model(f"{path}/m", compile=False).get_weights())


def write_weights(path: str, value: int, size: int) -> None:
    _model(value, size).save_weights(f"{path}/m.weights.h5")


def read_weights(path: str, size: int) -> int:
    model = _model(0, size)
    model.load_weights(f"{path}/m.weights.h5")
    return _only(model.get_weights())


def write_hdf5(path: str, value: int, size: int) -> None:
    _model(value, size).save(f"{path}/m.h5")


def read_hdf5(path: str, _size: int) -> int:
    from retrograde import keras

    return _only(keras.saving.load_model(f"{path}/m.h5", compile=False).get_weights())


def _backup(path: str, model: Any) -> Any:
    from retrograde import keras

    callback = keras.callbacks.BackupAndRestore(path)
    callback.set_model(model)
    return callback


def write_backup(path: str, value: int, size: int) -> None:
    _backup(path, _model(value, size)).on_epoch_end(value - 1)


def read_backup(path: str, size: int) -> int:
    model = _model(0, size)
    _backup(path, model).on_train_begin()
    return _only([*model.get_weights(), np.asarray(model._initial_epoch)])


def write_summary(path: str, value: int, size: int) -> None:
    import retrograde as tf

    writer = tf.summary.create_file_writer(path, max_queue=value % 3)
    try:
        with writer.as_default(step=value):
            tf.summary.scalar("a", float(value))
            tf.summary.write("b", tf.fill([size], float(value)))
            tf.summary.scalar("c", float(value))
    except BaseException:
        with contextlib.suppress(Exception):  # the disk is full
            writer.close()
        raise
    writer.close()


def read_summary(path: str, _size: int) -> int:
    """Returns the last step with complete summaries. The last record may be truncated."""
    written_steps = set()
    for file in pathlib.Path(path).iterdir():
        data, steps = file.read_bytes(), 0
        while len(data) >= 12:
            (length,) = struct.unpack("<Q", data[:8])
            if len(data) < length + 16:
                break
            content = data[12 : 12 + length]
            assert struct.pack("<I", _masked_crc(data[:8])) == data[8:12], "a length is wrong"
            assert struct.pack("<I", _masked_crc(content)) == data[12 + length : 16 + length]
            data = data[16 + length :]
            steps += 1
            if steps == 4:  # the version of the format, and three summaries
                step = re.search(rb"\x10([\x00-\x7f]|[\x80-\xff][\x00-\x7f])", content[9:])
                written_steps.add(_varint(step[1]))
    return max(written_steps)


def _masked_crc(data: bytes) -> int:
    from retrograde.files.crc32c import masked_crc

    return masked_crc(data)


def _varint(data: bytes) -> int:
    return sum((byte & 127) << 7 * position for position, byte in enumerate(data))


def write_string(path: str, value: int, size: int) -> None:
    import retrograde as tf

    tf.io.write_file(f"{path}/f", _parts(value, size)[0].tobytes())


def read_string(path: str, size: int) -> int:
    import retrograde as tf

    array = np.frombuffer(tf.io.read_file(f"{path}/f").numpy(), np.float32)
    assert len(array) == size, f"{len(array)} of {size} numbers"
    return _only([array])


@dataclasses.dataclass(frozen=True)
class _Kind:
    write: Callable[[str, int, int], None]
    read: Callable[[str, int], int]
    has_checksums: bool = False
    is_replaced: bool = True  # instead of appended to
    is_slow: bool = False  # has too many instructions to trace each of them


KINDS = {
    "checkpoint": _Kind(write_checkpoint, read_checkpoint, True),
    "saved checkpoint": _Kind(save_checkpoint, read_latest, True),
    "manager": _Kind(write_managed, read_latest, True),
    "saved model": _Kind(write_saved_model, read_saved_model, True),
    "dataset": _Kind(write_dataset, read_dataset, True),
    "cache": _Kind(write_cache, read_cache, True, False),
    "snapshot": _Kind(write_snapshot, read_snapshot, True, False),
    "keras": _Kind(write_keras, read_keras, is_slow=True),
    "keras folder": _Kind(write_keras_folder, read_keras_folder, is_slow=True),
    "weights": _Kind(write_weights, read_weights, is_slow=True),
    "hdf5": _Kind(write_hdf5, read_hdf5, is_slow=True),
    "backup": _Kind(write_backup, read_backup, is_slow=True),
    "summary": _Kind(write_summary, read_summary, False, False),
    "string": _Kind(write_string, read_string),
}


# Trials

_seconds: dict[tuple, float] = {}  # the time of one write, by kind and size
_events: dict[tuple, int] = {}  # the number of instructions or lines of one write


class _Failure(Exception):
    pass


class _Trial:
    """A writer and a fault, chosen by the seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.fault = self.rng.choice(FAULTS)
        names = [n for n, kind in KINDS.items() if kind.has_checksums or self.fault != "flip"]
        self.name = self.rng.choice(names)
        self.kind, self.size = KINDS[self.name], self.rng.choice(SIZES)
        self.details = ""

    def run(self) -> str | None:
        with self._folder() as self.path:
            try:
                self._write(1)
                getattr(self, self.fault)()
            except _Failure as error:
                return self._report(str(error))
            except Exception:
                return self._report(traceback.format_exc())
        return None

    @contextlib.contextmanager
    def _folder(self) -> Iterator[str]:
        in_memory = self.rng.random() < 0.75 and os.access(MEMORY, os.W_OK)
        path = tempfile.mkdtemp(prefix="writers-", dir=MEMORY if in_memory else None)
        mounted = False
        if self.fault == "disk":
            mounted = _mount(path)
            self.fault = "disk" if mounted else "limit"
        try:
            yield path
        finally:
            if mounted:
                subprocess.run(["umount", "--lazy", path], capture_output=True)
            shutil.rmtree(path, ignore_errors=True)

    def _report(self, problem: str) -> str:
        files = sorted(str(p.relative_to(self.path)) for p in pathlib.Path(self.path).rglob("*"))
        return (
            f"{self.name}, fault {self.fault!r}, {self.size} numbers. {self.details}\n{problem}\n"
            f"The folder has {files}.\nTo reproduce, inject the fault into a process that calls\n\n"
            f"{inspect.getsource(self.kind.write)}\n"
            f"with the values 1, 2, ... and then load with\n\n{inspect.getsource(self.kind.read)}"
        )

    # Helpers

    def _write(self, value: int) -> None:
        start = time.perf_counter()
        self.kind.write(self.path, value, self.size)
        _seconds[self.name, self.size] = time.perf_counter() - start

    def _read(self, low: int, high: int) -> int:
        try:
            value = self.kind.read(self.path, self.size)
        except Exception:
            raise _Failure(f"cannot read:\n{traceback.format_exc()}") from None
        if not low <= value <= high:
            raise _Failure(f"read {value}, which is not between {low} and {high}")
        return value

    def _finish(self, value: int) -> None:
        """Saves once more, and checks that no temporary files remain."""
        self._write(value)
        self._read(value, value)
        self._check_clean()

    def _check_clean(self) -> None:
        names = [p.name for p in pathlib.Path(self.path).rglob("*")]
        if ".retrograde-tmp" in names:
            raise _Failure("temporary files remain")
        counts = {"saved model": 2, "dataset": 2, "manager": 3, "keras": 1, "checkpoint": 1}
        count = len(os.listdir(self.path))
        if count > counts.get(self.name, count):
            raise _Failure(f"{count} files remain: {sorted(os.listdir(self.path))}")

    def _fork(self, act: Callable[[], int]) -> tuple[int, Any]:
        """Runs `act` in a child. Its result is the exit status; errors are written to a file."""
        report = tempfile.TemporaryFile()  # noqa: SIM115 (the caller reads it)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        pid = os.fork()
        if pid:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            return pid, report
        status = 99
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # errors in destructors are printed
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            status = act()
        except BaseException:
            sys.settrace(None)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            report.write(traceback.format_exc().encode())
            report.flush()
        finally:
            os._exit(status)

    def _wait(self, pid: int, report: Any, *allowed: int, again: int = 0) -> int:
        """Waits until a child ends, and repeatedly sends it the signal `again`."""
        start = sent = time.monotonic()
        while True:
            if again and (sent == start or time.monotonic() > sent + 0.3):
                os.kill(pid, again)
                sent = time.monotonic()
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() > start + TIMEOUT:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise _Failure(f"the writer did not end within {TIMEOUT} seconds")
            time.sleep(0.001)
        code = os.waitstatus_to_exitcode(status)
        if code not in allowed:
            report.seek(0)
            raise _Failure(f"the writer ended with {code}:\n{report.read().decode()}")
        return code

    # Faults

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Lets several writers, one after another, save values until they receive a signal."""
        value = started = 1
        for _ in range(ROUNDS):
            done, started = self._save_until(number, value, started)
            value = self._read(done, started)
            if not self.kind.is_replaced:
                self._write(started)  # to the same position
                value = started
        self._finish(started + 1)

    def _save_until(self, number: int, value: int, started: int) -> tuple[int, int]:
        """Returns the last value that was saved and the last one whose save had started."""
        progress = tempfile.TemporaryFile()  # noqa: SIM115 (the child writes to it)
        progress.write(struct.pack("qq", value, started))
        progress.flush()

        def save_on() -> int:
            for new in range(started + 1, 1 << 30):
                os.pwrite(progress.fileno(), struct.pack("q", new), 8)
                self.kind.write(self.path, new, self.size)
                os.pwrite(progress.fileno(), struct.pack("q", new), 0)

        def save_on_until_interrupted() -> int:
            try:
                return save_on()
            except KeyboardInterrupt:
                return 7

        is_kill = number == signal.SIGKILL
        pid, report = self._fork(save_on if is_kill else save_on_until_interrupted)
        delay = self.rng.uniform(0, 2 * _seconds[self.name, self.size])
        time.sleep(min(delay, 0.5))
        # Control-C can arrive before the child handles it, and destructors ignore it.
        self._wait(pid, report, *((-number,) if is_kill else (7, 99, -number)), again=number)
        done, last = struct.unpack("qq", os.pread(progress.fileno(), 16, 0))
        self.details = f"Sent {signal.Signals(number).name} after {done} of {last} saves."
        return done, last

    def signal(self) -> None:
        """Sends Control-C at a random time."""
        self.kill(signal.SIGINT)

    def trace(self) -> None:
        """Raises KeyboardInterrupt at a random instruction. The process may then save again."""
        kind = "line" if self.kind.is_slow else "opcode"
        key = (self.name, self.size)
        if key not in _events:
            _events[key] = self._count(kind)
        position = self.rng.randrange(_events[key])
        continues = self.rng.random() < 0.5
        self.details = f"KeyboardInterrupt at {kind} {position}, continues: {continues}."

        def write_until_interrupted() -> int:
            try:
                with _interrupt_at(kind, position):
                    self.kind.write(self.path, 2, self.size)
            except BaseException as error:
                # Keras's handlers may raise another exception instead of the interrupt.
                if KeyboardInterrupt not in (type(error), type(error.__context__)):
                    raise
            if continues:
                self.kind.write(self.path, 3 if self.kind.is_replaced else 2, self.size)
            return 0

        self._wait(*self._fork(write_until_interrupted), 0)
        if continues:
            self._read(2, 3)
            self._check_clean()
        else:
            self._read(1, 2)
        self._finish(4 if self.kind.is_replaced else 2)

    def _count(self, kind: str) -> int:
        count = [0]
        path = tempfile.mkdtemp()
        try:
            self.kind.write(path, 1, self.size)  # imports and compiles everything
            with _interrupt_at(kind, 1 << 60, count):
                self.kind.write(path, 2, self.size)
        finally:
            shutil.rmtree(path)
        return count[0]

    def limit(self) -> None:
        """Limits the file size."""
        total = sum(p.stat().st_size for p in pathlib.Path(self.path).rglob("*") if p.is_file())
        size = self.rng.randrange(int(1.2 * total) + 1)
        self.details = f"RLIMIT_FSIZE is {size}."

        def write_with_size_limit() -> int:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            return self._try_to_write()

        self._check_full(self._wait(*self._fork(write_with_size_limit), 0, errno.ENOSPC))

    def disk(self) -> None:
        """Saves to a disk that is almost full."""
        total = sum(p.stat().st_size for p in pathlib.Path(self.path).rglob("*") if p.is_file())
        free = self.rng.randrange(int(1.2 * total) + 1)
        disk = os.statvfs(self.path)
        filler = os.path.join(self.path, "filler")
        with open(filler, "wb") as file:
            file.write(bytes(max(0, disk.f_bavail * disk.f_bsize - free)))
        self.details = f"The disk has about {free} bytes left."
        status = self._wait(*self._fork(self._try_to_write), 0, errno.ENOSPC)
        os.remove(filler)
        self._check_full(status)

    def _try_to_write(self) -> int:
        import retrograde as tf

        try:
            self.kind.write(self.path, 2, self.size)
        except tf.errors.ResourceExhaustedError:
            return errno.ENOSPC
        return 0

    def _check_full(self, status: int) -> None:
        expected = 1 if status else 2
        self._check_clean()
        self._read(expected, expected)
        self._finish(3)

    def two(self) -> None:
        """Lets two processes save to the same path."""
        last = 5
        shift = 100 if self.kind.is_replaced else 0

        def save_some(first: int) -> int:
            for value in range(first, first + last):
                self.kind.write(self.path, value, self.size)
            return 0

        writers = [self._fork(functools.partial(save_some, 2 + k * shift)) for k in range(2)]
        for writer in writers:
            self._wait(*writer, 0)
        value = self._read(last + 1, last + 1 + shift)
        if value not in (last + 1, last + 1 + shift):
            raise _Failure(f"read {value}, which is not the last value of either writer")
        self._finish(1000)

    def flip(self) -> None:
        """Flips one bit of one file. Loading must raise an error or return the same values."""
        import retrograde as tf

        file = self.rng.choice(sorted(p for p in pathlib.Path(self.path).rglob("*") if p.is_file()))
        data = bytearray(file.read_bytes())
        position, bit = self.rng.randrange(len(data)), self.rng.randrange(8)
        data[position] ^= 1 << bit
        file.write_bytes(data)
        self.details = f"Flipped bit {bit} of byte {position} of {file.name}."
        try:
            value = self.kind.read(self.path, self.size)
        except (tf.errors.DataLossError, tf.errors.NotFoundError):
            return
        if value != 1:
            raise _Failure(f"read {value} instead of 1")


def _mount(path: str) -> bool:
    """Mounts a small disk at a path, if permitted."""
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", path]
    return os.geteuid() == 0 and not subprocess.run(command, capture_output=True).returncode


@contextlib.contextmanager
def _interrupt_at(kind: str, position: int, count: list[int] | None = None) -> Iterator[None]:
    """Raises KeyboardInterrupt at one instruction or line of a `with` block."""
    remaining = position

    def trace(frame: Any, event: str, _argument: Any) -> Any:
        nonlocal remaining
        frame.f_trace_opcodes = kind == "opcode"
        if event == kind:
            if remaining == 0:
                remaining -= 1
                raise KeyboardInterrupt
            remaining -= 1
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)
        if count is not None:
            count[0] = position - remaining


if __name__ == "__main__":
    _serve()
