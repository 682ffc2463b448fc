"""Makes Keras's model and weights files atomic.

Keras writes into the target file, so a kill or a full disk destroys the previous version. Here
Keras writes a temporary file of the same name in a directory next to the target, which is then
renamed.

HDF5 may abort the process if the disk is full or an exception reaches it. HDF5 files are therefore
created in memory, if they fit, and then written.
"""

import contextlib
import contextvars
import functools
import io
import json
import os

from keras.src.callbacks import backup_and_restore
from keras.src.legacy.saving import legacy_h5_format
from keras.src.saving import file_editor, saving_lib
from keras.src.utils import file_utils, io_utils
from keras.src.utils.module_utils import h5py

from retrograde.distribute.context import OutsideStrategies
from retrograde.files.atomic import (
    Staging,
    full_disk_as_resource_exhausted,
    replace_file,
    replace_or_write,
    sync,
    sync_directory,
    write_bytes,
)

_TRAINING_ATTRIBUTE = "training_metadata"  # HDF5 attribute of the weights of `BackupAndRestore`
_training = contextvars.ContextVar("training", default=None)
_buffers = contextvars.ContextVar("buffers", default=None)  # by path, while a model is saved


def make_atomic():
    """Wraps Keras's functions that write files."""
    store = saving_lib.H5IOStore
    store._get_h5_file = _wrap_get_h5_file(store._get_h5_file)
    saving_lib.save_model = _wrap_save_model(saving_lib.save_model)
    saving_lib.save_weights_only = _wrap_save_weights(saving_lib.save_weights_only)
    legacy_h5_format.save_model_to_hdf5 = _wrap_save_hdf5(legacy_h5_format.save_model_to_hdf5)
    editor = file_editor.KerasFileEditor
    editor.save = _wrap_editor_save(editor.save)
    callback = backup_and_restore.BackupAndRestore
    callback._save_model = _wrap_backup_save(callback._save_model)
    callback._load_model = _wrap_backup_load(callback._load_model)


def _wrap_save_model(save):
    @functools.wraps(save)
    def save_model(model, filepath, weights_format="h5", zipped=True):
        def save_at(path):
            with _hdf5_in_memory(model, path):
                save(model, path, weights_format, zipped)

        replace = replace_or_write if zipped else _replace_directory
        invalid_name = zipped != str(filepath).endswith(".keras")  # Keras raises the error
        _write(filepath, save_at, replace, in_place=invalid_name)

    return save_model


def _wrap_save_weights(save):
    @functools.wraps(save)
    def save_weights_only(model, filepath, max_shard_size=None, objects_to_skip=None):
        def save_at(path):
            with _hdf5_in_memory(model, path) as buffers:
                save(model, path, max_shard_size, objects_to_skip)
                if _training.get() is not None:
                    with h5py.File(buffers.get(path, path), "a") as file:
                        file.attrs[_TRAINING_ATTRIBUTE] = json.dumps(_training.get())

        replace = replace_or_write if max_shard_size is None else _replace_shards
        _write(filepath, save_at, replace, in_place=not model.built)

    return save_weights_only


def _wrap_save_hdf5(save):
    @functools.wraps(save)
    def save_model_to_hdf5(model, filepath, overwrite=True, include_optimizer=True):
        def save_at(path):
            with _hdf5_in_memory(model, path) as buffers, _open_hdf5(buffers, path) as file:
                save(model, file, True, include_optimizer)

        if not _is_local(filepath):
            save(model, filepath, overwrite, include_optimizer)
            return
        path = os.fspath(filepath)
        must_ask = not overwrite and os.path.isfile(path)
        if not must_ask or io_utils.ask_to_proceed_with_overwrite(path):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            replace_or_write(path, save_at)

    return save_model_to_hdf5


def _wrap_editor_save(save):
    @functools.wraps(save)
    def save_atomically(self, filepath):
        def save_at(path):
            with _hdf5_in_memory(None, path):
                save(self, path)

        if _is_local(filepath) and str(filepath).endswith(".weights.h5"):
            replace_or_write(str(filepath), save_at)
        else:
            save(self, filepath)

    return save_atomically


# HDF5


class _HDF5Buffer(io.BytesIO):
    """The content of an HDF5 file. h5py uses its `repr` as the file name."""

    def __init__(self, path):
        super().__init__()
        self._path = path

    def __repr__(self):
        return self._path


