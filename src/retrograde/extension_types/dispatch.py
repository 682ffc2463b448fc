"""Dispatch of public functions to implementations for user-defined types.

The first implementation for a function replaces it in the public namespaces with a wrapper, which
checks the types of arguments. Functions without implementations are not changed.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from retrograde.core.tensor import Tensor
from retrograde.extension_types import batching
from retrograde.extension_types.types import ExtensionType
from retrograde.toplevel.shaping import identity, stop_gradient
from retrograde.values.arguments import shown
from retrograde.values.composites import NotOneTensor
from retrograde.values.conversion import tensor_or_variable

UNARY = """
zeros_like ones_like debugging.check_numerics math.abs math.softplus math.sign math.real math.imag
math.angle math.round cast dtypes.saturate_cast math.sigmoid math.log_sigmoid math.conj
math.reciprocal_no_nan math.erfinv math.ndtri math.erfcinv math.ceil math.sqrt math.exp math.rsqrt
math.acos math.floor bitwise.invert math.acosh math.asin math.asinh math.atan math.atanh math.cos
math.cosh math.digamma math.erf math.erfc math.expm1 math.is_finite math.is_inf math.is_nan
math.lgamma math.log math.log1p math.logical_not math.negative math.nextafter math.reciprocal
math.rint math.sin math.sinh math.square math.tan math.tanh nn.relu6 nn.leaky_relu nn.gelu
nn.log_softmax nn.elu nn.relu nn.selu nn.softsign strings.regex_full_match strings.regex_replace
strings.length strings.substr strings.to_number strings.to_hash_bucket strings.as_string
io.decode_base64 io.encode_base64 strings.lower strings.upper strings.unicode_transcode
strings.strip strings.to_hash_bucket_fast strings.to_hash_bucket_strong math.special.dawsn
math.special.expint math.special.fresnel_cos math.special.fresnel_sin math.special.spence
math.bessel_i0 math.bessel_i0e math.bessel_i1 math.bessel_i1e math.special.bessel_k0
math.special.bessel_k0e math.special.bessel_k1 math.special.bessel_k1e math.special.bessel_j0
math.special.bessel_j1 math.special.bessel_y0 math.special.bessel_y1 clip_by_value nn.silu
image.random_brightness image.stateless_random_brightness image.adjust_brightness
image.adjust_gamma image.convert_image_dtype io.decode_compressed
""".split()  # noqa: SIM905

BINARY = """
math.divide math.multiply math.subtract math.scalar_mul math.pow dtypes.complex math.truediv
math.divide_no_nan math.multiply_no_nan math.floordiv math.logical_xor math.equal math.not_equal
math.add math.xdivy math.xlog1py bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor
bitwise.left_shift bitwise.right_shift math.atan2 math.floormod math.greater math.greater_equal
math.less math.less_equal math.logical_and math.logical_or math.maximum math.minimum
math.squared_difference math.xlogy math.zeta nn.sigmoid_cross_entropy_with_logits
""".split()  # noqa: SIM905

ASSERTIONS = """
debugging.assert_equal debugging.assert_none_equal debugging.assert_near debugging.assert_less
debugging.assert_less_equal debugging.assert_greater debugging.assert_greater_equal
""".split()  # noqa: SIM905


class _Implementation(NamedTuple):
    """A function that users registered for an API, and the types that it applies to."""

    function: Callable  # as registered
    types: dict[str, Any]  # annotations of parameters of the API
    call: Callable[[Callable, inspect.BoundArguments], Any]


class _Api:
    """A public function that is replaced by a wrapper, and its implementations."""

    def __init__(self, original: Callable) -> None:
        self.original = original
        self.signature = inspect.signature(original)
        self.implementations: list[_Implementation] = []
        self.wrapper = _wrap(self)
        _apis[id(original)] = _apis[id(self.wrapper)] = self
        _replace(original, self.wrapper)

    def restore(self) -> None:
        """Removes the wrapper."""
        del _apis[id(self.original)], _apis[id(self.wrapper)]
        _replace(self.wrapper, self.original)


_apis: dict[int, _Api] = {}  # by the ids of original functions and of their wrappers


def dispatch_for_api(api: Callable, *signatures: dict[str, Any]) -> Callable:
    """Decorates an implementation of `api`, a public function, for other types of arguments.

    Each of `signatures` maps parameters to types: a class, `list[...]` or a union. The
    implementation is called if all arguments of one signature have these types. Without
    signatures, the annotations of the function are used. The decorated function has the parameters
    of `api`; it may omit `name`.

    >>> class Masked(tf.experimental.ExtensionType):
    ...     values: tf.Tensor
    ...     mask: tf.Tensor
    >>> @tf.experimental.dispatch_for_api(tf.reduce_sum)
    ... def masked_sum(input_tensor: Masked, axis=None, keepdims=False):
    ...     values = tf.where(input_tensor.mask, input_tensor.values, 0.0)
    ...     return tf.reduce_sum(values, axis, keepdims)
    >>> tf.reduce_sum(Masked([1.0, 2.0, 3.0], [True, False, True])).numpy()
    np.float32(4.0)
    """
    entry = _entry_of(api)
    for signature in signatures:
        _check_signature(signature, entry)

    def decorator(function: Callable) -> Callable:
        given = signatures or (_annotations(function, entry),)
        _check_parameters(function, entry)
        accepts_name = "name" in inspect.signature(function).parameters

        def call(_original: Callable, bound: inspect.BoundArguments) -> Any:
            arguments = dict(bound.arguments)
            if not accepts_name:
                arguments.pop("name", None)
            return function(**arguments)

        for signature in given:
            entry.implementations.append(_Implementation(function, dict(signature), call))
        return function

    return decorator


def dispatch_for_unary_elementwise_apis(x_type: Any) -> Callable:
    """Decorates a function that implements all unary elementwise functions for a type.

    It receives the function, with all arguments but the first, and the value.

    >>> class Degrees(tf.experimental.ExtensionType):
    ...     value: tf.Tensor
    >>> @tf.experimental.dispatch_for_unary_elementwise_apis(Degrees)
    ... def apply(function, x):
    ...     return Degrees(function(x.value))
    >>> tf.round(tf.abs(Degrees(-1.6))).value.numpy()
    np.float32(2.0)
    """
    return _decorator_for_apis("unary elementwise", UNARY, (x_type,))


def dispatch_for_binary_elementwise_apis(x_type: Any, y_type: Any) -> Callable:
    """Decorates a function that implements all binary elementwise functions for two types.

    It receives the function and the two values.

    >>> class Degrees(tf.experimental.ExtensionType):
    ...     value: tf.Tensor
    >>> @tf.experimental.dispatch_for_binary_elementwise_apis(Degrees, Degrees)
    ... def apply(function, x, y):
    ...     return Degrees(function(x.value, y.value))
    >>> tf.add(Degrees(1.0), Degrees(2.0)).value.numpy()
    np.float32(3.0)
    """
    return _decorator_for_apis("binary elementwise", BINARY, (x_type, y_type))


def dispatch_for_binary_elementwise_assert_apis(x_type: Any, y_type: Any) -> Callable:
    """Decorates a function that implements the assertions on two values for two types.

    It receives the assertion, such as `tf.debugging.assert_equal`, and the two values.
    """
    return _decorator_for_apis("binary elementwise assert", ASSERTIONS, (x_type, y_type))


def unregister_dispatch_for(dispatch_target: Callable) -> None:
    """Removes an implementation that one of the decorators registered."""
    registered = False
    for entry in {id(entry): entry for entry in _apis.values()}.values():
        kept = [i for i in entry.implementations if i.function is not dispatch_target]
        registered |= len(kept) < len(entry.implementations)
        entry.implementations[:] = kept
        if not kept:
            entry.restore()
    if not registered:
        raise ValueError(
            f"Function {dispatch_target} was not registered using a `@dispatch_for_*` decorator."
        )


def _decorator_for_apis(kind: str, paths: list[str], annotations: tuple) -> Callable:
    for annotation in annotations:
        _check_type(annotation)

    def decorator(handler: Callable) -> Callable:
        entries = [_entry_of(_public(path)) for path in paths]
        for entry in entries:
            names = list(entry.signature.parameters)[: len(annotations)]
            wanted = dict(zip(names, annotations, strict=True))
            for other in entry.implementations:
                if other.types == wanted and other.call.__name__ == "call_elementwise":
                    raise ValueError(
                        f"A {kind} dispatch handler ({other.function}) has already been registered "
                        f"for {', '.join(map(str, annotations))}."
                    )
            entry.implementations.append(
                _Implementation(handler, wanted, _elementwise_call(handler, names))
            )
        return handler

    return decorator


def _public(path: str) -> Any:
    """Returns a public object by its path below `tf`."""
    return functools.reduce(getattr, path.split("."), importlib.import_module("retrograde"))


def _elementwise_call(handler: Callable, names: list[str]) -> Callable:
    def call_elementwise(original: Callable, bound: inspect.BoundArguments) -> Any:
        others = {k: v for k, v in bound.arguments.items() if k not in names}
        values = [bound.arguments[name] for name in names]
        if not others:
            return handler(original, *values)
        keywords = dict(others)
        return handler(lambda *xs: original(*xs, **keywords), *values)

    return call_elementwise


# Signatures


def _check_signature(signature: dict[str, Any], entry: _Api) -> None:
    for name, annotation in signature.items():
        if name not in entry.signature.parameters:
            raise ValueError(f"signature includes annotation for unknown parameter {name!r}.")
        _check_type(annotation)


def _annotations(function: Callable, entry: _Api) -> dict[str, Any]:
    hints = typing.get_type_hints(function)
    signature = {name: hint for name, hint in hints.items() if name != "return"}
    if not signature:
        raise ValueError(
            "The dispatch_for_api decorator must be called with at least one signature, or applied "
            "to a function that has type annotations on its parameters."
        )
    _check_signature(signature, entry)
    return signature


def _check_parameters(function: Callable, entry: _Api) -> None:
    names = [name for name in inspect.signature(function).parameters if name != "name"]
    if names != [name for name in entry.signature.parameters if name != "name"]:
        raise ValueError(
            f"Dispatch function's signature {inspect.signature(function)} does not match API's "
            f"signature ({', '.join(entry.signature.parameters)})."
        )


def _check_type(annotation: Any) -> None:
    for part in typing.get_args(annotation) or (annotation,):
        if typing.get_origin(annotation) not in (None, list, typing.Union, types.UnionType) or (
            not isinstance(part, type) and part is annotation
        ):
            raise ValueError(
                f"Type annotation {shown(annotation)} is not currently supported by dispatch. "
                "Supported annotations: type objects, List[...], and Union[...]"
            )
        if part is not annotation:
            _check_type(part)


def _fits(value: Any, annotation: Any) -> bool:
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list:
        is_list = isinstance(value, (list, tuple)) and len(value) > 0
        return is_list and all(_fits(part, inner[0]) for part in value)
    if origin is not None:
        return any(_fits(value, part) for part in inner)
    if annotation is Tensor:
        return tensor_or_variable(value) is not None
    return isinstance(value, annotation)


# Wrappers


def _entry_of(api: Any) -> _Api:
    """Returns the entry of a public function, which is replaced by a wrapper on first use."""
    if id(api) in _apis:
        return _apis[id(api)]
    module = getattr(api, "__module__", None) or ""
    if not callable(api) or not module.startswith("retrograde."):
        raise ValueError(f"{api} does not support dispatch.")
    return _Api(api)


def _wrap(entry: _Api) -> Callable:
    @functools.wraps(entry.original)
    def dispatching(*args: Any, **kwargs: Any) -> Any:
        implementation, bound = _find(entry, args, kwargs)
        if implementation is None:
            return entry.original(*args, **kwargs)
        return implementation.call(entry.original, bound)

    return dispatching


def _find(entry: _Api, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Returns the implementation for these arguments, and the arguments by name."""
    if not entry.implementations:
        return None, None
    try:
        bound = entry.signature.bind(*args, **kwargs)
    except TypeError:  # the original function raises it
        return None, None
    for implementation in entry.implementations:
        wanted = implementation.types.items()
        if all(n in bound.arguments and _fits(bound.arguments[n], t) for n, t in wanted):
            return implementation, bound
    return None, None


