"""tf.optimize: SciPy's minimisers on variables, with derivatives from the tape.

TensorFlow has no such module. SciPy chooses the steps; the variables are updated in place, and
gradients, Jacobians and products with the Hessian come from `GradientTape`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from retrograde._api.lazy import from_all
from retrograde.core.tape import GradientTape
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import concat, reshape
from retrograde.values import dtypes, nest
from retrograde.values.arguments import shown
from retrograde.values.conversion import source_of
from retrograde.values.scipy_import import import_scipy

__all__ = ["OptimizeResult", "least_squares", "minimize"]

__getattr__, __dir__ = from_all(__name__)

_WITH_HVP = frozenset({"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"})
_WITHOUT_GRADIENT = frozenset({"nelder-mead", "powell", "cobyla", "cobyqa"})
_CALLED_AT_START = frozenset({"trust-constr"})  # its callback is called before the first iteration
_DENSE = 1 << 24  # elements that a Jacobian may have to be written out


@dataclass
class OptimizeResult:
    """What a minimiser has to say. The variables themselves hold the solution."""

    loss: float
    success: bool
    message: str
    iterations: int
    evaluations: int
    gradient_norm: float
    history: list[float] = field(repr=False)
    """The loss after each iteration."""
    scipy: Any = field(repr=False)
    """SciPy's own result, with whatever else the method tells."""


def minimize(
    loss: Callable[[], Any],
    variables: Any,
    method: str = "L-BFGS-B",
    *,
    bounds: Any = None,
    hvp: bool | None = None,
    tol: float | None = None,
    options: dict | None = None,
    callback: Callable[[OptimizeResult], Any] | None = None,
    progress: bool = False,
) -> OptimizeResult:
    """Makes `loss()` small by changing `variables`, a variable or a structure of them.

    `loss` takes no arguments, reads the variables and returns a scalar. `method`, `tol` and
    `options` are those of `scipy.optimize.minimize`. `bounds` is a pair `(low, high)` for all
    elements, or a structure like that of the variables with a pair for each; the ends are numbers,
    arrays, or `None`. Methods that work with products of the Hessian get them from the tape,
    unless `hvp` is false. `progress` prints a line for each iteration; `callback` is called with
    the result so far, and may raise `StopIteration` to end it.

    If `loss` raises, the variables are put back to where they were.

    >>> x = tf.Variable([-1.2, 1.0], dtype=tf.float64)
    >>> def rosenbrock():
    ...     return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2
    >>> result = tf.optimize.minimize(rosenbrock, x)
    >>> result.success, np.round(x.numpy(), 3)
    (True, array([1., 1.]))
    """
    optimize = import_scipy("optimize", "optimize.minimize")

    parameters = _Parameters(variables, "minimize")
    problem = _Problem(loss, parameters)
    name = str(method).lower()
    wanted = name in _WITH_HVP if hvp is None else hvp
    journal = _Journal(parameters, problem, callback, progress, early=name in _CALLED_AT_START)
    with parameters.restored_on_error():
        try:
            found = optimize.minimize(
                problem.value if name in _WITHOUT_GRADIENT else problem.value_and_gradient,
                parameters.values(),
                method=method,
                jac=name not in _WITHOUT_GRADIENT,
                hessp=problem.hvp if wanted else None,
                bounds=parameters.bounds(bounds),
                tol=tol,
                options=options,
                callback=journal.note,
            )
        except StopIteration:  # some methods leave it to the caller
            found = journal.stopped()
        parameters.assign(found.x)
    return journal.result(found)