@contextlib.contextmanager
def _hdf5_in_memory(model, path):
    """Collects the HDF5 files of the block in memory, by path, and writes them at its end."""
    # Keras looks up sharded files by name, and HDF5 returns names in ASCII.
    in_memory = str(path).isascii() and (model is None or saving_lib.is_memory_sufficient(model))
    buffers = {}
    token = _buffers.set(buffers if in_memory else None)
    try:
        yield buffers
    finally:
        _buffers.reset(token)
    for path, buffer in buffers.items():
        write_bytes(path, buffer.getbuffer())


def _wrap_get_h5_file(open_file):
    @functools.wraps(open_file)
    def _get_h5_file(self, path_or_io, mode=None):
        path, buffers = str(path_or_io), _buffers.get()
        if buffers is None or self.archive or isinstance(path_or_io, io.BytesIO):
            return open_file(self, path_or_io, mode)
        return _open_hdf5(buffers, path, mode or self.mode)

    return _get_h5_file


def _open_hdf5(buffers, path, mode="w"):
    if _buffers.get() is None:
        return h5py.File(path, mode)
    if mode == "w":
        buffers[path] = _HDF5Buffer(path)
    return h5py.File(buffers[path], mode)


# Paths


def _is_local(filepath):
    """Returns whether `filepath` is a local path, not a stream or an open HDF5 file."""
    if isinstance(filepath, io.IOBase) or not isinstance(filepath, (str, os.PathLike)):
        return False
    return not file_utils.is_remote_path(str(filepath))


def _write(filepath, save_at, replace, in_place):
    """Saves to a temporary path and replaces the file, or writes streams and the like directly."""
    with OutsideStrategies():  # one worker may save without the others
        if in_place or not _is_local(filepath):
            save_at(filepath)
        else:
            replace(str(filepath), save_at)


def _replace_shards(path, save_at):
    """Replaces the files of sharded weights, the index file last."""
    directory, name = os.path.split(os.path.realpath(path))
    if not os.access(directory, os.W_OK | os.X_OK):
        save_at(path)
        return
    with full_disk_as_resource_exhausted(path), Staging(directory) as staging:
        save_at(os.path.join(staging.path, name))
        _sync_all(staging.path)
        _move_all(staging.path, directory)


def _replace_directory(path, save_at):
    """Replaces a model directory: atomically if it is new, otherwise file by file.

    Other files in the directory are not changed.
    """
    path = os.path.realpath(path)
    parent, name = os.path.split(path)
    is_new = not os.path.exists(path)
    os.makedirs(parent, exist_ok=True)
    with full_disk_as_resource_exhausted(path), Staging(parent if is_new else path) as staging:
        new = os.path.join(staging.path, name)
        save_at(new)
        _sync_all(new)
        if is_new:
            with contextlib.suppress(OSError):  # another process created it in the meantime
                os.rename(new, path)
                sync_directory(parent)
                return
        _move_all(new, path)


def _move_all(source, target):
    """Moves all files to `target`. JSON files are last because they describe the others."""
    files = []
    for top, _, names in os.walk(source):
        os.makedirs(os.path.join(target, os.path.relpath(top, source)), exist_ok=True)
        files += [os.path.join(top, name) for name in names]
    for file in sorted(files, key=lambda file: file.endswith(".json")):
        os.replace(file, os.path.join(target, os.path.relpath(file, source)))
    sync_directory(target)


def _sync_all(directory):
    for top, _, names in os.walk(directory):
        for name in names:
            sync(os.path.join(top, name))
        sync_directory(top)


# `BackupAndRestore` writes the weights, then the epoch number to another file. The weights file
# also stores the number, so that one rename changes both. Loading uses the number in the weights.


def _wrap_backup_save(save):
    @functools.wraps(save)
    def _save_model(self):
        training = {"epoch": self._current_epoch, "batch": self._last_batch_seen}
        token = _training.set(training)
        try:
            with full_disk_as_resource_exhausted(self._weights_path):
                save(self)
        finally:
            _training.reset(token)

    return _save_model


def _wrap_backup_load(load):
    @functools.wraps(load)
    def _load_model(self):
        if _is_local(self.backup_dir):
            _sync_training_metadata(self._training_metadata_path, self._weights_path)
        load(self)

    return _load_model


def _sync_training_metadata(metadata_path, weights):
    """Makes the metadata file match the epoch number in the weights file."""
    if os.path.exists(weights):
        training = _read_training_metadata(weights)
        if training is not None and training != _read_text(metadata_path):
            replace_file(metadata_path, lambda path: write_bytes(path, training.encode()))
    elif os.path.exists(metadata_path):
        os.remove(metadata_path)


def _read_text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def _read_training_metadata(weights):
    try:
        with h5py.File(weights, "r") as file:
            return file.attrs.get(_TRAINING_ATTRIBUTE)
    except OSError:  # corrupt: Keras raises the error
        return None
