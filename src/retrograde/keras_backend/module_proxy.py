"""Modules with some names replaced."""

import types


class ModuleProxy(types.ModuleType):
    """A module with some names replaced."""

    def __init__(self, module, name=None, **names):
        super().__init__(name or module.__name__)
        vars(self).update(names, _module=module)

    def __getattr__(self, name):
        return getattr(self._module, name)
