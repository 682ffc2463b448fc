"""Keras's own files are replaced as a whole, or stay as they were."""

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


def value_of(model):
    values = np.concatenate([w.ravel() for w in model.get_weights()])
    assert (values == values[0]).all()
    return values[0]


def loaded(path):
    return value_of(keras.saving.load_model(path, compile=False))


def loaded_weights(path):
    model = make_model()
    model.load_weights(path)
    return value_of(model)


SHARD = 12_000 / 2**30  # gigabytes
KINDS = {
    "keras": ("m.keras", lambda m, path: m.save(path), loaded),
    "function": ("m.keras", lambda m, path: keras.saving.save_model(m, path), loaded),
    "string": ("m.keras", lambda m, path: m.save(str(path)), loaded),
    "directory": ("m", lambda m, path: keras.saving.save_model(m, path, zipped=False), loaded),
    "weights": ("m.weights.h5", lambda m, path: m.save_weights(path), loaded_weights),
    "weights_function": (
        "m.weights.h5",
        lambda m, path: keras.saving.save_weights(m, str(path)),
        loaded_weights,
    ),
    "shards": (
        "m.weights.json",
        lambda m, path: m.save_weights(path, max_shard_size=SHARD),
        loaded_weights,
    ),
    "hdf5": ("m.h5", lambda m, path: m.save(path), loaded),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def content(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def with_limit(size, act):
    """Calls `act` while no file can grow beyond `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        act()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@every_kind
def test_a_file_is_replaced(kind, tmp_path):
    name, save, load = KINDS[kind]
    for value in (1.0, 2.0):
        save(make_model(value), tmp_path / name)
        assert load(tmp_path / name) == value
    assert not list(tmp_path.rglob(STAGING))


@every_kind
@pytest.mark.parametrize("size", [0, 4000])
def test_a_full_disk_leaves_the_previous_file(kind, size, tmp_path):
    name, save, load = KINDS[kind]
    save(make_model(1.0), tmp_path / name)
    before, model = content(tmp_path), make_model(2.0)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="File too large"):
        with_limit(size, lambda: save(model, tmp_path / name))
    assert content(tmp_path) == before
    assert load(tmp_path / name) == 1.0
    assert not list(tmp_path.rglob(STAGING))


def test_a_save_that_fails_leaves_the_previous_file(tmp_path):
    class Failing(keras.layers.Dense):
        def save_own_variables(self, _store):
            raise RuntimeError("cannot be saved")

    for name in ("m.keras", "m.weights.h5"):
        _, save, load = KINDS["keras" if name == "m.keras" else "weights"]
        path = tmp_path / name
        save(make_model(1.0), path)
        failing = keras.Sequential([keras.Input((2,)), Failing(3)])
        with pytest.raises(RuntimeError, match="cannot be saved"):
            save(failing, path)
        assert load(path) == 1.0
    assert sorted(content(tmp_path)) == ["m.keras", "m.weights.h5"]


def test_streams_are_written_directly():
    from keras.src.saving import saving_lib  # after Keras has its backend

    stream = io.BytesIO()
    saving_lib.save_model(make_model(3.0), stream)
    stream.seek(0)
    assert value_of(saving_lib.load_model(stream)) == 3.0


def test_other_files_in_a_directory_stay(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    keras.saving.save_model(make_model(1.0), tmp_path, zipped=False)
    keras.saving.save_model(make_model(2.0), tmp_path, zipped=False)
    assert loaded(tmp_path) == 2.0
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_links_lead_to_the_new_model(tmp_path):
    path, link = tmp_path / "m.keras", tmp_path / "latest.keras"
    make_model(1.0).save(path)
    link.symlink_to(path)
    make_model(2.0).save(link)
    assert link.is_symlink()
    assert loaded(path) == 2.0


def test_missing_directories_are_reported_by_keras(tmp_path):
    for name in ("m.keras", "m.weights.h5"):
        _, save, _ = KINDS["keras" if name == "m.keras" else "weights"]
        with pytest.raises(FileNotFoundError):
            save(make_model(), tmp_path / "none" / name)


def test_edited_weights_are_replaced(tmp_path):
    path = tmp_path / "m.weights.h5"
    make_model(1.0).save_weights(path)
    editor = keras.saving.KerasFileEditor(str(path))
    before = path.read_bytes()
    with pytest.raises(tf.errors.ResourceExhaustedError, match="File too large"):
        with_limit(4000, lambda: editor.save(path))
    assert path.read_bytes() == before
    editor.save(path)
    assert loaded_weights(path) == 1.0


# Backups


X = np.ones((4, 20), np.float32)


class Stop(Exception):
    pass


class Stopper(keras.callbacks.Callback):
    def __init__(self, epoch):
        super().__init__()
        self.stopped_after = epoch

    def on_epoch_end(self, epoch, _logs=None):
        if epoch == self.stopped_after:
            raise Stop


def epochs_after(folder, epochs=4):
    """The epochs that training resumes with."""
    seen = []
    counting = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, _: seen.append(epoch))
    backup = keras.callbacks.BackupAndRestore(folder, delete_checkpoint=False)
    make_model(1.0).fit(X, X, epochs=epochs, verbose=0, callbacks=[backup, counting])
    return seen


@pytest.fixture
def interrupted(tmp_path):
    """A folder with the backup of a training that ended after its second epoch."""
    backup = keras.callbacks.BackupAndRestore(tmp_path)
    with pytest.raises(Stop):
        make_model(1.0).fit(X, X, epochs=4, verbose=0, callbacks=[backup, Stopper(1)])
    return tmp_path


def test_a_backup_is_resumed(interrupted):
    assert epochs_after(interrupted) == [2, 3]
    assert not list(interrupted.rglob(STAGING))


@pytest.mark.parametrize("text", ['{"epoch": 1, "batch": 0}', '{"epo', ""])
def test_weights_and_epoch_are_of_one_moment(text, interrupted):
    """Keras writes the epoch after the weights, and may be killed in between."""
    record = interrupted / "training_metadata.json"
    record.write_text(text)
    assert epochs_after(interrupted) == [2, 3]
    assert json.loads(record.read_text())["epoch"] == 4


def test_an_epoch_without_weights_is_forgotten(interrupted):
    """The end of training deletes both, and may be killed in between."""
    (interrupted / "latest.weights.h5").unlink()
    assert epochs_after(interrupted) == [0, 1, 2, 3]


def test_a_full_disk_leaves_the_previous_backup(interrupted):
    before = pathlib.Path(interrupted, "latest.weights.h5").read_bytes()
    with pytest.raises(tf.errors.ResourceExhaustedError, match="File too large"):
        with_limit(4000, lambda: epochs_after(interrupted))
    assert pathlib.Path(interrupted, "latest.weights.h5").read_bytes() == before
    assert epochs_after(interrupted) == [2, 3]


# Memory


@pytest.mark.parametrize("kind", ["keras", "directory", "weights", "shards", "hdf5"])
def test_models_that_do_not_fit_in_memory_twice_are_written_to_the_disk(
    kind, tmp_path, monkeypatch
):
    from keras.src.saving import saving_lib  # after Keras has its backend

    monkeypatch.setattr(saving_lib, "_MEMORY_UPPER_BOUND", 0)
    name, save, load = KINDS[kind]
    for value in (1.0, 2.0):
        save(make_model(value), tmp_path / name)
        assert load(tmp_path / name) == value
    assert not list(tmp_path.rglob(STAGING))


def test_names_may_have_any_letters(tmp_path):
    name, save, load = KINDS["shards"]
    save(make_model(1.0), tmp_path / f"größe-{name}")
    assert load(tmp_path / f"größe-{name}") == 1.0
