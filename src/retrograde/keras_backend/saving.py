"""Keras's own files, replaced as a whole.

Keras opens the file that it is asked for and writes into it, so that a kill or a full disk destroys
the previous one. Here Keras writes a temporary file of the same name in a directory next to it,
which is then renamed.

HDF5 may end the process if the disk is full or an exception reaches it. Its files are therefore
made in memory, if they fit, and then written.
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

from retrograde.files.atomic import (
    Staging,
    full_disk_as_resource_exhausted,
    replace_file,
    replace_or_write,
    sync,
    sync_directory,
    write_bytes,
)

_TRAINING = "training_metadata"  # an attribute of weights that `BackupAndRestore` writes
_training = contextvars.ContextVar("training", default=None)
_images = contextvars.ContextVar("images", default=None)  # by path, while a model is saved


def make_atomic():
    """Puts the functions below in the place of Keras's, each around the original."""
    store = saving_lib.H5IOStore
    store._get_h5_file = _opener(store._get_h5_file)
    saving_lib.save_model = _model_saver(saving_lib.save_model)
    saving_lib.save_weights_only = _weights_saver(saving_lib.save_weights_only)
    legacy_h5_format.save_model_to_hdf5 = _hdf5_saver(legacy_h5_format.save_model_to_hdf5)
    editor = file_editor.KerasFileEditor
    editor.save = _editor_saver(editor.save)
    callback = backup_and_restore.BackupAndRestore
    callback._save_model = _backup_saver(callback._save_model)
    callback._load_model = _backup_loader(callback._load_model)


def _model_saver(save):
    @functools.wraps(save)
    def save_model(model, filepath, weights_format="h5", zipped=True):
        def save_at(place):
            with _hdf5_in_memory(model, place):
                save(model, place, weights_format, zipped)

        replace = replace_or_write if zipped else _replace_parts
        misnamed = zipped != str(filepath).endswith(".keras")  # which Keras reports
        _write(filepath, save_at, replace, directly=misnamed)

    return save_model


def _weights_saver(save):
    @functools.wraps(save)
    def save_weights_only(model, filepath, max_shard_size=None, objects_to_skip=None):
        def save_at(place):
            with _hdf5_in_memory(model, place) as images:
                save(model, place, max_shard_size, objects_to_skip)
                if _training.get() is not None:
                    with h5py.File(images.get(place, place), "a") as file:
                        file.attrs[_TRAINING] = json.dumps(_training.get())

        replace = replace_or_write if max_shard_size is None else _replace_shards
        _write(filepath, save_at, replace, directly=not model.built)

    return save_weights_only


def _hdf5_saver(save):
    @functools.wraps(save)
    def save_model_to_hdf5(model, filepath, overwrite=True, include_optimizer=True):
        def save_at(place):
            with _hdf5_in_memory(model, place) as images, _opened(images, place) as file:
                save(model, file, True, include_optimizer)

        if not _is_local(filepath):
            save(model, filepath, overwrite, include_optimizer)
            return
        path = os.fspath(filepath)
        asks = not overwrite and os.path.isfile(path)
        if not asks or io_utils.ask_to_proceed_with_overwrite(path):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            replace_or_write(path, save_at)

    return save_model_to_hdf5


def _editor_saver(save):
    @functools.wraps(save)
    def save_edited(self, filepath):
        def save_at(place):
            with _hdf5_in_memory(None, place):
                save(self, place)

        if _is_local(filepath) and str(filepath).endswith(".weights.h5"):
            replace_or_write(str(filepath), save_at)
        else:
            save(self, filepath)

    return save_edited


# HDF5


class _Image(io.BytesIO):
    """The content of an HDF5 file. HDF5 shows the representation as the name of the file."""

    def __init__(self, path):
        super().__init__()
        self._path = path

    def __repr__(self):
        return self._path


@contextlib.contextmanager
def _hdf5_in_memory(model, path):
    """A block in which Keras makes HDF5 files in memory, by path, which are written at its end."""
    # Sharded files are found again by their names, which HDF5 shows in ASCII.
    fits = str(path).isascii() and (model is None or saving_lib.is_memory_sufficient(model))
    images = {}
    before = _images.set(images if fits else None)
    try:
        yield images
    finally:
        _images.reset(before)
    for place, image in images.items():
        write_bytes(place, image.getbuffer())


def _opener(open_file):
    @functools.wraps(open_file)
    def _get_h5_file(self, path_or_io, mode=None):
        path, images = str(path_or_io), _images.get()
        if images is None or self.archive or isinstance(path_or_io, io.BytesIO):
            return open_file(self, path_or_io, mode)
        return _opened(images, path, mode or self.mode)

    return _get_h5_file


def _opened(images, path, mode="w"):
    if _images.get() is None:
        return h5py.File(path, mode)
    if mode == "w":
        images[path] = _Image(path)
    return h5py.File(images[path], mode)


# Places


def _is_local(filepath):
    """Whether this names a place on this machine; it may be a stream or an open HDF5 file."""
    if isinstance(filepath, io.IOBase) or not isinstance(filepath, (str, os.PathLike)):
        return False
    return not file_utils.is_remote_path(str(filepath))


def _write(filepath, save_at, replace, directly):
    """Saves in a temporary place and replaces the file; or directly, as into streams."""
    if directly or not _is_local(filepath):
        save_at(filepath)
    else:
        replace(str(filepath), save_at)


def _replace_shards(path, save_at):
    """Replaces the files of sharded weights, the one that lists the others last."""
    directory, name = os.path.split(os.path.realpath(path))
    if not os.access(directory, os.W_OK | os.X_OK):
        save_at(path)
        return
    with full_disk_as_resource_exhausted(path), Staging(directory) as staging:
        save_at(os.path.join(staging.path, name))
        _sync_all(staging.path)
        _move_all(staging.path, directory)


def _replace_parts(path, save_at):
    """Replaces a model in a directory: as a whole if it is new, and otherwise file by file.

    Other files in the directory stay as they are.
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
            with contextlib.suppress(OSError):  # another process made the directory just now
                os.rename(new, path)
                sync_directory(parent)
                return
        _move_all(new, path)


def _move_all(source, target):
    """Moves files over those of the same names; JSON files last, as they describe the others."""
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


# `BackupAndRestore` writes weights, and then the number of the epoch to another file. The weights
# get the number, too, so that one rename changes both. It decides when they are loaded.


def _backup_saver(save):
    @functools.wraps(save)
    def _save_model(self):
        training = {"epoch": self._current_epoch, "batch": self._last_batch_seen}
        before = _training.set(training)
        try:
            with full_disk_as_resource_exhausted(self._weights_path):
                save(self)
        finally:
            _training.reset(before)

    return _save_model


def _backup_loader(load):
    @functools.wraps(load)
    def _load_model(self):
        if _is_local(self.backup_dir):
            _match_record(self._training_metadata_path, self._weights_path)
        load(self)

    return _load_model


def _match_record(record, weights):
    """Makes the file with the number of the epoch agree with the weights that are there."""
    if os.path.exists(weights):
        training = _training_in(weights)
        if training is not None and training != _text_in(record):
            replace_file(record, lambda path: write_bytes(path, training.encode()))
    elif os.path.exists(record):
        os.remove(record)


def _text_in(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def _training_in(weights):
    try:
        with h5py.File(weights, "r") as file:
            return file.attrs.get(_TRAINING)
    except OSError:  # damaged, which Keras reports
        return None
