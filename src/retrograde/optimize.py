"""tf.optimize: SciPy's optimizers for variables, with derivatives from the tape.

TensorFlow has no such module. SciPy chooses the steps. The variables are updated in place, and
`GradientTape` computes gradients, Jacobians and Hessian-vector products.
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
_CALLBACK_AT_START = frozenset(
    {"trust-constr"}
)  # its callback is called before the first iteration
_MAX_DENSE = 1 << 24  # elements of a Jacobian that is computed as a matrix


@dataclass
class OptimizeResult:
    """The result of an optimization. The variables contain the solution."""

    loss: float
    success: bool
    message: str
    iterations: int
    evaluations: int
    gradient_norm: float
    history: list[float] = field(repr=False)
    """The loss after each iteration."""
    scipy: Any = field(repr=False)
    """The result of SciPy, with further information of the method."""


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
    """Minimizes `loss()` over `variables`, a variable or a structure of variables.

    `loss` takes no arguments, reads the variables and returns a scalar. `method`, `tol` and
    `options` are passed to `scipy.optimize.minimize`. `bounds` is a pair `(low, high)` for all
    elements, or a structure of pairs that matches the structure of the variables; a bound is a
    number, an array or `None`. Methods that use Hessian-vector products get them from the tape,
    unless `hvp` is false. `progress` prints a line for each iteration. `callback` is called with
    the result so far after each iteration, and may raise `StopIteration` to stop.

    If `loss` raises an exception, the variables get their initial values back.

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
    use_hvp = name in _WITH_HVP if hvp is None else hvp
    progress_log = _ProgressLog(
        parameters, problem, callback, progress, called_at_start=name in _CALLBACK_AT_START
    )
    with parameters.restored_on_error():
        try:
            scipy_result = optimize.minimize(
                problem.value if name in _WITHOUT_GRADIENT else problem.value_and_gradient,
                parameters.values(),
                method=method,
                jac=name not in _WITHOUT_GRADIENT,
                hessp=problem.hvp if use_hvp else None,
                bounds=parameters.bounds(bounds),
                tol=tol,
                options=options,
                callback=progress_log.add_iteration,
            )
        except StopIteration:  # some methods do not catch it
            scipy_result = progress_log.stopped_result()
        parameters.assign(scipy_result.x)
    return progress_log.result(scipy_result)


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
    """Minimizes the sum of squares of `residuals()` over `variables`.

    `residuals` takes no arguments and returns a tensor or a structure of tensors. The tape computes
    the Jacobian in a single vectorized backward pass. With `matrix_free`, or if the Jacobian would
    be very large, only products with it are computed. The other arguments are the same as in
    `scipy.optimize.least_squares` and `minimize`.

    The loss of the result and of its history is SciPy's cost: half the sum of `loss` applied to the
    squared residuals, scaled by `f_scale`.

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
    if method == "lm" and matrix_free is None:
        matrix_free = False  # this method needs a matrix
    cost = _Cost(loss, options.get("f_scale", 1.0))
    problem = _Residuals(residuals, parameters, matrix_free, cost)
    progress_log = _ProgressLog(parameters, problem, None, progress)
    scipy_bounds = parameters.bounds(bounds)
    with parameters.restored_on_error():
        scipy_result = optimize.least_squares(
            problem.values,
            parameters.values(),
            jac=progress_log.wrap_jacobian(problem.jacobian),
            method=method,
            bounds=(-np.inf, np.inf) if scipy_bounds is None else scipy_bounds,
            loss=loss,
            **options,
        )
        parameters.assign(scipy_result.x)
        progress_log.add_last(scipy_result)
    return progress_log.result(scipy_result)


class _Parameters:
    """Converts between variables and one float64 vector."""

    def __init__(self, variables: Any, function: str) -> None:
        self.variables = [_variable(leaf, function) for leaf in nest.flatten(variables)]
        if not self.variables:
            raise ValueError(f"{function}: expected at least one variable.")
        if len({id(v) for v in self.variables}) < len(self.variables):
            raise ValueError(
                f"{function}: expected distinct variables. A variable is listed twice."
            )
        self._shapes = [v._spec.shape for v in self.variables]
        self._ends = np.cumsum([v._spec.size for v in self.variables])

    def values(self) -> np.ndarray:
        """Returns the vector of the values."""
        return np.concatenate([np.ravel(v._array).astype(np.float64) for v in self.variables])

    def assign(self, vector: np.ndarray) -> None:
        """Assigns the values of a vector to the variables."""
        for v, part in zip(self.variables, self.split(vector), strict=True):
            v.assign(part)

    def split(self, vector: np.ndarray) -> list[np.ndarray]:
        """Splits a vector into arrays with the shapes and dtypes of the variables."""
        parts = np.split(vector, self._ends[:-1])
        return [
            part.reshape(shape).astype(v._spec.dtype)
            for part, shape, v in zip(parts, self._shapes, self.variables, strict=True)
        ]

    def join(self, gradients: list) -> np.ndarray:
        """Concatenates the gradients of the variables into a vector; `None` counts as zero."""
        pairs = zip(gradients, self._shapes, strict=True)
        arrays = [np.zeros(shape) if g is None else as_tensor(g)._array for g, shape in pairs]
        return np.concatenate([np.ravel(array).astype(np.float64) for array in arrays])

    def bounds(self, bounds: Any) -> Any:
        """Converts bounds to `scipy.optimize.Bounds`."""
        if bounds is None:
            return None
        from scipy.optimize import Bounds

        pairs = [bounds] * len(self.variables) if _is_pair(bounds) else self._pairs(bounds)
        lows, highs = zip(*pairs, strict=True)
        return Bounds(self._broadcast(lows, -np.inf), self._broadcast(highs, np.inf))

    def _broadcast(self, bounds: Sequence, default: float) -> np.ndarray:
        """Returns lower or upper bounds for each element of each variable."""
        pairs = zip(bounds, self._shapes, strict=True)
        return np.concatenate(
            [_bound(default if bound is None else bound, shape).ravel() for bound, shape in pairs]
        )

    def _pairs(self, bounds: Any) -> list:
        pairs = [(None, None) if pair is None else pair for pair in _pairs_in(bounds)]
        if len(pairs) != len(self.variables) or not all(map(_has_two_elements, pairs)):
            raise ValueError(
                f"bounds: expected a pair (low, high), or one for each of {len(self.variables)} "
                f"variables. Received: {shown(bounds)}."
            )
        return pairs

    @contextlib.contextmanager
    def restored_on_error(self) -> Iterator[None]:
        """Restores the variables if the block raises an exception."""
        before = [v.numpy() for v in self.variables]
        try:
            yield
        except BaseException:
            for v, value in zip(self.variables, before, strict=True):
                v.assign(value)
            raise


def _variable(leaf: Any, function: str) -> Variable:
    variable = source_of(leaf)
    if not isinstance(variable, Variable):
        raise TypeError(
            f"{function}: expected variables. Received: {shown(leaf)} of type "
            f"{type(leaf).__name__!r}."
        )
    if variable._spec.dtype not in dtypes.FLOATING:
        raise TypeError(
            f"{function}: expected a float dtype. Variable '{variable.name}' has dtype "
            f"{variable.dtype.name}."
        )
    return variable


def _bound(bound: Any, shape: tuple) -> np.ndarray:
    array = np.asarray(bound, np.float64)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"bounds: expected bounds that broadcast to the shape {shape} of the variable. "
            f"Received: shape {array.shape}."
        ) from None


def _has_two_elements(pair: Any) -> bool:
    is_sequence = isinstance(pair, (list, tuple)) or (isinstance(pair, np.ndarray) and pair.ndim)
    return bool(is_sequence) and len(pair) == 2


def _is_pair(value: Any) -> bool:
    """Returns whether `value` is one pair `(low, high)`, not a structure of pairs.

    A list is a pair only if its elements are numbers or `None`: arrays in a list are pairs.
    """
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return False
    if isinstance(value, list):
        return all(bound is None or np.ndim(bound) == 0 for bound in value)
    return not any(isinstance(bound, (dict, tuple)) for bound in value)


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
    """A scalar loss with the interface that SciPy expects."""

    def __init__(self, loss: Callable[[], Any], parameters: _Parameters) -> None:
        self._loss = loss
        self._parameters = parameters
        self.evaluations = 0
        self.at = _Evaluated()

    def value(self, vector: np.ndarray) -> float:
        """Returns the loss at a point."""
        self._parameters.assign(vector)
        self.evaluations += 1
        self.at = _Evaluated(vector.copy(), float(self._scalar(self._loss())))
        return self.at.loss

    def value_and_gradient(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """Returns the loss and its gradient at a point."""
        self._parameters.assign(vector)
        self.evaluations += 1
        with self._tape() as tape:
            y = self._scalar(self._loss())
        gradients = tape.gradient(y, self._parameters.variables)
        if all(g is None for g in gradients):
            raise ValueError(
                "The loss does not depend on any of the variables: all gradients are None. Compute "
                "it inside the loss function, with tf operations."
            )
        self.at = _Evaluated(vector.copy(), float(y), self._parameters.join(gradients))
        return self.at.loss, self.at.gradient

    def hvp(self, vector: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Returns the Hessian-vector product at a point."""
        self._parameters.assign(vector)
        with self._tape() as tape:
            y = self._scalar(self._loss())
        vectors = [Tensor(part) for part in self._parameters.split(direction)]
        return self._parameters.join(tape.hvp(y, self._parameters.variables, vectors))

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


