"""Tests inlined kernels: their source computes the same bits as the kernels."""

import numpy as np
import pytest

from retrograde.core.apply import PRIMITIVES
from retrograde.core.rules import Spec
from retrograde.program.inline_kernels import NAMES, WRITERS
from tests.ops.cases import CASES, FLOATS

INLINED_CASES = [case for case in CASES if case.primitive.name in WRITERS]


def test_inlined_kernels_are_names_of_primitives():
    assert set(WRITERS) <= set(PRIMITIVES)


@pytest.mark.parametrize("case", INLINED_CASES, ids=str)
def test_inlined_source_matches_the_kernel_bit_for_bit(case):
    write = WRITERS[case.primitive.name]
    for dtype in (None, *FLOATS, np.dtype(np.int32)):
        inputs = [x if dtype is None else x.astype(dtype) for x in map(np.real, case.inputs)]
        names = [f"x{i}" for i in range(len(inputs))]
        source = write([Spec(x.shape, x.dtype) for x in inputs], *names, **case.attrs)
        if source is None:
            continue
        with np.errstate(all="ignore"):
            actual = eval(source, NAMES, dict(zip(names, inputs, strict=True)))
            expected = case.primitive(*inputs, **case.attrs)

        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        assert actual.tobytes() == expected.tobytes()


def test_half_precision_integers_and_complex_numbers_are_not_inlined():
    for name, attrs in {
        "matmul": {},
        "sum": {"axis": (0,), "keepdims": False},
        "mean": {"axis": (0,), "keepdims": False},
        "sum_to": {"shape": (3,)},
    }.items():
        count = 2 if name == "matmul" else 1
        for dtype in ("float16", "int32", "complex64"):
            spec = Spec((3, 3), np.dtype(dtype))
            assert WRITERS[name]([spec] * count, *["a", "b"][:count], **attrs) is None
