"""How a module of workloads lists its functions."""


class Registry(dict):
    """Workloads by name. Called as a decorator, it adds a function under the function's name."""

    def __call__(self, setup):
        self[setup.__name__] = setup
        return setup
