"""Checkpoint: saves and restores the values of objects."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.files.tensors import write_tensors
from retrograde.io.files import tensorflow_errors
from retrograde.ops.host_callbacks import HostCallback, call_host
from retrograde.train import _attribute_hooks as attribute_hooks
from retrograde.train._files import KIND, CheckpointReader, file_of
from retrograde.train._object_graph import (
    as_variable,
    children_of,
    is_trackable,
    object_graph,
    prune_without_values,
    value_name,
)
from retrograde.train._restoration import Restoration, path_to
from retrograde.train._state import update_state
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.errors import NotFoundError


class CheckpointOptions:
    """Options for writing a checkpoint. Files are always complete when `write` returns.

    Functions in `experimental_write_callbacks` are called afterwards, with the path if they take
    an argument. The other options are accepted but have no effect.
    """

    def __init__(
        self,
        experimental_io_device: Any = None,
        experimental_enable_async_checkpoint: bool = False,
        experimental_write_callbacks: Sequence | None = None,
        enable_async: bool = False,
        experimental_skip_slot_variables: bool = False,
        experimental_sharding_callback: Any = None,
    ) -> None:
        self.experimental_io_device = experimental_io_device
        self.enable_async = enable_async or experimental_enable_async_checkpoint
        self.experimental_enable_async_checkpoint = self.enable_async
        self.experimental_write_callbacks = experimental_write_callbacks
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = experimental_sharding_callback


class Checkpoint:
    """Saves and restores the values of its attributes and of all objects reachable from them.

    Attributes can be variables, modules, models, optimizers, random generators, dataset
    iterators, other checkpoints, and lists and dicts of these. Values are identified by attribute
    paths, not by variable names. With `root`, paths start at the attributes of that object.

    >>> import tempfile
    >>> path = tempfile.mkdtemp()
    >>> v = tf.Variable([1.0, 2.0])
    >>> saved = tf.train.Checkpoint(weights=v).save(path + "/ckpt")
    >>> v.assign([0.0, 0.0]).numpy()
    array([0., 0.], dtype=float32)
    >>> status = tf.train.Checkpoint(weights=v).restore(tf.train.latest_checkpoint(path))
    >>> v.numpy()
    array([1., 2.], dtype=float32)

    A checkpoint is a safetensors file with checksums. It is written atomically, and loading one
    never executes code. Corrupt data raise a `DataLossError`, and a full disk raises a
    `ResourceExhaustedError` and leaves the previous file unchanged.
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        if root is not None:
            _check_trackable("root", root)
        for name, value in kwargs.items():
            _check_trackable(name, value)
            known = None if root is None else children_of(root).get(name)
            if known is not None and known is not value:
                raise ValueError(
                    f"`root` has an attribute `{name}` that is not the object passed as `{name}`. "
                    "Use another name."
                )
        self._root = root
        self._save_counter: Variable | None = None
        for name in sorted(kwargs):  # objects with two paths are named by the first
            setattr(self, name, kwargs[name])

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        attribute_hooks.notify(self)

    def _owners(self) -> list[tuple[Any, dict[str, Any]]]:
        hidden = ("_root", "_save_counter")
        parts = {k: v for k, v in vars(self).items() if k not in hidden and is_trackable(v)}
        if self._save_counter is not None:
            parts["save_counter"] = self._save_counter
        return (
            [(self, parts)]
            if self._root is None
            else [(self, parts), (self._root, children_of(self._root))]
        )

    def _trackable_children(self) -> dict[str, Any]:
        return {name: part for _, parts in reversed(self._owners()) for name, part in parts.items()}

    @property
    def save_counter(self) -> Variable:
        """The number of calls to `save`, which is the number of the last checkpoint."""
        if self._save_counter is None:
            counter = Variable(0, dtype=dtypes.int64, name="save_counter", trainable=False)
            self._save_counter = counter
        return self._save_counter

    # Writing

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Writes the checkpoint `file_prefix` without changing `save_counter`."""
        prefix = _path(file_prefix)

        def write() -> tuple:
            self._write_values(prefix)
            run_callbacks(options, prefix)
            return ()

        if thread.recorders.tracer is not None:  # writes in each call of the function
            call_host(HostCallback("write_checkpoint", write, pure=False, outputs=True))
        else:
            write()
        return prefix

    def sync(self) -> None:
        """Returns when all checkpoints are written, which is always the case."""

    def _write_values(self, prefix: str) -> None:
        nodes = prune_without_values(object_graph(self))
        tensors: dict[str, np.ndarray] = {}
        objects = []
        for node in nodes:
            name = value_name(node.value)
            keys = {name: node.key(name)} if name else {}
            tensors |= {key: _value_of(node.value) for key in keys.values()}
            objects.append({"children": node.children, "values": keys})
        with tensorflow_errors(prefix):
            os.makedirs(os.path.dirname(prefix) or ".", exist_ok=True)
            write_tensors(file_of(prefix), KIND, tensors, objects)

    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Writes the checkpoint `file_prefix-N` and records it as the latest.

        N is the new value of `save_counter`, which is part of the checkpoint.
        """
        path = self._write_next(_path(file_prefix), None)
        update_state(os.path.dirname(path), path, [path])
        run_callbacks(options, path)
        return path

    def _write_next(self, prefix: str, number: int | None) -> str:
        counter = self.save_counter
        before = int(counter)
        try:
            counter.assign_add(1)
            path = f"{prefix}-{int(counter) if number is None else number}"
            self._write_values(path)
        except BaseException:
            counter.assign(before)
            raise
        return path

    # Reading

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> Any:
        """Restores the checkpoint `save_path`. Returns a status object.

        Values of objects that do not exist yet are restored when these are created. Nothing is
        restored if the file is corrupt or if a shape or dtype does not match.
        """
        if save_path is None:
            return InitializationOnlyStatus()
        reader = CheckpointReader(_path(save_path))
        return CheckpointLoadStatus(Restoration(reader, self), self)

    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> Any:
        """Restores the checkpoint `save_path` like `read`, including `save_counter`."""
        try:
            status = self.read(save_path, options)
        except NotFoundError as error:
            raise NotFoundError(
                None,
                None,
                f"Error when restoring from checkpoint at {save_path}: {error.message}",
            ) from None
        self.save_counter  # noqa: B018 (creates it, so that its value is restored)
        return status


