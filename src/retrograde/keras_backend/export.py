"""Exports models and layers with `tf.saved_model.save`, for `model.export` and `ExportArchive`."""

from keras.src import backend, layers, tree
from keras.src.export.export_utils import make_tf_tensor_spec
from keras.src.utils import io_utils

import retrograde
from retrograde.core.variable import Variable
from retrograde.program.function import Function
from retrograde.toplevel.module import Module


class RetrogradeExportArchive:
    """Collects endpoints, which are functions with input signatures, and writes a saved model."""

    def __init__(self):
        self._tf_trackable = Module()
        self._endpoints = {}  # functions by name
        self._resources = []  # variables of layers, modules and tables

    @property
    def variables(self):
        """The variables of the tracked layers."""
        return [v for v in self._resources if isinstance(v, backend.Variable)]

    @property
    def trainable_variables(self):
        """The trainable variables of the tracked layers."""
        return [v for v in self.variables if v.trainable]

    @property
    def non_trainable_variables(self):
        """The other variables of the tracked layers."""
        return [v for v in self.variables if not v.trainable]

    def track(self, resource):
        """Adds the variables of a layer, or a `tf.Module`, a variable or a lookup table."""
        if isinstance(resource, layers.Layer):
            if not resource.built:
                raise ValueError(
                    f"The layer {resource.name!r} has no variables yet. It must be built before "
                    "export: call it, or its build method."
                )
            self._resources += resource.variables
        elif isinstance(resource, (Module, Variable, retrograde.lookup.StaticHashTable)):
            self._resources.append(resource)
        else:
            raise ValueError(
                "Invalid resource type. Expected a Keras layer or model, a tf.Module, a variable "
                f"or a lookup table. Received: {resource} of type {type(resource).__name__}."
            )

    def add_endpoint(self, name, fn, input_signature=None, **kwargs):
        """Adds the function `fn` under a name. Returns it as a `tf.function`."""
        if name in self._endpoints:
            raise ValueError(f"The endpoint name {name!r} is already taken.")
        if kwargs:
            raise ValueError(
                f"{', '.join(kwargs)}: these options are only supported with the jax backend."
            )
        if input_signature is not None:
            signature = tree.map_structure(make_tf_tensor_spec, input_signature)
            fn = retrograde.function(fn, input_signature=signature)
        elif not isinstance(fn, Function):
            raise ValueError(
                f"The endpoint {name!r} is not a tf.function, so you must provide an "
                "`input_signature` argument: a list with a keras.InputSpec or a tf.TensorSpec for "
                "each argument."
            )
        elif not _traced_arguments(fn):
            raise ValueError(
                f"The tf.function of the endpoint {name!r} has never been called: you must either "
                "provide a function that has been called, or an `input_signature` argument."
            )
        self._endpoints[name] = fn
        setattr(self._tf_trackable, name, fn)
        return fn

    def track_and_add_endpoint(self, name, resource, input_signature, **kwargs):
        """Tracks a layer and adds its `__call__` as an endpoint."""
        self.track(resource)
        return self.add_endpoint(name, resource.__call__, input_signature, **kwargs)

    def add_variable_collection(self, name, variables):
        """Adds a list of variables, an attribute `name` of the loaded object."""
        if not isinstance(variables, (list, tuple, set)):
            raise ValueError(
                "Expected `variables` to be a list/tuple/set. Received: "
                f"{type(variables).__name__}."
            )
        if not all(isinstance(v, (Variable, backend.Variable)) for v in variables):
            types = sorted({type(v).__name__ for v in variables})
            raise ValueError(
                "Expected all elements in `variables` to be `tf.Variable` instances. Received: "
                f"{', '.join(types)}."
            )
        setattr(self._tf_trackable, name, list(variables))

    def module(self):
        """Returns a module with the endpoints, and the variables that are tracked or used."""
        used = [v for fn in self._endpoints.values() for v in _concrete(fn).variables]
        self._tf_trackable._all_variables = [*self._resources, *used]
        return self._tf_trackable

    def write_out(self, filepath, options=None, verbose=True):
        """Writes the saved model. The first endpoint is also the default signature."""
        if not self._endpoints:
            raise ValueError("No endpoints have been set yet. Call add_endpoint().")
        first = next(iter(self._endpoints.values()))
        signatures = {"serving_default": first} | self._endpoints
        retrograde.saved_model.save(self.module(), filepath, signatures, options)
        if verbose:
            endpoints = "\n\n".join(map(_description, self._endpoints, self._endpoints.values()))
            io_utils.print_msg(
                f"Saved artifact at '{filepath}'. The following endpoints are available:\n\n"
                f"{endpoints}"
            )


def _traced_arguments(function):
    """Returns the arguments of the first trace of a function, or `None` if it has none."""
    traced = [traces.arguments for traces in function._signatures.values() if traces.all]
    return traced[0] if traced else None


def _concrete(function):
    """Returns the concrete function of an endpoint, without adding a trace to the endpoint.

    Traces have sizes in place of unknown dimensions, which must not be saved.
    """
    if function._input_signature is None:
        args, kwargs = _traced_arguments(function)
        return function.get_concrete_function(*args, **kwargs)
    separate = retrograde.function(
        function.python_function, input_signature=function._input_signature
    )
    return separate.get_concrete_function()


def _description(name, function):
    """Returns the text for one endpoint: its name, arguments and results."""
    _, *lines = _concrete(function).pretty_printed_signature().split("\n")
    return "\n".join([f"* Endpoint '{name}'", *lines])
