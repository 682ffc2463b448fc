"""Objects that stand for names that are not there.

A test file imports many names and uses few. So a missing name raises an exception when a test uses
it, not when the file is imported.
"""

from __future__ import annotations

import contextlib
import functools
import types
import unittest

_loading = 0


class NotApplicable(unittest.SkipTest):
    """Raised if a test needs an internal name, a graph, a session or TensorFlow 1."""


class MissingPublic(Exception):
    """Raised if a test needs a public name that the library does not have."""


@contextlib.contextmanager
def loading():
    """Lets absent names be used while a test file is imported."""
    global _loading
    _loading += 1
    try:
        yield
    finally:
        _loading -= 1


def not_applicable(*arguments, **keywords):
    """Raises `NotApplicable`; usable in place of any function."""
    raise NotApplicable("not applicable: graph mode, sessions and TensorFlow 1")


class Absent:
    """A name that is not there. `kind` is "public" if TensorFlow documents it."""

    def __init__(self, name, kind="internal"):
        self.__dict__.update(_name=name, _kind=kind)

    def _use(self):
        if not _loading:
            if self._kind == "public":
                raise MissingPublic(self._name)
            raise NotApplicable(f"not applicable: {self._name} is {self._kind}")

    def __call__(self, *arguments, **keywords):
        self._use()
        target = arguments[0] if len(arguments) == 1 and not keywords else None
        if isinstance(target, types.FunctionType):  # a decorator
            return self._skipped(target)
        if isinstance(target, type) and issubclass(target, unittest.TestCase):
            return unittest.skip(f"not applicable: {self._name} is {self._kind}")(target)
        return self

    def _skipped(self, function):
        @functools.wraps(function)
        def skipped(*arguments, **keywords):
            self._use()

        del skipped.__wrapped__
        return skipped

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self._use()
        return Absent(f"{self._name}.{name}", self._kind)

    def __mro_entries__(self, bases):
        return ()

    def __iter__(self):
        self._use()
        return iter(())

    def __enter__(self):
        self._use()
        return self

    def __exit__(self, *error):
        return False

    def __len__(self):
        self._use()
        return 0

    def __getitem__(self, key):
        self._use()
        return self

    def __bool__(self):
        self._use()
        return False

    def __add__(self, other):
        self._use()
        return self

    def __instancecheck__(self, value):
        self._use()
        return False
