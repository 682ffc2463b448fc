"""Generated source consists only of checked literals and names."""

import gc
import weakref

import numpy as np
import pytest

from retrograde.values.source import SourceWriter, is_literal, is_name, literal, numbered

LITERALS = [None, True, 3, -(10**30), "it's", (), (1,), (1, ("a", None))]
NOT_LITERALS = [1.5, b"x", [1], {1: 2}, np.int64(3), np.True_, (1, [2]), slice(1), object()]


class EvilInt(int):
    def __repr__(self):
        return "__import__('os')"


@pytest.mark.parametrize("value", LITERALS, ids=repr)
def test_literals_evaluate_to_their_values(value):
    assert is_literal(value)
    assert eval(literal(value), {"__builtins__": {}}) == value


@pytest.mark.parametrize(
    "value", [*NOT_LITERALS, EvilInt(1), (EvilInt(1),)], ids=lambda v: type(v).__name__
)
def test_other_values_are_not_literals(value):
    assert not is_literal(value)
    with pytest.raises(TypeError, match="as a literal"):
        literal(value)


def test_numbered_names():
    assert numbered("x", 3) == "x3"
    for wrong in (-1, True, "1", 1.0):
        with pytest.raises(TypeError, match="Expected a non-negative integer"):
            numbered("x", wrong)


@pytest.mark.parametrize("text", ["", "1a", "a b", "a.b", "lambda", "a\n", 3, None])
def test_names_are_identifiers(text):
    assert not is_name(text)


class TestWriter:
    def test_a_function_with_its_objects(self):
        writer = SourceWriter(start=10)
        kernel = writer.name(np.add, "kernel")
        writer.write("def f(x):")
        writer.write(f"y = {kernel}(x, start)", "", "return y", depth=1)

        assert writer.source == "def f(x):\n    y = kernel(x, start)\n\n    return y\n"
        f = writer.define("f", "test")
        assert f(1) == 11
        assert f.__code__.co_filename == "<retrograde test>"
        assert "f" not in f.__globals__

    def test_names_of_objects_are_unique(self):
        writer = SourceWriter(a=1)
        first, second = object(), object()

        assert writer.name(first, "a") == "a_" == writer.name(first, "b")
        assert writer.name(second, "a") == "a__"
        assert writer.name(third := object(), "os.system('x')") == "object"
        assert writer.name(object(), "sin") == "sin_"  # np.sin is not hidden
        assert writer.namespace["object"] is third

    def test_objects_that_the_source_does_not_use_are_freed(self):
        class Thing:
            pass

        thing = Thing()
        freed = weakref.ref(thing)
        writer = SourceWriter(thing=thing)
        writer.write("def f(): return 1")
        f = writer.define("f", "test")
        del writer, thing
        gc.collect()

        assert freed() is None and f() == 1
