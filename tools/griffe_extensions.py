"""Tells griffe, which reads source code without importing it, about names and methods.

The names that a stub imports are public, and `_api/hooks.py` registers methods of tapes and
variables that are defined in other packages.
"""

import copy

import griffe

from retrograde import GradientTape, Variable
from retrograde.core.hooks import TAPE_METHODS, VARIABLE_METHODS
from retrograde.core.recorders import Recorder


class Stubs(griffe.Extension):
    """Exports every name of a stub, as type checkers do for `from a import x as x`."""

    def on_module_members(self, *, mod, **kwargs):  # noqa: ARG002 (griffe passes more)
        """Exports the names of a stub, before griffe merges it with the source."""
        if mod.filepath.suffix == ".pyi":
            mod.exports = list(mod.members)


class Methods(griffe.Extension):
    """Adds the registered methods to `GradientTape` and `Variable`."""

    def on_package(self, *, pkg, **kwargs):  # noqa: ARG002 (griffe passes more)
        """Adds the methods after griffe has read the whole package."""
        for cls, methods in ((GradientTape, TAPE_METHODS), (Variable, VARIABLE_METHODS)):
            for name, module in methods.items():
                if not name.startswith("_") and not hasattr(Recorder, name):
                    self._add(pkg, cls, name, module)

    def _add(self, pkg, cls, name, module):
        path = f"{cls.__module__}.{cls.__qualname__}".removeprefix("retrograde.")
        method = copy.copy(pkg[f"{module}.{name}".removeprefix("retrograde.")])
        # The first parameter is the tape or the variable.
        method.parameters = griffe.Parameters(*list(method.parameters)[1:])
        pkg[path].set_member(name, method)
