"""Files of all formats: checksums, full disks, concurrent writers and killed writers."""

import errno
import multiprocessing
import os
import pathlib
import random
import threading

import numpy as np
import pytest
import safetensors.numpy

import retrograde as tf
from retrograde.files import atomic
from retrograde.files.atomic import STAGING, Staging, lock_directory, replace_file, write_bytes
from retrograde.train import _state
from tests.namespaces.helpers import assert_raises

resource = pytest.importorskip("resource")  # not on Windows
processes = multiprocessing.get_context("spawn")  # fork is unsafe: threads may hold locks

Checkpoint, Dataset = tf.train.Checkpoint, tf.data.Dataset
SIZE = 3000


class Model(tf.Module):
    def __init__(self, value):
        super().__init__()
        self.v = tf.Variable(tf.fill([SIZE], float(value)))

    @tf.function(input_signature=[tf.TensorSpec([SIZE])])
    def __call__(self, x):
        return self.v * x


def write_checkpoint(path, value):
    Checkpoint(v=Model(value).v, s=tf.Variable(["ab", "c"])).write(path / "a")


def read_checkpoint(path):
    v = tf.Variable(tf.zeros([SIZE]))
    Checkpoint(v=v, s=tf.Variable(["", ""])).read(path / "a").assert_consumed()
    return v.numpy()


def save_checkpoint(path, value):
    Checkpoint(v=Model(value).v).save(path / "c")


def read_latest(path):
    v = tf.Variable(tf.zeros([SIZE]))
    Checkpoint(v=v).restore(tf.train.latest_checkpoint(path)).assert_existing_objects_matched()
    return v.numpy()


def write_model(path, value):
    tf.saved_model.save(Model(value), str(path / "m"))


def read_model(path):
    return tf.saved_model.load(str(path / "m"))(tf.ones([SIZE])).numpy()


def write_dataset(path, value):
    Dataset.from_tensors(Model(value).v.numpy()).repeat(2).save(path / "d")


def read_dataset(path):
    first, second = Dataset.load(path / "d")
    assert (first.numpy() == second.numpy()).all()
    return first.numpy()


def write_string(path, value):
    tf.io.write_file(str(path / "f"), np.full(SIZE, value, np.float32).tobytes())


def read_string(path):
    return np.frombuffer(tf.io.read_file(str(path / "f")).numpy(), np.float32)


CHECKED_FORMATS = {
    "checkpoint": (write_checkpoint, read_checkpoint),
    "saved": (save_checkpoint, read_latest),
    "saved_model": (write_model, read_model),
    "dataset": (write_dataset, read_dataset),
}
ALL_FORMATS = CHECKED_FORMATS | {"file": (write_string, read_string)}
every_checked_format = pytest.mark.parametrize("format_name", CHECKED_FORMATS)
every_format = pytest.mark.parametrize("format_name", ALL_FORMATS)