def least_squares(
    residuals: Callable[[], Any],
    variables: Any,
    method: str = "trf",
    *,
    bounds: Any = None,
    loss: str | Callable = "linear",
    matrix_free: bool | None = None,
    progress: bool = False,
    **options: Any,
) -> OptimizeResult:
    """Makes the squares of `residuals()` small by changing `variables`.

    `residuals` takes no arguments and returns a tensor, or a structure of them. The Jacobian comes
    from the tape, in one walk; with `matrix_free`, or if it would be very large, only
    products with it are computed. The other arguments are those of `scipy.optimize.least_squares`
    and of `minimize`.

    The loss of the result and of its history is SciPy's cost: half the sum of the squares, or of
    what the `loss` makes of them, with `f_scale` taken into account.

    >>> t = np.linspace(0.0, 1.0, 20)
    >>> measured = 3.0 * np.exp(-2.0 * t)
    >>> amplitude, rate = tf.Variable(1.0, dtype=tf.float64), tf.Variable(1.0, dtype=tf.float64)
    >>> result = tf.optimize.least_squares(
    ...     lambda: amplitude * tf.exp(-rate * t) - measured, [amplitude, rate]
    ... )
    >>> round(float(amplitude), 6), round(float(rate), 6)
    (3.0, 2.0)
    """
    optimize = import_scipy("optimize", "optimize.least_squares")

    parameters = _Parameters(variables, "least_squares")
    free = False if matrix_free is None and method == "lm" else matrix_free
    cost = _Cost(loss, options.get("f_scale", 1.0))
    problem = _Residuals(residuals, parameters, free, cost)
    journal = _Journal(parameters, problem, None, progress)
    both = parameters.bounds(bounds)
    with parameters.restored_on_error():
        found = optimize.least_squares(
            problem.values,
            parameters.values(),
            jac=journal.noting(problem.jacobian),
            method=method,
            bounds=both if both is not None else (-np.inf, np.inf),
            loss=loss,
            **options,
        )
        parameters.assign(found.x)
        journal.note_last(found)
    return journal.result(found)


class _Parameters:
    """Variables as one vector of float64, and back."""

    def __init__(self, variables: Any, what: str) -> None:
        self.variables = [_variable(leaf, what) for leaf in nest.flatten(variables)]
        if not self.variables:
            raise ValueError(f"{what}: there are no variables to change.")
        if len({id(v) for v in self.variables}) < len(self.variables):
            raise ValueError(f"{what}: a variable is listed twice. Expected each variable once.")
        self._shapes = [v._spec.shape for v in self.variables]
        self._ends = np.cumsum([v._spec.size for v in self.variables])

    def values(self) -> np.ndarray:
        """The vector."""
        return np.concatenate([np.ravel(v._array).astype(np.float64) for v in self.variables])

    def assign(self, vector: np.ndarray) -> None:
        """Puts the values of the vector into the variables."""
        for v, part in zip(self.variables, self.split(vector), strict=True):
            v.assign(part)

    def split(self, vector: np.ndarray) -> list[np.ndarray]:
        """The parts of a vector, in the shapes and dtypes of the variables."""
        parts = np.split(vector, self._ends[:-1])
        return [
            part.reshape(shape).astype(v._spec.dtype)
            for part, shape, v in zip(parts, self._shapes, self.variables, strict=True)
        ]

    def joined(self, gradients: list) -> np.ndarray:
        """Returns one vector of the gradients of the variables; `None` is zero."""
        pairs = zip(gradients, self._shapes, strict=True)
        arrays = [np.zeros(shape) if g is None else as_tensor(g)._array for g, shape in pairs]
        return np.concatenate([np.ravel(array).astype(np.float64) for array in arrays])

    def bounds(self, bounds: Any) -> Any:
        """SciPy's form of what the user gave."""
        if bounds is None:
            return None
        from scipy.optimize import Bounds

        pairs = [bounds] * len(self.variables) if _is_pair(bounds) else self._pairs(bounds)
        lows, highs = zip(*pairs, strict=True)
        return Bounds(self._all_ends(lows, -np.inf), self._all_ends(highs, np.inf))

    def _all_ends(self, ends: Sequence, fallback: float) -> np.ndarray:
        """Returns the ends of one side, for each element of each variable."""
        pairs = zip(ends, self._shapes, strict=True)
        return np.concatenate(
            [_end(fallback if end is None else end, shape).ravel() for end, shape in pairs]
        )

    def _pairs(self, bounds: Any) -> list:
        pairs = [(None, None) if pair is None else pair for pair in _pairs_in(bounds)]
        if len(pairs) != len(self.variables) or not all(map(_has_two_ends, pairs)):
            raise ValueError(
                f"bounds: expected a pair (low, high), or one for each of {len(self.variables)} "
                f"variables. Received: {shown(bounds)}."
            )
        return pairs

    @contextlib.contextmanager
    def restored_on_error(self) -> Iterator[None]:
        """A block after which the variables are as before if it fails."""
        before = [v.numpy() for v in self.variables]
        try:
            yield
        except BaseException:
            for v, value in zip(self.variables, before, strict=True):
                v.assign(value)
            raise