_LOSSES: dict[str, Callable[[np.ndarray], Any]] = {  # they return values and derivatives
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
    """A vector of residuals with the interface that SciPy expects."""

    def __init__(
        self, f: Callable[[], Any], parameters: _Parameters, matrix_free: bool | None, cost: _Cost
    ) -> None:
        self._f = f
        self._parameters = parameters
        self._matrix_free = matrix_free
        self._cost = cost
        self.evaluations = 0
        self.at = _Evaluated()

    def values(self, vector: np.ndarray) -> np.ndarray:
        """Returns the residuals at a point."""
        self._parameters.assign(vector)
        self.evaluations += 1
        return np.asarray(self._flat()._array, np.float64)

    def jacobian(self, vector: np.ndarray) -> Any:
        """Returns the Jacobian at a point, as a matrix or a linear operator."""
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
        self.at = _Evaluated(vector.copy(), cost, self._parameters.join(gradients))
        large = r._spec.size * len(vector) > _MAX_DENSE
        if large if self._matrix_free is None else self._matrix_free:
            return self._operator(tape, r, len(vector))
        blocks = tape.jacobian(r, variables, unconnected_gradients="zero")
        rows = [np.reshape(block._array, (r._spec.size, -1)) for block in blocks]
        return np.concatenate(rows, axis=1).astype(np.float64)

    def _operator(self, tape: GradientTape, r: Tensor, size: int) -> Any:
        from scipy.sparse.linalg import LinearOperator

        variables = self._parameters.variables

        def matvec(vector: np.ndarray) -> np.ndarray:
            tangents = [Tensor(part) for part in self._parameters.split(vector.ravel())]
            return tape.jvp(r, variables, tangents, unconnected_gradients="zero").numpy()

        def rmatvec(vector: np.ndarray) -> np.ndarray:
            g = Tensor(vector.ravel().astype(r._spec.dtype))
            gradients = tape.gradient(r, variables, g, unconnected_gradients="zero")
            return self._parameters.join([as_tensor(x) for x in gradients])

        shape = (r._spec.size, size)
        return LinearOperator(shape, matvec=matvec, rmatvec=rmatvec, dtype=np.float64)

    def _flat(self) -> Tensor:
        parts = [as_tensor(leaf) for leaf in nest.flatten(self._f())]
        if not parts:
            raise ValueError("least_squares: the residuals are an empty structure.")
        flat = [reshape(part, shape=(part._spec.size,)) for part in parts]
        return flat[0] if len(flat) == 1 else concat(*flat, axis=0)


class _ProgressLog:
    """Records the iterations, prints them and calls the callback."""

    def __init__(
        self,
        parameters: _Parameters,
        problem: _Problem | _Residuals,
        callback: Any,
        progress: bool,
        called_at_start: bool = False,
    ) -> None:
        """Creates a log; with `called_at_start`, SciPy calls it before the first iteration."""
        self._parameters = parameters
        self._problem = problem
        self._callback = callback
        self._progress = progress
        self._at_start = called_at_start
        self._history: list[float] = []
        self._last: Any = parameters.values()

    def add_iteration(self, intermediate_result: Any) -> None:
        """Records an iteration. Some methods of SciPy pass only the point."""
        self._last = intermediate_result
        if self._at_start:
            self._at_start = False
        else:
            self._add(self._evaluate(), intermediate_result)

    def _evaluate(self) -> _Evaluated:
        """Returns the loss and gradient of the iteration, which may not be at the last point."""
        point, evaluated = getattr(self._last, "x", self._last), self._problem.at
        if evaluated.point is not None and np.array_equal(evaluated.point, point):
            return evaluated
        loss = getattr(self._last, "fun", None)
        return _Evaluated(point, self._problem.value(point) if loss is None else float(loss))

    def _add(self, evaluated: _Evaluated, scipy: Any) -> None:
        self._history.append(evaluated.loss)
        size, count = _norm(evaluated.gradient), len(self._history)
        if self._progress:
            shown = "" if evaluated.gradient is None else f"  gradient {size:.2e}"
            print(f"iteration {count:5d}  loss {evaluated.loss:.6e}{shown}", file=sys.stderr)
        if self._callback is not None:
            self._parameters.assign(evaluated.point)
            self._callback(
                OptimizeResult(
                    loss=evaluated.loss,
                    success=False,
                    message="The optimization is still running.",
                    iterations=count,
                    evaluations=self._problem.evaluations,
                    gradient_norm=size,
                    history=self._history,
                    scipy=scipy,
                )
            )

    def wrap_jacobian(self, jacobian: Callable) -> Callable:
        """Returns `jacobian` so that its calls record iterations.

        Least-squares methods call it at the start and after iterations. A second call at the same
        point is not another iteration.
        """

        def wrapper(point: np.ndarray) -> Any:
            matrix = jacobian(point)
            if not np.array_equal(point, self._last):
                self.add_iteration(point.copy())
            return matrix

        return wrapper

    def add_last(self, scipy_result: Any) -> None:
        """Records the last iteration of a least-squares method if no Jacobian followed it."""
        if not np.array_equal(scipy_result.x, self._last):
            self._add(
                _Evaluated(scipy_result.x, float(scipy_result.cost), scipy_result.grad),
                scipy_result,
            )

    def stopped_result(self) -> Any:
        """Returns a SciPy result for the iteration after which the callback stopped."""
        from scipy.optimize import OptimizeResult as Result

        evaluated = self._evaluate()
        message = "`callback` raised `StopIteration`."
        return Result(
            x=evaluated.point,
            fun=evaluated.loss,
            jac=evaluated.gradient,
            success=False,
            message=message,
        )

    def result(self, scipy_result: Any) -> OptimizeResult:
        """Returns the final result."""
        gradient = getattr(scipy_result, "grad", getattr(scipy_result, "jac", None))
        return OptimizeResult(
            loss=float(getattr(scipy_result, "cost", scipy_result.fun)),
            success=bool(scipy_result.success),
            message=str(scipy_result.message),
            iterations=len(self._history),
            evaluations=self._problem.evaluations,
            gradient_norm=_norm(gradient),
            history=self._history,
            scipy=scipy_result,
        )


def _norm(gradient: np.ndarray | None) -> float:
    return float("nan") if gradient is None else float(np.linalg.norm(gradient))
