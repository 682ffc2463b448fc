"""Kernels written out give what the kernels give, bit by bit."""

import numpy as np
import pytest

from retrograde.core.apply import PRIMITIVES
from retrograde.core.program import Call
from retrograde.core.rules import Spec
from retrograde.program import inline_kernels
from retrograde.program.inline_kernels import NAMES, inline
from tests.ops.cases import CASES, FLOATS

WRITTEN = [case for case in CASES if case.primitive.name in inline_kernels._WRITERS]


def test_only_primitives_are_written_out():
    assert set(inline_kernels._WRITERS) <= set(PRIMITIVES)


@pytest.mark.parametrize("case", WRITTEN, ids=str)
def test_what_is_written_out_is_what_the_kernel_gives(case):
    call = Call(case.primitive, tuple(range(len(case.inputs))), case.attrs, (len(case.inputs),))
    for dtype in (None, *FLOATS, np.dtype(np.int32)):
        inputs = [x if dtype is None else x.astype(dtype) for x in map(np.real, case.inputs)]
        names = [f"x{i}" for i in range(len(inputs))]
        text = inline(call, [Spec(x.shape, x.dtype) for x in inputs], names)
        if text is None:
            continue
        with np.errstate(all="ignore"):
            actual = eval(text, NAMES, dict(zip(names, inputs, strict=True)))
            expected = case.primitive(*inputs, **case.attrs)

        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        assert actual.tobytes() == expected.tobytes()


def test_half_precision_and_integers_are_left_to_the_kernel():
    for name, attrs in {
        "matmul": {},
        "sum": {"axis": (0,), "keepdims": False},
        "mean": {"axis": (0,), "keepdims": False},
        "sum_to": {"shape": (3,)},
    }.items():
        count = 2 if name == "matmul" else 1
        call = Call(PRIMITIVES[name], tuple(range(count)), attrs, (count,))
        for dtype in ("float16", "int32", "complex64"):
            spec = Spec((3, 3), np.dtype(dtype))
            assert inline(call, [spec] * count, ["a", "b"][:count]) is None
