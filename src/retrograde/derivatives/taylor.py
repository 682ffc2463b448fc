"""Taylor mode: all derivatives up to some order with respect to one source, in one forward pass.

Each value that depends on the source has a truncated Taylor series in the displacement of the
source. The coefficients of a call's results are computed from its inputs' coefficients. If no rule
of a call reads a value that depends on the source, the call is linear in it, and its transposed
rules map all coefficients at once. Elementary functions satisfy a differential equation, which
yields the coefficients one by one. Other calls have no series here; nested gradients replace them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core import indexed_slices
from retrograde.core.batching import Batched, batching, examples_of
from retrograde.core.plans import Plan
from retrograde.core.recorders import thread
from retrograde.core.rules import ARRAY, Spec, identity_rule, values_read
from retrograde.core.tape import TapeSnapshot
from retrograde.core.tensor import Tensor, wrap
from retrograde.derivatives.jacobian import nested_gradients, pull_back, pull_back_with_specs
from retrograde.ops import elementary, shaping
from retrograde.values import dtypes


class NoSeries(Exception):
    """Raised if a call has no Taylor series here."""


Series = list  # the coefficients from order 1 on; order 0 is the value itself


_NESTED = 2  # up to this order, nested gradients are faster


def partials(tape: Any, target: Any, orders: list[tuple], make_tape: Callable) -> list:
    """Returns the derivatives of `target` with respect to each tuple of tensors in `orders`.

    High orders with respect to one source use Taylor mode, all others nested gradients. `tape` has
    the recorded calls and keeps recording; `make_tape` creates empty tapes.
    """
    derivatives: dict[int, Tensor | None] = {}
    recorded = TapeSnapshot(
        list(tape._entries), tape._roots, tape._runs_on_tensors(thread.recorders)
    )
    for source in {order[0]._id: order[0] for order in orders}.values():
        pure = [k for k, order in enumerate(orders) if all(x is source for x in order)]
        highest = max((len(orders[k]) for k in pure), default=0)
        if highest > _NESTED and _one_to_one(target, source):
            try:
                series = derivatives_up_to(recorded, target, source, highest, make_tape)
            except NoSeries:
                continue
            derivatives.update((k, series[len(orders[k]) - 1]) for k in pure)
    rest = [k for k in range(len(orders)) if k not in derivatives]
    derivatives.update(
        zip(rest, nested_gradients(tape, target, [orders[k] for k in rest]), strict=True)
    )
    return [derivatives[k] for k in range(len(orders))]


def _one_to_one(target: Any, source: Any) -> bool:
    """Returns whether both have the same number of elements, which are real."""
    real = all(x._spec.dtype in dtypes.FLOATING for x in (target, source))
    return real and target._spec.size == source._spec.size


def derivatives_up_to(
    recorded: TapeSnapshot, target: Any, source: Any, order: int, make_tape: Callable
) -> list:
    """Returns the derivatives of `target` of orders 1 to `order` along the all-ones direction."""
    if any(plan.user_code for plan, *_ in recorded.entries):
        raise NoSeries
    g = np.ones(target._spec.shape, target._spec.dtype)
    _, shapes = pull_back_with_specs(recorded._replace(on_tensors=False), target, g, [source])
    ones = np.ones(source._spec.shape, source._spec.dtype)
    first = Tensor(ones) if recorded.on_tensors else ones
    series_by_id: dict[int, Series] = {source._id: [first] + [None] * (order - 1)}
    forward = _ForwardPass(recorded.on_tensors, order, make_tape)
    for plan, ids, out, saved, attrs in recorded.entries:
        outs = dict(out) if type(out) is tuple else {out: shapes.get(out)}
        inputs = [series_by_id.get(i) for i in ids]
        if any(i in shapes for i in outs) and any(inputs):
            results = forward.propagate(plan, inputs, saved, attrs, list(outs.values()))
            series_by_id.update((i, y) for i, y in zip(outs, results, strict=True) if y is not None)
    series = series_by_id.get(target._id, [None] * order)
    scaled = [_scale(math.factorial(k), c) for k, c in enumerate(series, 1)]
    shape = source._spec.shape
    return [None if d is None else shaping.reshape(d, shape=shape) for d in scaled]


class _ForwardPass:
    """Propagates Taylor series through calls."""

    def __init__(self, on_tensors: bool, order: int, make_tape: Callable) -> None:
        self._on_tensors = on_tensors
        self._order = order
        self._make_tape = make_tape

    def propagate(
        self, plan: Plan, inputs: list[Series | None], saved: tuple, attrs: dict, specs: list[Spec]
    ) -> list[Series | None]:
        """Returns the series of the outputs of a call; `None` for constant outputs."""
        if _is_propagate_linear(plan, inputs):
            return self._propagate_linear(plan, inputs, saved, attrs, specs)
        series = SERIES.get(plan.name)
        if series is None:
            raise NoSeries
        values = saved if self._on_tensors else [x._array for x in saved]
        return [series(values, *([None] * self._order if s is None else s for s in inputs))]

    def _propagate_linear(
        self, plan: Plan, inputs: list[Series | None], saved: tuple, attrs: dict, specs: list[Spec]
    ) -> list[Series | None]:
        """Maps all coefficients at once, with the transposed rules."""
        rules = dict(plan.rules)
        positions = [i for i, s in enumerate(inputs) if s is not None]
        if plan.joint is None and all(rules.get(i) is identity_rule for i in positions):
            return [[_sum(column) for column in zip(*(inputs[i] for i in positions), strict=True)]]
        orders = [k for k in range(self._order) if any(inputs[i][k] is not None for i in positions)]
        zeros = [Tensor(np.zeros(spec.shape, spec.dtype)) for spec in specs]
        with self._make_tape() as tape:
            tape.watch([g for g in zeros if g._spec.dtype in dtypes.INEXACT])
            g = zeros[0] if len(zeros) == 1 else tuple(zeros)
            pulled = _pull_back_inputs(plan, positions, g, saved, attrs)
        targets, seeds = [], []
        with batching(len(orders)) as level:
            for i, x in pulled:
                stacked = _stack([inputs[i][k] for k in orders], x)
                seed = Batched(stacked, level)
                targets.append(x)
                seeds.append(wrap(seed) if self._on_tensors else seed)
            transposed = TapeSnapshot(tape._entries, tape._roots, self._on_tensors)
            gradients = pull_back(transposed, targets, seeds, zeros)
            broadcast_to = shaping.broadcast_to
            unbatched = [
                None if y is None else examples_of(y, level, broadcast_to) for y in gradients
            ]
        return [None if y is None else self._to_series(y, orders) for y in unbatched]

    def _to_series(self, y: Any, orders: list[int]) -> Series:
        parts = iter(shaping.unstack(y, axis=0))
        return [next(parts) if k in orders else None for k in range(self._order)]


def _is_propagate_linear(plan: Plan, inputs: list) -> bool:
    """Returns whether no rule for a varying input reads a varying value."""
    varies = [s is not None for s in inputs]
    rules = [rule for i, rule in plan.rules if varies[i]]
    reads = [values_read(rule, len(inputs), skip=1) for rule in rules]
    if plan.joint is not None:
        reads = [values_read(plan.joint, len(inputs), skip=2)]
    return not any(
        of_y == ARRAY or any(v and r == ARRAY for v, r in zip(varies, of_inputs, strict=True))
        for of_y, *of_inputs in reads
    )


def _pull_back_inputs(
    plan: Plan, positions: list[int], g: Any, saved: tuple, attrs: dict
) -> list[tuple]:
    if plan.joint is None:
        results = [(i, rule(g, *saved, **attrs)) for i, rule in plan.rules if i in positions]
    else:
        needed = tuple([i in positions for i in range(len(plan.connected))])
        results = list(enumerate(plan.joint(needed, g, *saved, **attrs)))
    return [(i, indexed_slices.as_dense(x)) for i, x in results if x is not None]


def _stack(coefficients: list, like: Tensor) -> Any:
    """Stacks coefficients along a first axis; `None` becomes zeros like `like`."""
    spec = like._spec
    filled = [np.zeros(spec.shape, spec.dtype) if c is None else c for c in coefficients]
    return shaping.stack(*filled, axis=0)


# Arithmetic with coefficients; `None` is zero


def _scale(factor: float, x: Any) -> Any:
    if x is None or factor == 1:
        return x
    return x * getattr(x.dtype, "numpy_dtype", x.dtype).type(factor)


def _product(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a * b


def _sum(terms: Any) -> Any:
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def _difference(a: Any, b: Any) -> Any:
    if a is None:
        return _scale(-1, b)
    return a if b is None else a - b


def _convolution_term(a: list, b: list, k: int, start: int = 0, stop: int | None = None) -> Any:
    """Returns the sum of a[j] * b[k - j] for j in range(start, stop)."""
    return _sum(_product(a[j], b[k - j]) for j in range(start, k + 1 if stop is None else stop))


def _derivative_terms(x: Series) -> list:
    """Returns the coefficients of x times their order, from order 1 on."""
    return [None, *(_scale(j, c) for j, c in enumerate(x, 1))]


def _solve_ode(dx: list, factor: Callable[[int], Any], y: list, order: int) -> None:
    """Appends the solution of y' = factor * x' to `y`. `factor(k)` needs y up to order k."""
    w = []
    for k in range(1, order + 1):
        w.append(factor(k - 1))
        y.append(_scale(1 / k, _sum(_product(dx[j], w[k - j]) for j in range(1, k + 1))))


# One function per primitive. `values` are y and the inputs, as far as the rules read them.


def _tanh(values: Any, x: Series) -> Series:
    y = [values[0]]
    _solve_ode(_derivative_terms(x), lambda k: _minus_square(y, k, 1), y, len(x))
    return y[1:]


def _minus_square(y: list, k: int, constant: float) -> Any:
    """Returns the coefficient of order k of `constant - y * y`."""
    square = _convolution_term(y, y, k)
    return constant - square if k == 0 else _scale(-1, square)


def _sigmoid(values: Any, x: Series) -> Series:
    y = [values[0]]
    _solve_ode(
        _derivative_terms(x), lambda k: _difference(y[k], _convolution_term(y, y, k)), y, len(x)
    )
    return y[1:]


def _exp(values: Any, x: Series) -> Series:
    y = [values[0]]
    _solve_ode(_derivative_terms(x), lambda k: y[k], y, len(x))
    return y[1:]


def _sin(values: Any, x: Series) -> Series:
    return _sine_and_cosine(values[1], x)[0][1:]


def _cos(values: Any, x: Series) -> Series:
    return _sine_and_cosine(values[1], x)[1][1:]


def _sine_and_cosine(values_at: Any, x: Series) -> tuple[list, list]:
    dx = _derivative_terms(x)
    sine, cosine = [elementary.sin(values_at)], [elementary.cos(values_at)]
    for k in range(1, len(x) + 1):
        sine.append(_scale(1 / k, _sum(_product(dx[j], cosine[k - j]) for j in range(1, k + 1))))
        cosine.append(_scale(-1 / k, _sum(_product(dx[j], sine[k - j]) for j in range(1, k + 1))))
    return sine, cosine


def _log(values: Any, x: Series) -> Series:
    """Solves x * y' = x'."""
    at, dx, dy = values[1], _derivative_terms(x), [None]
    for k in range(1, len(x) + 1):
        known = _sum(_product(dy[j], x[k - j - 1]) for j in range(1, k))
        rest = _difference(dx[k], known)
        dy.append(None if rest is None else rest / at)
    return [_scale(1 / k, d) for k, d in enumerate(dy[1:], 1)]


def _sqrt(values: Any, x: Series) -> Series:
    """Solves y * y = x."""
    y = [values[0]]
    for k in range(1, len(x) + 1):
        rest = _difference(x[k - 1], _convolution_term(y, y, k, 1, k))
        y.append(None if rest is None else _scale(0.5, rest / y[0]))
    return y[1:]


def _multiply(values: Any, a: Series, b: Series) -> Series:
    a, b = [values[1], *a], [values[2], *b]
    return [_convolution_term(a, b, k) for k in range(1, len(a))]


def _square(values: Any, x: Series) -> Series:
    return _multiply((None, values[1], values[1]), x, x)


def _divide(values: Any, a: Series, b: Series) -> Series:
    """Solves y * b = a."""
    y, below = [values[0]], [values[2], *b]
    for k in range(1, len(a) + 1):
        rest = _difference(a[k - 1], _convolution_term(below, y, k, 1))
        y.append(None if rest is None else rest / below[0])
    return y[1:]


SERIES = {
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "exp": _exp,
    "sin": _sin,
    "cos": _cos,
    "log": _log,
    "sqrt": _sqrt,
    "multiply": _multiply,
    "square": _square,
    "divide": _divide,
}
