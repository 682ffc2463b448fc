"""Keras's model and weights files are written atomically."""

import io
import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras
from retrograde.files.atomic import STAGING

resource = pytest.importorskip("resource")  # not on Windows


def make_model(value=0.0):
    model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(100), keras.layers.Dense(20)])
    model.compile("sgd", keras.losses.MeanSquaredError())
    model.set_weights([np.full_like(w, value) for w in model.get_weights()])
    return model


def constant_weight(model):
    values = np.concatenate([w.ravel() for w in model.get_weights()])
    assert (values == values[0]).all()
    return values[0]


def load_model_value(path):
    return constant_weight(keras.saving.load_model(path, compile=False))


def load_weights_value(path):
    model = make_model()
    model.load_weights(path)
    return constant_weight(model)


SHARD_SIZE = 12_000 / 2**30  # in gigabytes
FORMATS = {
    "keras": ("m.keras", lambda m, path: m.save(path), load_model_value),
    "function": ("m.keras", lambda m, path: keras.saving.save_model(m, path), load_model_value),
    "string": ("m.keras", lambda m, path: m.save(str(path)), load_model_value),
    "directory": (
        "m",
        lambda m, path: keras.saving.save_model(m, path, zipped=False),
        load_model_value,
    ),
    "weights": ("m.weights.h5", lambda m, path: m.save_weights(path), load_weights_value),
    "weights_function": (
        "m.weights.h5",
        lambda m, path: keras.saving.save_weights(m, str(path)),
        load_weights_value,
    ),
    "shards": (
        "m.weights.json",
        lambda m, path: m.save_weights(path, max_shard_size=SHARD_SIZE),
        load_weights_value,
    ),
    "hdf5": ("m.h5", lambda m, path: m.save(path), load_model_value),
}
every_format = pytest.mark.parametrize("format_name", FORMATS)


