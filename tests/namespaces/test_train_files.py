"""tf.train: checkpoint files, the state file and CheckpointManager."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import safetensors.numpy

import retrograde as tf
from retrograde.files.checked_json import json_checksum
from retrograde.files.tensors import write_tensors_in_place
from tests.namespaces.helpers import assert_raises

Checkpoint, CheckpointManager = tf.train.Checkpoint, tf.train.CheckpointManager
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def files(path):
    return sorted(file.name for file in path.iterdir())


@pytest.fixture
def saved(tmp_path):
    """Writes a checkpoint of two variables."""
    return Checkpoint(v=tf.Variable([1.0, 2.0]), w=tf.Variable(3)).write(tmp_path / "a")


# Reading


def test_read_tensors_by_name(saved):
    assert tf.train.list_variables(saved) == [
        ("_CHECKPOINTABLE_OBJECT_GRAPH", []),
        (f"v{VALUE}", [2]),
        (f"w{VALUE}", []),
    ]
    assert tf.train.load_variable(saved, f"v{VALUE}").tolist() == [1.0, 2.0]
    assert tf.train.load_variable(saved, f"w{VALUE}:0") == np.int32(3)
    reader = tf.train.load_checkpoint(f"{saved}.safetensors")
    assert reader.has_tensor(f"v{VALUE}")
    assert not reader.has_tensor("v")
    assert reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH").startswith(b"[{")
    assert reader.debug_string().decode().splitlines() == [
        "_CHECKPOINTABLE_OBJECT_GRAPH (string) []",
        f"v{VALUE} (float32) [2]",
        f"w{VALUE} (int32) []",
    ]
    assert_raises(
        lambda: tf.train.load_variable(saved, "v"),
        tf.errors.NotFoundError,
        "Key v not found in checkpoint",
    )


def test_safetensors_can_read_checkpoints(saved):
    tensors = safetensors.numpy.load_file(f"{saved}.safetensors")
    assert tensors[f"v{VALUE}"].tolist() == [1.0, 2.0]


def test_latest_checkpoint(tmp_path):
    assert tf.train.latest_checkpoint(tmp_path) is None
    assert tf.train.get_checkpoint_state(tmp_path) is None
    checkpoint = Checkpoint(v=tf.Variable(1.0))
    for _ in range(2):
        checkpoint.save(tmp_path / "c")
    assert tf.train.latest_checkpoint(tmp_path) == str(tmp_path / "c-2")
    assert tf.train.load_variable(tmp_path, f"save_counter{VALUE}") == 2
    assert (tmp_path / "checkpoint").read_text() == (
        'model_checkpoint_path: "c-2"\nall_model_checkpoint_paths: "c-2"\n# CRC-32: 84b71766\n'
    )
    (tmp_path / "c-2.safetensors").unlink()
    assert tf.train.latest_checkpoint(tmp_path) is None


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"model_checkpoint_path: no", b"some: words"])
def test_invalid_state_file_raises(text, tmp_path):
    path = tmp_path / "checkpoint"
    path.write_bytes(text)
    assert_raises(
        lambda: tf.train.get_checkpoint_state(tmp_path),
        tf.errors.DataLossError,
        f"Cannot read {path} as a checkpoint state file: it is corrupt, or its checksum is missing "
        "or wrong. Delete it and pass the checkpoint path to restore.",
    )


def test_directory_can_be_moved(tmp_path):
    Checkpoint(v=tf.Variable(1.0)).save(tmp_path / "old" / "c")
    (tmp_path / "old").rename(tmp_path / "new")
    assert tf.train.latest_checkpoint(tmp_path / "new") == str(tmp_path / "new" / "c-1")


def test_checkpoints_iterator(tmp_path):
    checkpoint = Checkpoint(v=tf.Variable(1.0))
    paths = []
    checkpoint.save(tmp_path / "c")
    for path in tf.train.checkpoints_iterator(tmp_path, timeout=0):
        paths.append(path)
        if len(paths) < 3:
            checkpoint.save(tmp_path / "c")
    assert paths == [str(tmp_path / f"c-{i}") for i in (1, 2, 3)]
    timeouts = []
    iterator = tf.train.checkpoints_iterator(
        tmp_path / "none", timeout=0, timeout_fn=lambda: timeouts.append(1) or len(timeouts) == 3
    )
    assert (list(iterator), len(timeouts)) == ([], 3)


# Invalid files


def write_file(path, data):
    pathlib.Path(f"{path}.safetensors").write_bytes(data)
    return path


@pytest.mark.parametrize("size", [0, 4, 8, 60, -1])
def test_truncated_file_does_not_change_variables(size, saved):
    data = pathlib.Path(f"{saved}.safetensors").read_bytes()
    write_file(saved, data[:size])
    v, w = tf.Variable([0.0, 0.0]), tf.Variable(0)
    with pytest.raises(tf.errors.DataLossError, match=r"it is corrupt or has another format"):
        Checkpoint(v=v, w=w).restore(saved)
    assert (v.numpy().tolist(), int(w)) == ([0.0, 0.0], 0)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (None, "it has tensors, but is not a checkpoint"),
        ({"kind": "checkpoint", "version": "9"}, "its version is 9, not 1"),
        (
            {"kind": "checkpoint", "version": "1"},
            "the checksum of its metadata is missing or wrong",
        ),
    ],
)
def test_other_safetensors_files_raise(metadata, reason, tmp_path):
    path = str(tmp_path / "a")
    safetensors.numpy.save_file({"a": np.ones(2)}, f"{path}.safetensors", metadata)
    assert_raises(
        lambda: Checkpoint(v=tf.Variable(1.0)).restore(path),
        tf.errors.DataLossError,
        f"Cannot read {path}.safetensors as a checkpoint: {reason}.",
    )


@pytest.mark.parametrize(
    "description",
    [
        [{"children": {"v": 1}, "values": {}}],
        [{"children": {}, "values": {"VARIABLE_VALUE": "v"}}],
        [3],
    ],
)
def test_inconsistent_metadata_raise(description, tmp_path):
    path = str(tmp_path / "a")
    write_tensors_in_place(f"{path}.safetensors", "checkpoint", {"a": np.ones(2)}, description)
    assert_raises(
        lambda: Checkpoint(v=tf.Variable(1.0)).restore(path),
        tf.errors.DataLossError,
        f"Cannot read {path}.safetensors as a checkpoint: its metadata do not match its tensors.",
    )


@pytest.mark.parametrize(
    "encoded",
    [
        {"a": [1]},
        {"a": "text"},
        {"a": {"dtype": "complex128", "shape": [-1]}},
        {"a": {"dtype": "complex128", "shape": 1}},
        {"a": {"dtype": "object", "shape": [1]}},
        {"a": {"dtype": "resource", "shape": [1]}},
        {"a": {"shape": [1]}},
    ],
)
def test_metadata_of_encoded_tensors_are_validated(encoded, tmp_path):
    path = tmp_path / "a.safetensors"
    write_tensors_in_place(str(path), "checkpoint", {"a": np.array([1j])}, [])
    with safetensors.safe_open(path, framework="np") as file:
        metadata, arrays = file.metadata(), {"a": file.get_tensor("a")}
    metadata["encoded"] = json.dumps(encoded)
    del metadata["checksum"]
    names = ("kind", "version", "description", "encoded", "checksums")
    checksum = json_checksum({name: metadata[name] for name in names})
    safetensors.numpy.save_file(arrays, path, metadata | {"checksum": str(checksum)})

    with pytest.raises(tf.errors.DataLossError, match="its metadata is corrupt"):
        tf.train.load_checkpoint(tmp_path / "a")


def test_corrupt_headers_raise_or_have_no_effect(tmp_path):
    """Changes random bytes of the header: loading raises an error or works as before."""

    def objects(v, s, c):
        return {"v": tf.Variable([v, v]), "s": tf.Variable([s, s]), "c": tf.Variable(c)}

    path = Checkpoint(**objects(1.0, "ab", 1j)).write(tmp_path / "a")
    data = pathlib.Path(f"{path}.safetensors").read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    rng, rejected = random.Random(1), 0
    for _ in range(300):
        position = rng.randrange(header)
        byte = rng.choice('0123456789"[]{}:,ax ').encode()
        write_file(path, data[:position] + byte + data[position + 1 :])
        other = objects(0.0, "", 0j)
        try:
            Checkpoint(**other).read(path).expect_partial()
        except (tf.errors.DataLossError, tf.errors.InvalidArgumentError, ValueError):
            rejected += 1
            assert [v.numpy().tolist() for v in other.values()] == [[0.0, 0.0], [b"", b""], 0j]
    assert rejected > 100


def test_missing_checkpoints_raise(tmp_path):
    path = str(tmp_path / "c")
    missing = (
        f"There is no checkpoint {path}: the file {path}.safetensors does not exist. The path may "
        "lack the number at its end (such as '-1' in 'path/to/ckpt-1')."
    )
    checkpoint = Checkpoint(v=tf.Variable(1.0))
    assert_raises(lambda: checkpoint.read(path), tf.errors.NotFoundError, missing)
    assert_raises(lambda: tf.train.list_variables(path), tf.errors.NotFoundError, missing)
    assert_raises(
        lambda: checkpoint.restore(path),
        tf.errors.NotFoundError,
        f"Error when restoring from checkpoint at {path}: {missing}",
    )
    assert_raises(
        lambda: checkpoint.read(tmp_path),
        tf.errors.DataLossError,
        f"{tmp_path} is a directory. Expected a checkpoint path, such as the result of "
        "tf.train.latest_checkpoint.",
    )
    pathlib.Path(f"{path}.index").write_bytes(b"")
    assert_raises(
        lambda: checkpoint.read(path),
        tf.errors.DataLossError,
        f"Cannot read {path} as a TensorFlow checkpoint: the index file is corrupt: it is too "
        "short.",
    )


# Killed writers

# Starts a writer for each input line and prints when it is dead.
WRITERS = textwrap.dedent(
    """
    import os, sys
    import numpy as np
    import retrograde as tf

    def write():
        step = tf.Variable(0)
        parts = [tf.Variable(np.zeros(50_000)) for _ in range(4)]
        checkpoint = tf.train.Checkpoint(step=step, parts=parts)
        manager = tf.train.CheckpointManager(checkpoint, sys.argv[1], max_to_keep=2)
        manager.restore_or_initialize()
        print(os.getpid(), int(step), flush=True)
        while True:
            step.assign_add(1)
            for part in parts:
                part.assign(np.full(50_000, float(step)))
            manager.save()
            os.write(1, b"%d\\n" % int(step))  # os.write is atomic, print is not

    for _ in sys.stdin:
        pid = os.fork()
        if not pid:
            write()
        os.waitpid(pid, 0)
        print("dead", flush=True)
    """
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_last_complete_checkpoint_survives_a_killed_writer(tmp_path):
    rng = random.Random(1)
    last_step = 0
    command = [sys.executable, "-W", "ignore", "-c", WRITERS, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writers:
        for _ in range(50):
            writers.stdin.write("next\n")
            writers.stdin.flush()
            pid, start_step = map(int, writers.stdout.readline().split())
            assert start_step >= last_step  # the reported checkpoint exists
            reported = [int(writers.stdout.readline())]
            time.sleep(rng.uniform(0, 0.03))
            os.kill(pid, signal.SIGKILL)
            reported += map(int, iter(writers.stdout.readline, "dead\n"))

            step, parts = tf.Variable(-1), [tf.Variable(np.zeros(50_000)) for _ in range(4)]
            latest = tf.train.latest_checkpoint(tmp_path)
            Checkpoint(step=step, parts=parts).restore(latest).assert_consumed()
            assert all((part.numpy() == float(step)).all() for part in parts)
            last_step = int(step)
            assert last_step >= reported[-1] > start_step
    # Two checkpoints, one not yet deleted, one not yet recorded, the state file, temporary files.
    assert len(list(tmp_path.iterdir())) <= 6
    CheckpointManager(Checkpoint(step=step), tmp_path, max_to_keep=2).save()
    assert not (tmp_path / ".retrograde-tmp").exists()


def test_files_follow_the_umask(tmp_path):
    before = os.umask(0o022)
    try:
        path = Checkpoint(v=tf.Variable(1.0)).write(tmp_path / "a")
    finally:
        os.umask(before)
    assert os.stat(f"{path}.safetensors").st_mode & 0o777 == 0o644


# Managers


def make_manager(tmp_path, **options):
    step = tf.Variable(0)
    options = {"max_to_keep": 3} | options
    return step, CheckpointManager(Checkpoint(step=step), tmp_path / "m", **options)


def steps(paths):
    return [int(path.rsplit("-", 1)[1]) for path in paths]


def test_manager_keeps_the_latest(tmp_path):
    _, manager = make_manager(tmp_path)
    assert (manager.latest_checkpoint, manager.checkpoints) == (None, [])
    assert steps(manager.save() for _ in range(5)) == [1, 2, 3, 4, 5]
    assert steps(manager.checkpoints) == [3, 4, 5]
    assert manager.latest_checkpoint == str(tmp_path / "m" / "ckpt-5")
    assert files(tmp_path / "m") == ["checkpoint", *(f"ckpt-{i}.safetensors" for i in (3, 4, 5))]
    state = tf.train.get_checkpoint_state(tmp_path / "m")
    assert state.all_model_checkpoint_paths == manager.checkpoints
    assert len(state.all_model_checkpoint_timestamps) == 3
    assert manager.save(checkpoint_number=77) == str(tmp_path / "m" / "ckpt-77")
    assert steps(manager.checkpoints) == [4, 5, 77]
    assert int(manager.checkpoint.save_counter) == 6


def test_manager_continues_from_an_earlier_one(tmp_path):
    step, first = make_manager(tmp_path)
    for _ in range(3):
        step.assign_add(10)
        first.save()
    step, second = make_manager(tmp_path)
    assert second.checkpoints == first.checkpoints
    assert second.restore_or_initialize() == first.latest_checkpoint
    assert int(step) == 30
    assert steps([second.save()]) == [4]
    assert steps(second.checkpoints) == [2, 3, 4]
    assert second.directory == str(tmp_path / "m")
    assert second.sync() is None


def test_max_to_keep_none(tmp_path):
    _, manager = make_manager(tmp_path, max_to_keep=None)
    assert steps(manager.save() for _ in range(5)) == steps(manager.checkpoints) == [1, 2, 3, 4, 5]


def test_keep_checkpoint_every_n_hours(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    _, manager = make_manager(tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=2)
    for _ in range(6):
        now[0] += 3600
        manager.save()
    numbers = [int(name.split("-")[1].split(".")[0]) for name in files(tmp_path / "m")[1:]]
    assert sorted(numbers) == [2, 4, 6]
    assert steps(manager.checkpoints) == [6]


def test_checkpoint_interval(tmp_path):
    step = tf.Variable(5)
    manager = CheckpointManager(
        Checkpoint(step=step), tmp_path, 2, step_counter=step, checkpoint_interval=10
    )
    assert manager.checkpoint_interval == 10
    assert steps([manager.save()]) == [1]
    step.assign_add(5)
    assert manager.save() is None
    assert steps([manager.save(check_interval=False)]) == [2]
    assert manager.save(check_interval=False) is None
    step.assign_add(10)
    assert steps([manager.save()]) == [3]


def test_restore_or_initialize_calls_init_fn(tmp_path):
    calls = []
    _, manager = make_manager(tmp_path, init_fn=lambda: calls.append(1))
    assert manager.restore_or_initialize() is None
    assert calls == [1]


def test_manager_errors(tmp_path):
    assert_raises(
        lambda: make_manager(tmp_path, max_to_keep=0),
        ValueError,
        "Expected a positive integer or `None` for `max_to_keep`, got 0.",
    )
    assert_raises(
        lambda: make_manager(tmp_path, checkpoint_interval=3),
        ValueError,
        "`step_counter` should be passed if `checkpoint_interval` is not None.",
    )
