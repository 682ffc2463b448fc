"""Generates random programs, which run with retrograde or TensorFlow as `tf`.

While a program is written, each statement of its function is executed on sample values. So shapes
and dtypes are known, and statements that raise or lead to huge or non-finite values are left out.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np

import retrograde as tf
from campaigns._programs import (
    control_statements,  # noqa: F401
    function_calls,
    math_statements,  # noqa: F401  adds to KINDS
)
from campaigns._programs.runner import compile_program, helpers
from campaigns._programs.statement_kinds import KINDS

_MAX_ABS_VALUE = 60.0
_ATTEMPTS = 6  # to write one statement


class Value(NamedTuple):
    """A variable of the generated function, with its shape and dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


class Writer:
    """Generates a program."""

    def __init__(self, seed: int, small: bool = False) -> None:
        self.rng = random.Random(seed)
        self.small = small
        self.nonfinite = not small and self.chance(0.07)  # whether the data has Inf and NaN
        self.scope: dict[str, Any] = {"tf": tf, "np": np} | helpers(tf)
        self.scope["function"] = lambda f: f
        self.setup: list[str] = []
        self.body: list[str] = []
        self.arguments: list[Value] = []
        self.variables: list[Value] = []
        self.values: list[Value] = []
        self.name_count = 0
        self.dtype = self._main_dtype()
        self.shapes = self._broadcastable_shapes()

    def _main_dtype(self) -> str:
        if self.small:
            return self.rng.choice(["float64"] * 6 + ["float32"] * 2)
        return self.rng.choice(["float64"] * 5 + ["float32"] * 5 + ["float16", "bfloat16"])

    def _broadcastable_shapes(self) -> list[tuple[int, ...]]:
        """Returns shapes that broadcast with each other, the largest first."""
        sizes = [1, 2, 3, 4, 5]
        full = tuple(self.rng.choice(sizes) for _ in range(self.rng.choice([0, 1, 1, 2, 2, 2, 3])))
        kind = self.rng.random()
        if kind < 0.05 and full:
            full = (0, *full[1:])
        elif kind < 0.12 and not self.small:
            full = self.rng.choice([(300,), (40, 33), (1030,), (2100,), (7, 1, 129)])
        family = [full, full, full[1:], (*full[:-1], 1)[: len(full)], (1, *full[1:]), ()]
        return [shape for shape in family if len(shape) <= len(full)]

    # Expressions

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, predicate: Any = None) -> Value | None:
        """Picks a value that satisfies `predicate`, preferably a recent one."""
        candidates = [value for value in self.values if predicate is None or predicate(value)]
        if not candidates:
            return None
        return candidates[-1 - min(int(self.rng.expovariate(0.4)), len(candidates) - 1)]

    def new_name(self, prefix: str) -> str:
        self.name_count += 1
        return f"{prefix}{self.name_count}"

    def seed(self) -> int:
        return self.rng.randrange(1000)

    def random_tensor_expression(self, shape: tuple[int, ...], dtype: str) -> str:
        """Returns an expression for a tensor of random values."""
        can_be_special = self.nonfinite and dtype in ("float32", "float64")
        function = "special_numbers" if can_be_special and self.chance(0.5) else "numbers"
        return f"{function}({self.seed()}, {shape}, {dtype!r})"

    def literal(self) -> str:
        return str(self.rng.choice([0.5, -0.3, 2.0, 1.5, -1.0, 0.25]))

    # Statements

    def define(self, line: str) -> None:
        """Adds a line, or block of lines, before the function."""
        exec(compile_program(line), self.scope)
        self.setup.append(line)

    def add(self, name: str, lines: str) -> bool:
        """Adds a statement that assigns a tensor to `name`, unless its value is unusable."""
        try:
            exec(compile(lines, "<statement>", "exec"), self.scope)
        except Exception:
            if not self.chance(0.004):
                return False
            self.body.append(lines)  # all modes must raise the same error
            self.values.append(Value(name, (), self.dtype))
            self.scope[name] = tf.ones([], self.dtype)
            return True
        value = self._usable_value(name)
        if value is None:
            return False
        self.values.append(value)
        self.body.append(lines)
        return True

    def _usable_value(self, name: str) -> Value | None:
        y = self.scope[name]
        if not isinstance(y, tf.Tensor):
            return None
        array = np.asarray(y)
        if array.size > 5000 or array.dtype.kind == "O":
            return None
        if array.size and array.dtype.kind != "b" and not self.nonfinite:
            largest = np.abs(np.asarray(array, complex if array.dtype.kind == "c" else float)).max()
            if not largest <= _MAX_ABS_VALUE:
                return None
        return Value(name, array.shape, y.dtype.name)

    def add_statement(self) -> None:
        """Adds one statement, or none if several attempts fail."""
        for _ in range(_ATTEMPTS):
            name = f"a{self.name_count + 1}"
            lines = self.rng.choice(KINDS)(self, name)
            if lines is not None and self.add(name, lines):
                self.name_count += 1
                return


def generate(seed: int, small: bool = False) -> str:
    """Returns the source of a random program; a `small` one compiles quickly."""
    writer = Writer(seed, small)
    _declare(writer)
    for _ in range(writer.rng.randint(2, 5 if small else 7)):
        writer.add_statement()
    if draws_random_numbers("\n".join(writer.body)):
        writer.setup.append("tf.random.set_seed(3)")
    function_calls.write_calls(writer)
    return "\n".join(writer.setup) + "\n"


def draws_random_numbers(source: str) -> bool:
    """Returns whether the results depend on the library's random numbers."""
    return "tf.random." in source


def is_comparable_with_tensorflow(source: str) -> bool:
    """Returns whether TensorFlow is expected to give the same results.

    `docs/differences.md` lists the differences.
    """
    forward = "ForwardAccumulator" in source and ("custom_" in source or "recompute_" in source)
    moments = "tf.nn.moments" in source and ("second gradient" in source or "hessian" in source)
    others = ("tf.random.", "special_numbers", "tf.py_function")
    return not (forward or moments or any(text in source for text in others))


def _declare(writer: Writer) -> None:
    """Adds arguments, variables and captured constants."""
    rng = writer.rng
    for _ in range(rng.choice([1, 1, 2, 2, 3])):
        dtype = writer.dtype
        if writer.arguments and writer.chance(0.35):
            dtype = rng.choice(
                ["int32", "int64", "bool", "float32", "float64", "complex64", "complex128"]
            )
        value = Value(writer.new_name("x"), rng.choice(writer.shapes), dtype)
        writer.arguments.append(value)
        writer.values.append(value)
        writer.scope[value.name] = writer.scope["numbers"](writer.seed(), value.shape, dtype)
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        dtype = writer.dtype if writer.chance(0.9) else "int32"
        value = Value(writer.new_name("v"), rng.choice(writer.shapes), dtype)
        trainable = ", trainable=False" if writer.chance(0.1) else ""
        initial_value = writer.random_tensor_expression(value.shape, dtype)
        writer.define(f"{value.name} = tf.Variable({initial_value}{trainable})")
        writer.variables.append(value)
        writer.values.append(value)
    for _ in range(rng.choice([0, 0, 0, 1])):
        _declare_constant(writer)


def _declare_constant(writer: Writer) -> None:
    value = Value(writer.new_name("c"), writer.rng.choice(writer.shapes), writer.dtype)
    if writer.chance(0.2):  # too large to be embedded in a compiled program
        value = value._replace(shape=(700, *value.shape[1:]) if value.rank < 2 else (700,))
    writer.define(f"{value.name} = {writer.random_tensor_expression(value.shape, value.dtype)}")
    writer.values.append(value)