def file_contents(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def with_file_size_limit(size, f):
    """Calls `f` with a file size limit of `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        f()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@every_format
def test_saving_replaces_the_file(format_name, tmp_path):
    name, save, load = FORMATS[format_name]
    for value in (1.0, 2.0):
        save(make_model(value), tmp_path / name)
        assert load(tmp_path / name) == value
    assert not list(tmp_path.rglob(STAGING))


@every_format
@pytest.mark.parametrize("size", [0, 4000])
def test_full_disk_keeps_the_previous_file(format_name, size, tmp_path):
    name, save, load = FORMATS[format_name]
    save(make_model(1.0), tmp_path / name)
    before, model = file_contents(tmp_path), make_model(2.0)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="File too large"):
        with_file_size_limit(size, lambda: save(model, tmp_path / name))
    assert file_contents(tmp_path) == before
    assert load(tmp_path / name) == 1.0
    assert not list(tmp_path.rglob(STAGING))


def test_failed_save_keeps_the_previous_file(tmp_path):
    class Failing(keras.layers.Dense):
        def save_own_variables(self, _store):
            raise RuntimeError("cannot be saved")

    for name in ("m.keras", "m.weights.h5"):
        _, save, load = FORMATS["keras" if name == "m.keras" else "weights"]
        path = tmp_path / name
        save(make_model(1.0), path)
        failing = keras.Sequential([keras.Input((2,)), Failing(3)])
        with pytest.raises(RuntimeError, match="cannot be saved"):
            save(failing, path)
        assert load(path) == 1.0
    assert sorted(file_contents(tmp_path)) == ["m.keras", "m.weights.h5"]


def test_streams_are_written_directly():
    from keras.src.saving import saving_lib  # import after the backend is installed

    stream = io.BytesIO()
    saving_lib.save_model(make_model(3.0), stream)
    stream.seek(0)
    assert constant_weight(saving_lib.load_model(stream)) == 3.0


def test_other_files_in_a_directory_are_kept(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    keras.saving.save_model(make_model(1.0), tmp_path, zipped=False)
    keras.saving.save_model(make_model(2.0), tmp_path, zipped=False)
    assert load_model_value(tmp_path) == 2.0
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_symlinks_point_to_the_new_model(tmp_path):
    path, link = tmp_path / "m.keras", tmp_path / "latest.keras"
    make_model(1.0).save(path)
    link.symlink_to(path)
    make_model(2.0).save(link)
    assert link.is_symlink()
    assert load_model_value(path) == 2.0


def test_missing_directories_raise(tmp_path):
    for name in ("m.keras", "m.weights.h5"):
        _, save, _ = FORMATS["keras" if name == "m.keras" else "weights"]
        with pytest.raises(FileNotFoundError):
            save(make_model(), tmp_path / "none" / name)


def test_edited_weights_are_replaced(tmp_path):
    path = tmp_path / "m.weights.h5"
    make_model(1.0).save_weights(path)
    editor = keras.saving.KerasFileEditor(str(path))
    before = path.read_bytes()
    with pytest.raises(tf.errors.ResourceExhaustedError, match="File too large"):
        with_file_size_limit(4000, lambda: editor.save(path))
    assert path.read_bytes() == before
    editor.save(path)
    assert load_weights_value(path) == 1.0


# Backups


X = np.ones((4, 20), np.float32)


class StopTraining(Exception):
    pass


class StopAfterEpoch(keras.callbacks.Callback):
    def __init__(self, epoch):
        super().__init__()
        self.stopped_after = epoch

    def on_epoch_end(self, epoch, _logs=None):
        if epoch == self.stopped_after:
            raise StopTraining


def resumed_epochs(backup_dir, epochs=4):
    """Resumes training and returns the epochs that it runs."""
    epochs_run = []
    recorder = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, _: epochs_run.append(epoch)
    )
    backup = keras.callbacks.BackupAndRestore(backup_dir, delete_checkpoint=False)
    make_model(1.0).fit(X, X, epochs=epochs, verbose=0, callbacks=[backup, recorder])
    return epochs_run


@pytest.fixture
def interrupted_dir(tmp_path):
    """Returns a directory with a backup of training that stopped after its second epoch."""
    backup = keras.callbacks.BackupAndRestore(tmp_path)
    with pytest.raises(StopTraining):
        make_model(1.0).fit(X, X, epochs=4, verbose=0, callbacks=[backup, StopAfterEpoch(1)])
    return tmp_path


def test_backup_and_restore_resumes_training(interrupted_dir):
    assert resumed_epochs(interrupted_dir) == [2, 3]
    assert not list(interrupted_dir.rglob(STAGING))


@pytest.mark.parametrize("text", ['{"epoch": 1, "batch": 0}', '{"epo', ""])
def test_epoch_number_matches_the_weights(text, interrupted_dir):
    """Keras writes the epoch number after the weights and may be killed in between."""
    metadata = interrupted_dir / "training_metadata.json"
    metadata.write_text(text)
    assert resumed_epochs(interrupted_dir) == [2, 3]
    assert json.loads(metadata.read_text())["epoch"] == 4


def test_epoch_number_without_weights_is_ignored(interrupted_dir):
    """Keras deletes both after training and may be killed in between."""
    (interrupted_dir / "latest.weights.h5").unlink()
    assert resumed_epochs(interrupted_dir) == [0, 1, 2, 3]


def test_full_disk_keeps_the_previous_backup(interrupted_dir):
    before = pathlib.Path(interrupted_dir, "latest.weights.h5").read_bytes()
    with pytest.raises(tf.errors.ResourceExhaustedError, match="File too large"):
        with_file_size_limit(4000, lambda: resumed_epochs(interrupted_dir))
    assert pathlib.Path(interrupted_dir, "latest.weights.h5").read_bytes() == before
    assert resumed_epochs(interrupted_dir) == [2, 3]


# Memory


@pytest.mark.parametrize("format_name", ["keras", "directory", "weights", "shards", "hdf5"])
def test_large_models_are_written_to_disk_directly(format_name, tmp_path, monkeypatch):
    from keras.src.saving import saving_lib  # import after the backend is installed

    monkeypatch.setattr(saving_lib, "_MEMORY_UPPER_BOUND", 0)
    name, save, load = FORMATS[format_name]
    for value in (1.0, 2.0):
        save(make_model(value), tmp_path / name)
        assert load(tmp_path / name) == value
    assert not list(tmp_path.rglob(STAGING))


def test_non_ascii_file_names(tmp_path):
    name, save, load = FORMATS["shards"]
    save(make_model(1.0), tmp_path / f"größe-{name}")
    assert load(tmp_path / f"größe-{name}") == 1.0