def run_callbacks(options: CheckpointOptions | None, path: str) -> None:
    """Calls the write callbacks of `options`."""
    for callback in getattr(options, "experimental_write_callbacks", None) or ():
        callback(*[path][: len(inspect.signature(callback).parameters)])


def _value_of(value: Any) -> np.ndarray:
    variable = as_variable(value)
    if variable is None:
        return np.asarray(value._checkpoint_bytes(), object)
    if variable is value:
        return variable._checkpoint_array()
    # One worker alone may save a Keras model, so values of its metrics are not aggregated.
    return np.asarray(variable._array)


def _check_trackable(name: str, value: Any) -> None:
    if not is_trackable(value):
        raise ValueError(
            f"`Checkpoint` was expecting {name} to be a trackable object: a variable, a module, a "
            f"model, an optimizer, an iterator or similar. Got {shown(value)}."
        )


class CheckpointLoadStatus:
    """The status of a restored checkpoint. Methods return the status itself."""

    def __init__(self, restoration: Restoration, root: Any) -> None:
        self._restoration, self._root = restoration, root

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Raises unless all values were restored and all objects have values."""
        for node_id in self._restoration.unused():
            nodes = self._restoration.nodes
            raise AssertionError(
                f"Unresolved object in checkpoint {path_to(nodes, node_id)}: "
                f"{', '.join(nodes[node_id]['values'].values())}"
            )
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Raises unless all existing objects have restored values."""
        unmatched = self._restoration.unmatched()
        if unmatched:
            shown = unmatched[:10]
            raise AssertionError(
                f"Found {len(unmatched)} Python objects that were not bound to checkpointed "
                "values, likely due to changes in the Python program. Showing "
                f"{len(shown)} of {len(unmatched)} unmatched objects: {shown}"
            )
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Raises unless at least one value was restored."""
        if len(self._restoration.unused()) == sum(
            bool(node["values"]) for node in self._restoration.nodes
        ):
            raise AssertionError(
                "Nothing was restored: no object has a name that is in the checkpoint."
            )
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Silences the warning about values that are not used."""
        self._restoration.warning.detach()
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Does nothing: values are restored immediately."""

    def run_restore_ops(self, session: Any = None) -> None:
        """Does nothing: values are restored immediately."""


class InitializationOnlyStatus(CheckpointLoadStatus):
    """The status of restoring `None`: nothing changes."""

    def __init__(self) -> None:
        pass

    def _raise(self) -> Any:
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_consumed = _raise
    assert_existing_objects_matched = _raise
    assert_nontrivial_match = _raise

    def expect_partial(self) -> InitializationOnlyStatus:
        """Does nothing."""
        return self


def _path(path: Any) -> str:
    """Returns a path, which may be a string tensor, as a string."""
    return os.fsdecode(path.numpy() if isinstance(path, Tensor) else path)
