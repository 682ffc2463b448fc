"""Tells the documentation that the names which a stub imports are public."""

import griffe


class Stubs(griffe.Extension):
    """Exports every name of a stub, as type checkers do for `from a import x as x`."""

    def on_module_members(self, *, mod, **kwargs):  # noqa: ARG002 (griffe passes more)
        """Called for each module that is read, before stubs and sources are merged."""
        if mod.filepath.suffix == ".pyi":
            mod.exports = list(mod.members)
