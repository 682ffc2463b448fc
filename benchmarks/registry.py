"""Registers the workloads of a module."""


class Registry(dict):
    """A dict of workloads by name. As a decorator, it adds a function under its name."""

    def __call__(self, setup):
        self[setup.__name__] = setup
        return setup
