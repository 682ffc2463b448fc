"""The declarations for type checkers agree with what is bound at run time."""

import inspect
import typing

import pytest

import retrograde as tf
from retrograde._api import declarations
from retrograde._api.lazy import names_in_stub
from retrograde.core.hooks import TAPE_METHODS, VARIABLE_METHODS
from tests.namespaces.test_public_names import STUBS, module_of


def declared_names(cls):
    return {name for name in vars(cls) if name not in vars(type("Empty", (), {}))}


def test_the_methods_of_tapes_are_declared():
    assert {*TAPE_METHODS} - {"__str__"} == declared_names(declarations.TapeMethods) - {"__str__"}


def test_the_methods_of_variables_are_declared():
    private = {"_assign_part"}
    assert {*VARIABLE_METHODS} - private <= declared_names(declarations.VariableMethods)


@pytest.mark.parametrize("cls", [tf.Tensor, tf.Variable])
def test_declared_operators_are_bound(cls):
    operators = declared_names(declarations.Operators) - {"__annotations__", "__hash__"}

    assert len(operators) > 30
    assert [name for name in operators if not callable(getattr(cls, name, None))] == []


def public_functions():
    """Returns the functions in the stubs, by their full names."""
    classes = {}
    for stub in STUBS:
        module = module_of(stub)
        for name in names_in_stub(module):
            value = getattr(module, name)
            if inspect.isfunction(value) and value.__module__.startswith("retrograde."):
                classes[f"{module.__name__}.{name}"] = value
    return classes


FUNCTIONS = public_functions()


def test_the_stubs_list_many_functions():
    assert len(FUNCTIONS) > 500


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_signatures_have_types(name):
    function = inspect.unwrap(FUNCTIONS[name])
    signature = inspect.signature(function)
    untyped = [p for p in signature.parameters.values() if p.annotation is p.empty]

    assert untyped == []
    assert signature.return_annotation is not signature.empty
    typing.get_type_hints(function, include_extras=True)
