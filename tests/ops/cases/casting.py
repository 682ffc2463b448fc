"""Casts."""

from __future__ import annotations

import numpy as np

from tests.ops.cases._table import (
    ALL_DTYPES,
    BFLOAT16,
    COMPLEXES,
    between,
    booleans,
    case,
    complexes,
    integers,
)


def cast(x, *, dtype):
    return x.astype(dtype)


case("cast", between(-1, 1, 2, 3), "float32", cast, attrs={"dtype": np.dtype("float32")},
     differences=False, dtypes=ALL_DTYPES)  # fmt: skip
case("cast", between(-1, 1, 2), "half", cast, attrs={"dtype": BFLOAT16}, differences=False)
case("cast", between(-1, 1, 2), "to_complex", cast, attrs={"dtype": np.dtype("complex128")})
case("cast", complexes(2), "to_real", lambda x, **_: np.real(x), attrs={"dtype": np.dtype("f8")},
     dtypes=COMPLEXES)  # fmt: skip
case("cast", complexes(2), "complex", cast, attrs={"dtype": np.dtype("complex128")},
     dtypes=COMPLEXES)  # fmt: skip
case("cast", integers(-5, 5, 2), "int_to_float", cast, attrs={"dtype": np.dtype("float64")})
case("cast", booleans(), "bool_to_float", cast, attrs={"dtype": np.dtype("float64")})
case("cast_discrete", between(-5, 5, 2, 3), "truncates", lambda x, **_: np.trunc(x),
     attrs={"dtype": np.dtype("int32")})  # fmt: skip
case("cast_discrete", between(0, 250, 3), "uint8", lambda x, **_: np.trunc(x),
     attrs={"dtype": np.dtype("uint8")})  # fmt: skip
case("cast_discrete", np.array([0.0, 0.5, -1.0]), "bool", lambda x, **_: x != 0,
     attrs={"dtype": np.dtype(bool)})  # fmt: skip
case("cast_discrete", np.array([1 + 2j, 3.0]), "complex", lambda x, **_: x.real,
     attrs={"dtype": np.dtype("int64")})  # fmt: skip
case("cast_discrete", booleans(), "from_bool", cast, attrs={"dtype": np.dtype("int32")})