def _variable(leaf: Any, what: str) -> Variable:
    held = source_of(leaf)
    if not isinstance(held, Variable):
        raise TypeError(
            f"{what}: expected variables to change. Received: {shown(leaf)} of type "
            f"{type(leaf).__name__!r}."
        )
    if held._spec.dtype not in dtypes.FLOATING:
        raise TypeError(
            f"{what}: variable '{held.name}' has dtype {held.dtype.name}. Expected a float dtype."
        )
    return held


def _end(end: Any, shape: tuple) -> np.ndarray:
    array = np.asarray(end, np.float64)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"bounds: expected ends that broadcast to the shape {shape} of their variable. "
            f"Received: shape {array.shape}."
        ) from None


def _has_two_ends(pair: Any) -> bool:
    is_sequence = isinstance(pair, (list, tuple)) or (isinstance(pair, np.ndarray) and pair.ndim)
    return bool(is_sequence) and len(pair) == 2


def _is_pair(value: Any) -> bool:
    """Whether `value` is `(low, high)` and not a structure of pairs. The ends of a list are
    numbers: arrays in a list are pairs themselves."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return False
    if isinstance(value, list):
        return all(end is None or np.ndim(end) == 0 for end in value)
    return not any(isinstance(end, (dict, tuple)) for end in value)


def _pairs_in(bounds: Any) -> list:
    if bounds is None or _is_pair(bounds):
        return [bounds]
    if isinstance(bounds, (dict, list, tuple)):
        return [pair for child in nest.children(bounds) for pair in _pairs_in(child)]
    return [bounds]


@dataclass
class _Evaluated:
    """The point that was evaluated last, with its loss and gradient."""

    point: np.ndarray | None = None
    loss: float = float("nan")
    gradient: np.ndarray | None = None


class _Problem:
    """A scalar loss, as SciPy wants it."""

    def __init__(self, loss: Callable[[], Any], parameters: _Parameters) -> None:
        self._loss = loss
        self._parameters = parameters
        self.evaluations = 0
        self.at = _Evaluated()

    def value(self, vector: np.ndarray) -> float:
        """The loss at a point."""
        self._parameters.assign(vector)
        self.evaluations += 1
        self.at = _Evaluated(vector.copy(), float(self._scalar(self._loss())))
        return self.at.loss

    def value_and_gradient(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss and its gradient at a point."""
        self._parameters.assign(vector)
        self.evaluations += 1
        with self._tape() as tape:
            y = self._scalar(self._loss())
        gradients = tape.gradient(y, self._parameters.variables)
        if all(g is None for g in gradients):
            raise ValueError(
                "The loss does not depend on any of the variables: all gradients are None. Compute "
                "it inside the function that is minimised, with tf operations."
            )
        self.at = _Evaluated(vector.copy(), float(y), self._parameters.joined(gradients))
        return self.at.loss, self.at.gradient

    def hvp(self, vector: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """The product of the Hessian at a point with a direction."""
        self._parameters.assign(vector)
        with self._tape() as tape:
            y = self._scalar(self._loss())
        vectors = [Tensor(part) for part in self._parameters.split(direction)]
        return self._parameters.joined(tape.hvp(y, self._parameters.variables, vectors))

    def _tape(self) -> GradientTape:
        tape = GradientTape(watch_accessed_variables=False)
        tape.watch(self._parameters.variables)
        return tape

    def _scalar(self, y: Any) -> Tensor:
        y = as_tensor(y)
        if y._spec.size != 1:
            raise ValueError(
                f"The loss must be a scalar. Received: shape {y._spec.shape}. Use tf.reduce_mean "
                "or tf.reduce_sum."
            )
        return reshape(y, shape=()) if y._spec.ndim else y


def _soft_l1(z: np.ndarray) -> tuple:
    root = np.sqrt(1.0 + z)
    return 2.0 * (root - 1.0), 1.0 / root


def _huber(z: np.ndarray) -> tuple:
    root = np.sqrt(np.maximum(z, 1.0))
    return np.where(z <= 1.0, z, 2.0 * root - 1.0), 1.0 / root


_LOSSES: dict[str, Callable[[np.ndarray], Any]] = {  # of squares: the values and the derivatives
    "linear": lambda z: (z, np.ones_like(z)),
    "soft_l1": _soft_l1,
    "huber": _huber,
    "cauchy": lambda z: (np.log1p(z), 1.0 / (1.0 + z)),
    "arctan": lambda z: (np.arctan(z), 1.0 / (1.0 + z * z)),
}


class _Cost:
    """SciPy's cost of residuals `r`: `0.5 * sum(scale**2 * rho((r / scale)**2))`."""

    def __init__(self, loss: str | Callable, scale: float) -> None:
        self._rho = loss if callable(loss) else _LOSSES.get(loss, _LOSSES["linear"])
        self._scale = scale

    def __call__(self, r: np.ndarray) -> tuple[float, np.ndarray]:
        """Returns the cost and its derivatives with respect to the residuals."""
        values, derivatives, *_ = self._rho((r / self._scale) ** 2)
        return 0.5 * float(np.sum(self._scale**2 * values)), derivatives * r


class _Residuals:
    """A vector of residuals, as SciPy wants it."""

    def __init__(
        self, f: Callable[[], Any], parameters: _Parameters, free: bool | None, cost: _Cost
    ) -> None:
        self._f = f
        self._parameters = parameters
        self._free = free
        self._cost = cost
        self.evaluations = 0
        self.at = _Evaluated()

    def values(self, vector: np.ndarray) -> np.ndarray:
        """The residuals at a point."""
        self._parameters.assign(vector)
        self.evaluations += 1
        return np.asarray(self._flat()._array, np.float64)

    def jacobian(self, vector: np.ndarray) -> Any:
        """Their Jacobian at a point: a matrix, or an operator that multiplies with it."""
        self._parameters.assign(vector)
        variables = self._parameters.variables
        with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(variables)
            r = self._flat()
        cost, weights = self._cost(np.asarray(r._array, np.float64))
        gradients = tape.gradient(r, variables, Tensor(weights.astype(r._spec.dtype)))
        if all(g is None for g in gradients):
            raise ValueError(
                "The residuals do not depend on any of the variables: all gradients are None. "
                "Compute them inside the function, with tf operations."
            )
        self.at = _Evaluated(vector.copy(), cost, self._parameters.joined(gradients))
        large = r._spec.size * len(vector) > _DENSE
        if large if self._free is None else self._free:
            return self._operator(tape, r, len(vector))
        blocks = tape.jacobian(r, variables, unconnected_gradients="zero")
        rows = [np.reshape(block._array, (r._spec.size, -1)) for block in blocks]
        return np.concatenate(rows, axis=1).astype(np.float64)

    def _operator(self, tape: GradientTape, r: Tensor, size: int) -> Any:
        from scipy.sparse.linalg import LinearOperator

        variables = self._parameters.variables

        def forwards(vector: np.ndarray) -> np.ndarray:
            tangents = [Tensor(part) for part in self._parameters.split(vector.ravel())]
            return tape.jvp(r, variables, tangents, unconnected_gradients="zero").numpy()

        def backwards(vector: np.ndarray) -> np.ndarray:
            g = Tensor(vector.ravel().astype(r._spec.dtype))
            found = tape.gradient(r, variables, g, unconnected_gradients="zero")
            return self._parameters.joined([as_tensor(x) for x in found])

        shape = (r._spec.size, size)
        return LinearOperator(shape, matvec=forwards, rmatvec=backwards, dtype=np.float64)

    def _flat(self) -> Tensor:
        parts = [as_tensor(leaf) for leaf in nest.flatten(self._f())]
        if not parts:
            raise ValueError("least_squares: the residuals are an empty structure.")
        flat = [reshape(part, shape=(part._spec.size,)) for part in parts]
        return flat[0] if len(flat) == 1 else concat(*flat, axis=0)


class _Journal:
    """Listens to the iterations."""

    def __init__(
        self,
        parameters: _Parameters,
        problem: _Problem | _Residuals,
        callback: Any,
        progress: bool,
        early: bool = False,
    ) -> None:
        """`early` says that the first call of `note` comes before the first iteration."""
        self._parameters = parameters
        self._problem = problem
        self._callback = callback
        self._progress = progress
        self._early = early
        self._history: list[float] = []
        self._last: Any = parameters.values()

    def note(self, intermediate_result: Any) -> None:
        """Takes down one iteration. Some of SciPy's methods tell no more than the point."""
        self._last = intermediate_result
        if self._early:
            self._early = False
        else:
            self._add(self._evaluated(), intermediate_result)

    def _evaluated(self) -> _Evaluated:
        """Returns the loss and the gradient of an iteration, which need not be the last point."""
        point, at = getattr(self._last, "x", self._last), self._problem.at
        if at.point is not None and np.array_equal(at.point, point):
            return at
        loss = getattr(self._last, "fun", None)
        return _Evaluated(point, self._problem.value(point) if loss is None else float(loss))

    def _add(self, at: _Evaluated, scipy: Any) -> None:
        self._history.append(at.loss)
        size, count = _norm(at.gradient), len(self._history)
        if self._progress:
            shown = "" if at.gradient is None else f"  gradient {size:.2e}"
            print(f"iteration {count:5d}  loss {at.loss:.6e}{shown}", file=sys.stderr)
        if self._callback is not None:
            self._parameters.assign(at.point)
            self._callback(
                OptimizeResult(
                    loss=at.loss,
                    success=False,
                    message="The minimiser is still at work.",
                    iterations=count,
                    evaluations=self._problem.evaluations,
                    gradient_norm=size,
                    history=self._history,
                    scipy=scipy,
                )
            )

    def noting(self, jacobian: Callable) -> Callable:
        """Returns `jacobian`, which least-squares methods call at the start and after iterations.

        A second call at the same point is not another iteration.
        """

        def noted(point: np.ndarray) -> Any:
            matrix = jacobian(point)
            if not np.array_equal(point, self._last):
                self.note(point.copy())
            return matrix

        return noted

    def note_last(self, found: Any) -> None:
        """Takes down the last iteration of a least-squares method if no Jacobian followed it."""
        if not np.array_equal(found.x, self._last):
            self._add(_Evaluated(found.x, float(found.cost), found.grad), found)

    def stopped(self) -> Any:
        """Returns SciPy's result for the last iteration, after which the callback stopped."""
        from scipy.optimize import OptimizeResult as Result

        at = self._evaluated()
        message = "`callback` raised `StopIteration`."
        return Result(x=at.point, fun=at.loss, jac=at.gradient, success=False, message=message)

    def result(self, found: Any) -> OptimizeResult:
        """What is left to say at the end."""
        gradient = getattr(found, "grad", getattr(found, "jac", None))
        return OptimizeResult(
            loss=float(getattr(found, "cost", found.fun)),
            success=bool(found.success),
            message=str(found.message),
            iterations=len(self._history),
            evaluations=self._problem.evaluations,
            gradient_norm=_norm(gradient),
            history=self._history,
            scipy=found,
        )


def _norm(gradient: np.ndarray | None) -> float:
    return float("nan") if gradient is None else float(np.linalg.norm(gradient))
