"""Identities that check their input."""

from tests.ops.cases._table import case, integers, unary

unary("check_numerics", lambda x, **_: x, -1, 1, attrs={"message": "a test"})
case("check_range", integers(0, 5, 2, 3), "inside", lambda x, **_: x,
     attrs={"low": 0, "high": 5, "requirement": "expected numbers"})  # fmt: skip
case("check_range", integers(3, 9, 4, dtype="int64"), "above", lambda x, **_: x,
     attrs={"low": 3, "high": None, "requirement": "expected numbers"})  # fmt: skip
