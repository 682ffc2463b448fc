"""Identities that look at what passes through them."""

from tests.ops.cases._table import unary

unary("check_numerics", lambda x, **_: x, -1, 1, attrs={"message": "a test"})