def file_contents(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


# Checksums


@every_checked_format
def test_flipped_bits_are_detected(format_name, tmp_path):
    write, read = CHECKED_FORMATS[format_name]
    write(tmp_path, 1.5)
    files = sorted(p for p in tmp_path.rglob("*") if p.is_file())
    rng = random.Random(1)
    for _ in range(100):
        file = rng.choice(files)
        data = bytearray(file.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        before = file.read_bytes()
        file.write_bytes(data)
        with pytest.raises((tf.errors.DataLossError, tf.errors.NotFoundError)):
            read(tmp_path)
        file.write_bytes(before)
    assert (read(tmp_path) == 1.5).all()


def test_error_names_the_corrupt_tensor(tmp_path):
    write_checkpoint(tmp_path, 1.0)
    path = tmp_path / "a.safetensors"
    data = path.read_bytes()
    path.write_bytes(data.replace(np.float32(1).tobytes(), np.float32(2).tobytes(), 1))
    assert_raises(
        lambda: read_checkpoint(tmp_path),
        tf.errors.DataLossError,
        f"Cannot read {path} as a checkpoint: the checksum of its tensor "
        "v/.ATTRIBUTES/VARIABLE_VALUE does not match its data.",
    )


def test_file_without_checksums_raises(tmp_path):
    write_checkpoint(tmp_path, 1.0)
    path = tmp_path / "a.safetensors"
    with safetensors.safe_open(path, "np") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    for removed in ("checksum", "checksums"):
        rest = {name: text for name, text in metadata.items() if name != removed}
        safetensors.numpy.save_file(tensors, path, rest)
        assert_raises(
            lambda: read_checkpoint(tmp_path),
            tf.errors.DataLossError,
            f"Cannot read {path} as a checkpoint: the checksum of its metadata is missing or "
            "wrong.",
        )


def test_index_without_a_checksum_raises(tmp_path):
    write_model(tmp_path, 1.0)
    path = tmp_path / "m" / "saved_model.json"
    path.write_text(path.read_text().replace('"checksum"', '"checksums"'))
    assert_raises(
        lambda: read_model(tmp_path),
        tf.errors.DataLossError,
        f"Cannot read {path} as a saved model: its checksum is missing or does not match.",
    )


# Full disks


def with_file_size_limit(size, f):
    """Calls `f` with a file size limit of `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        f()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@every_format
@pytest.mark.parametrize("size", [0, 100, 5000])
def test_full_disk_keeps_the_previous_content(format_name, size, tmp_path):
    write, read = ALL_FORMATS[format_name]
    write(tmp_path, 1.0)
    before = file_contents(tmp_path)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="File too large"):
        with_file_size_limit(size, lambda: write(tmp_path, 2.0))
    assert file_contents(tmp_path) == before
    assert (read(tmp_path) == 1.0).all()
    assert not list(tmp_path.rglob(STAGING))


def test_failed_copy_keeps_the_previous_content(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old")
    new.write_text("new" * 100)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="File too large"):
        with_file_size_limit(100, lambda: tf.io.gfile.copy(new, old, overwrite=True))
    assert old.read_text() == "old"
    tf.io.gfile.copy(new, old, overwrite=True)
    assert old.read_text() == new.read_text()


def test_gfile_on_a_full_disk_raises_resource_exhausted(tmp_path):
    file = tf.io.gfile.GFile(tmp_path / "a", "w")
    file.write("." * 101)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="File too large"):
        with_file_size_limit(100, file.flush)
    file = tf.io.gfile.GFile(tmp_path / "b", "w")
    file.write("." * 101)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="File too large"):
        with_file_size_limit(100, file.close)


def test_full_disk_error_message(tmp_path):
    path = tmp_path / "a"
    assert_raises(
        lambda: with_file_size_limit(
            100, lambda: replace_file(str(path), lambda p: write_bytes(p, b"." * 101))
        ),
        tf.errors.ResourceExhaustedError,
        f"Cannot write {path}: File too large. The previous content, if any, is unchanged. Free "
        "disk space or write to another disk.",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_error_numbers_in_messages_of_other_libraries(number, tmp_path):
    def write(_path):
        try:
            raise OSError(f"Can't write data (file write failed: errno = {number}, ...)")
        finally:
            raise RuntimeError("Unable to close the file")

    with pytest.raises(tf.errors.ResourceExhaustedError, match=os.strerror(number)):
        replace_file(str(tmp_path / "a"), write)


def test_other_errors_are_not_converted(tmp_path):
    with pytest.raises(IsADirectoryError):
        replace_file(str(tmp_path), lambda path: write_bytes(path, b""))
    with pytest.raises(FileNotFoundError):
        replace_file(str(tmp_path / "none" / "a"), lambda path: write_bytes(path, b""))


def test_events_on_a_full_disk_stay_pending(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path), max_queue=100)
    with writer.as_default():
        tf.summary.scalar("a", 1.0, step=1)
    (file,) = tmp_path.iterdir()
    before = file.read_bytes()

    def flush():
        with writer.as_default():
            tf.summary.text("b", "x" * 5000, step=2)

    with pytest.raises(tf.errors.ResourceExhaustedError, match="File too large"):
        with_file_size_limit(len(before) + 100, flush)
    assert file.read_bytes() == before
    writer.close()
    assert file.read_bytes().startswith(before)
    assert file.read_bytes().count(b"x" * 5000) == 1


# Concurrent writers


def run_two(function, arguments):
    """Runs a function in two concurrent processes and checks that both succeed."""
    start = processes.Barrier(2)
    workers = [processes.Process(target=function, args=(*args, start)) for args in arguments]
    for process in workers:
        process.start()
    for process in workers:
        process.join()
    assert [process.exitcode for process in workers] == [0, 0]


def writer_process(path, value, start):
    start.wait()
    for format_name, (write, _) in ALL_FORMATS.items():
        for _ in range(20):
            write(pathlib.Path(path, format_name), value)


def test_two_processes_can_write_to_the_same_path(tmp_path):
    for format_name in ALL_FORMATS:
        (tmp_path / format_name).mkdir()
    run_two(writer_process, [(str(tmp_path), 1.0), (str(tmp_path), 2.0)])
    for format_name, (write, read) in ALL_FORMATS.items():
        value = read(tmp_path / format_name)
        assert value[0] in (1.0, 2.0)
        assert (value == value[0]).all()
        write(tmp_path / format_name, 3.0)
    assert not list(tmp_path.rglob(STAGING))
    for directory in ("saved_model/m", "dataset/d"):
        assert len(list((tmp_path / directory).iterdir())) == 2  # the index and its data


def manager_process(path, count, start):
    step = tf.Variable(0)
    manager = tf.train.CheckpointManager(Checkpoint(step=step), path, max_to_keep=2)
    start.wait()
    for _ in range(count):
        step.assign_add(1)
        manager.save()


def test_two_processes_can_share_a_manager_directory(tmp_path):
    counts = (10, 25)
    run_two(manager_process, [(str(tmp_path), count) for count in counts])
    latest = tf.train.latest_checkpoint(tmp_path)
    step = tf.Variable(0)
    Checkpoint(step=step).restore(latest).assert_existing_objects_matched()
    assert int(step) in counts
    checkpoint_paths = tf.train.get_checkpoint_state(tmp_path).all_model_checkpoint_paths
    assert len(checkpoint_paths) == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["checkpoint", *(f"{os.path.basename(path)}.safetensors" for path in checkpoint_paths)]
    )


def test_lock_directory_is_exclusive(tmp_path):
    order = []

    def enter():
        with lock_directory(str(tmp_path)):
            order.append("second")

    with lock_directory(str(tmp_path)):
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


# Killed writers


def exit_while_staging(*paths):
    for path in paths:
        write_bytes(os.path.join(Staging(path).path, "half"), b"half")
    os._exit(0)


def test_next_writer_removes_files_of_dead_writers(tmp_path):
    directories = {format_name: tmp_path / format_name for format_name in ALL_FORMATS}
    directories |= {"saved_model": tmp_path / "saved_model/m", "dataset": tmp_path / "dataset/d"}
    for directory in directories.values():
        directory.mkdir(parents=True)
    process = processes.Process(target=exit_while_staging, args=[*map(str, directories.values())])
    process.start()
    process.join()
    for format_name, (write, _) in ALL_FORMATS.items():
        assert (directories[format_name] / STAGING).exists()
        write(tmp_path / format_name, 2.0)
        assert not (directories[format_name] / STAGING).exists()


def test_files_of_live_writers_are_kept(tmp_path):
    with Staging(str(tmp_path)) as staging:
        file = pathlib.Path(staging.path, "file")
        file.write_text("half")
        write_string(tmp_path, 1.0)
        assert file.read_text() == "half"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_unreferenced_data_are_removed(tmp_path):
    write_dataset(tmp_path, 1.0)
    unreferenced = tmp_path / "d" / "data-0123456789abcdef"
    unreferenced.mkdir()
    unrelated = tmp_path / "d" / "data-of-mine"
    unrelated.mkdir()
    write_dataset(tmp_path, 2.0)
    assert not unreferenced.exists()
    assert unrelated.exists()
    assert len(list((tmp_path / "d").iterdir())) == 3


def test_new_lock_is_retried_if_another_process_took_it(tmp_path, monkeypatch):
    """An unlocked file looks like a dead writer's file, so the writer creates another."""
    states = iter([False, True])
    monkeypatch.setattr(atomic, "_try_lock", lambda _file: next(states))
    staging = Staging(str(tmp_path))
    assert next(states, None) is None
    staging.close()


def test_file_systems_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_try_lock", lambda _file: None)
    with Staging(str(tmp_path)) as staging:
        write_string(tmp_path, 1.0)
        assert os.path.isdir(staging.path)  # it is unknown whether the writer is alive
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


# Symlinks, pipes and mount points


def test_symlink_targets_are_replaced(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    tf.io.write_file(str(link), "new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_pipes_are_written_in_place(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read = []
    thread = threading.Thread(target=lambda: read.append(path.read_bytes()))
    thread.start()
    tf.io.write_file(str(path), "through")
    thread.join()
    assert read == [b"through"]


def test_mount_points_are_written_in_place(tmp_path, monkeypatch):
    def fail(_old, _new):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    path = tmp_path / "f"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "replace", fail)
    tf.io.write_file(str(path), "new")
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


# Managers


def test_manager_deletes_only_its_own_checkpoints(tmp_path):
    directory, other = tmp_path / "m", tmp_path / "other"
    elsewhere = Checkpoint(v=tf.Variable(1.0)).write(other / "ckpt-1")
    manager = tf.train.CheckpointManager(Checkpoint(v=tf.Variable(2.0)), directory, max_to_keep=1)
    manager.save()
    best = Checkpoint(v=tf.Variable(3.0)).write(directory / "best-1")
    doctored = [elsewhere, "../other/ckpt-1", best, "ckpt-1/../best-1", "ckpt-1"]
    text = str(_state.CheckpointState("ckpt-1", doctored))
    (directory / "checkpoint").write_text(f"{text}# CRC-32: {_state._checksum(text)}\n")

    second_manager = tf.train.CheckpointManager(
        Checkpoint(v=tf.Variable(2.0)), directory, max_to_keep=1
    )
    assert [os.path.basename(path) for path in second_manager.checkpoints] == ["ckpt-1"]
    second_manager.restore_or_initialize()
    second_manager.save()
    second_manager.save()
    assert os.path.exists(f"{elsewhere}.safetensors")
    assert os.path.exists(f"{best}.safetensors")
    assert not (directory / "ckpt-1.safetensors").exists()