def _replace(function: Callable, replacement: Callable) -> None:
    """Replaces a function in the module that defines it and in the public namespaces."""
    for name, module in list(sys.modules.items()):
        public = name.partition(".")[0] in ("retrograde", "tensorflow")
        if public and (hasattr(module, "__getattr__") or name == function.__module__):
            for attribute, value in list(vars(module).items()):
                if value is function:
                    setattr(module, attribute, replacement)


def handler_of(operation: Any) -> Callable | None:
    """Returns a function that calls the implementation for `operation`, if there is one.

    `operation` is a primitive or a function that users may have stored before it was replaced.
    """
    name = getattr(operation, "name", None) or operation.__name__
    for entry in list(_apis.values()):
        original = inspect.unwrap(entry.original)
        if entry.implementations and (original is operation or original.__name__ == name):
            return functools.partial(_dispatch_or_refuse, entry)
    return _HANDLERS.get(name)


def _dispatch_or_refuse(entry: _Api, *args: Any, **kwargs: Any) -> Any:
    implementation, bound = _find(entry, args, kwargs)
    if implementation is None:
        raise NotOneTensor(
            next(x for x in (*args, *kwargs.values()) if isinstance(x, ExtensionType))
        )
    return implementation.call(entry.original, bound)


def _map_components(function: Callable, value: ExtensionType, **_: Any) -> Any:
    return value._with_components(iter([function(x) for x in value._components()]))


def _map_fn(fn: Callable, elems: Any, dtype: Any = None, *_: Any, **kwargs: Any) -> Any:
    signature = kwargs.get("fn_output_signature")
    return batching.map_fn(fn, elems, dtype if signature is None else signature)


_HANDLERS: dict[str, Callable] = {
    "identity": functools.partial(_map_components, identity),
    "stop_gradient": functools.partial(_map_components, stop_gradient),
    "map_fn": _map_fn,
}
