"""Checkpoint: the values of objects in a file, and back."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.variable import Variable
from retrograde.files.tensors import write_tensors
from retrograde.io.files import tensorflow_errors
from retrograde.train import _attribute_hooks as attribute_hooks
from retrograde.train._files import KIND, CheckpointReader, file_of
from retrograde.train._objects import (
    graph_of,
    is_trackable,
    leading_to_values,
    parts_of,
    value_name,
    variable_in,
)
from retrograde.train._restoring import Restoration, path_to
from retrograde.train._state import update_state
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.errors import NotFoundError


class CheckpointOptions:
    """How a checkpoint is written. Files are always written whole before `write` returns.

    Functions in `experimental_write_callbacks` are called afterwards, with the path if they take
    an argument. The other options are accepted for programs that give them.
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
    """Saves and restores the values of objects that its attributes hold, and of their parts.

    These are variables, modules, models, optimizers, random generators, iterators over datasets,
    lists and dicts of them, and other checkpoints. Parts are known by the names of the attributes
    that lead to them, not by those of variables. With `root`, names begin at the attributes
    of that object.

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
    never executes code. Damaged data raise a `DataLossError`, and a full disk raises a
    `ResourceExhaustedError` and leaves the previous file as it was.
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        if root is not None:
            _check_trackable("root", root)
        for name, value in kwargs.items():
            _check_trackable(name, value)
            known = None if root is None else parts_of(root).get(name)
            if known is not None and known is not value:
                raise ValueError(
                    f"`root` has an attribute `{name}` that is not the object given as `{name}`. "
                    "Give it another name."
                )
        self._root = root
        self._save_counter: Variable | None = None
        for name in sorted(kwargs):  # what two of them lead to is named by the first
            setattr(self, name, kwargs[name])

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        attribute_hooks.notice(self)

    def _owners(self) -> list[tuple[Any, dict[str, Any]]]:
        hidden = ("_root", "_save_counter")
        own = {k: v for k, v in vars(self).items() if k not in hidden and is_trackable(v)}
        if self._save_counter is not None:
            own["save_counter"] = self._save_counter
        return (
            [(self, own)]
            if self._root is None
            else [(self, own), (self._root, parts_of(self._root))]
        )

    def _trackable_children(self) -> dict[str, Any]:
        return {name: part for _, parts in reversed(self._owners()) for name, part in parts.items()}

    @property
    def save_counter(self) -> Variable:
        """How often `save` was called: the number of the last checkpoint."""
        if self._save_counter is None:
            counter = Variable(0, dtype=dtypes.int64, name="save_counter", trainable=False)
            self._save_counter = counter
        return self._save_counter

    # Writing

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Writes a checkpoint that is called `file_prefix`, and counts nothing."""
        prefix = os.fspath(file_prefix)
        self._write_values(prefix)
        call_back(options, prefix)
        return prefix

    def _write_values(self, prefix: str) -> None:
        nodes = leading_to_values(graph_of(self))
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
        """Writes the next checkpoint, `file_prefix` and its number, and records it as the latest.

        The number is that of `save_counter`, which is part of the checkpoint.
        """
        path = self._write_next(os.fspath(file_prefix), None)
        update_state(os.path.dirname(path), path, [path])
        call_back(options, path)
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
        """Restores the checkpoint that is called `save_path`.

        Values for parts that are not there yet are kept for when they will be. Nothing is restored
        if the file is damaged, or if a shape or a dtype does not fit. Returns a
        status, whose methods check what was found.
        """
        if save_path is None:
            return InitializationOnlyStatus()
        reader = CheckpointReader(os.fspath(save_path))
        return CheckpointLoadStatus(Restoration(reader, self), self)

    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> Any:
        """Restores the checkpoint that is called `save_path`, as `read` does; counts on from it."""
        try:
            status = self.read(save_path, options)
        except NotFoundError as error:
            raise NotFoundError(
                None,
                None,
                f"Error when restoring from checkpoint at {save_path}: {error.message}",
            ) from None
        self.save_counter  # noqa: B018 (a value may be waiting for it)
        return status


def call_back(options: CheckpointOptions | None, path: str) -> None:
    """Calls the functions that want to know of a checkpoint."""
    for callback in getattr(options, "experimental_write_callbacks", None) or ():
        callback(*[path][: len(inspect.signature(callback).parameters)])


def _value_of(value: Any) -> np.ndarray:
    variable = variable_in(value)
    if variable is None:
        return np.asarray(value._checkpoint_bytes(), object)
    return np.asarray(variable._array)


def _check_trackable(name: str, value: Any) -> None:
    if not is_trackable(value):
        raise ValueError(
            f"`Checkpoint` was expecting {name} to be a trackable object: a variable, a module, a "
            f"model, an optimizer, an iterator or the like. Got {shown(value)}."
        )


class CheckpointLoadStatus:
    """What came of restoring a checkpoint. Each method returns the status itself."""

    def __init__(self, restoration: Restoration, root: Any) -> None:
        self._restoration, self._root = restoration, root

    def assert_consumed(self) -> CheckpointLoadStatus:
        """All values of the checkpoint went to objects, and all objects got values."""
        for place in self._restoration.unused():
            nodes = self._restoration.nodes
            raise AssertionError(
                f"Unresolved object in checkpoint {path_to(nodes, place)}: "
                f"{', '.join(nodes[place]['values'].values())}"
            )
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """All objects that are there by now got values."""
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
        """At least one value found its object."""
        if len(self._restoration.unused()) == sum(
            bool(node["values"]) for node in self._restoration.nodes
        ):
            raise AssertionError(
                "Nothing was restored: no object has a name that the checkpoint knows."
            )
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Says that it is all right if values are left over: there will be no warning."""
        self._restoration.warning.detach()
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Does nothing: values are restored at once."""

    def run_restore_ops(self, session: Any = None) -> None:
        """Does nothing: values are restored at once."""


class InitializationOnlyStatus(CheckpointLoadStatus):
    """What comes of restoring no checkpoint: everything stays as it is."""

    def __init__(self) -> None:
        pass

    def _refuse(self) -> Any:
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_consumed = _refuse
    assert_existing_objects_matched = _refuse
    assert_nontrivial_match = _refuse

    def expect_partial(self) -> InitializationOnlyStatus:
        """Does nothing."""
        return self
