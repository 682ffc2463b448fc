"""Exponential moving averages of variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.math import minimum
from retrograde.ops.conversion import as_tensor
from retrograde.toplevel.shaping import cast
from retrograde.train._object_graph import as_variable
from retrograde.values.arguments import brief, shown


class ExponentialMovingAverage:
    """Maintains exponential moving averages of variables.

    Each update sets `average = decay * average + (1 - decay) * value`. If `num_updates`, a number
    or a variable, is given, the decay is `min(decay, (1 + n) / (10 + n))`, where `n` is its value.
    `zero_debias` has no effect: averages start at the values of the variables.

    >>> v = tf.Variable(1.0)
    >>> ema = tf.train.ExponentialMovingAverage(decay=0.9)
    >>> ema.apply([v])
    >>> _ = v.assign(2.0)
    >>> ema.apply([v])
    >>> ema.average(v).numpy()
    np.float32(1.1)
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay, self._num_updates, self._name = decay, num_updates, name
        self._averages: dict[int, tuple[Variable, Variable]] = {}

    def _trackable_children(self) -> dict[str, Any]:
        return {"averages": [average for _, average in self._averages.values()]}

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> None:
        """Updates the averages with the current values of variables. Creates missing averages."""
        variables = [_check_variable(value) for value in var_list or ()]
        decay = self._current_decay()
        for variable in variables:
            average = self.average(variable)
            if average is None:
                name = self.average_name(variable)
                average = Variable(variable.value(), trainable=False, name=name)
                self._averages[id(variable)] = variable, average
            else:
                weight = cast(1.0 - decay, average.dtype)
                average.assign_sub((average - variable) * weight)

    def _current_decay(self) -> Tensor:
        decay = as_tensor(self._decay)
        if self._num_updates is None:
            return decay
        updates = cast(as_tensor(self._num_updates), decay.dtype)
        return minimum(decay, (1.0 + updates) / (10.0 + updates))

    def average(self, var: Any) -> Variable | None:
        """Returns the average of a variable, or `None` if there is none yet."""
        _, average = self._averages.get(id(as_variable(var)), (None, None))
        return average

    def average_name(self, var: Any) -> str:
        """Returns the name of the average of a variable."""
        variable = as_variable(var)
        if variable is None:
            raise TypeError(f"average_name: expected a variable. Received: {brief(var)}.")
        return f"{variable.name.removesuffix(':0')}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Variable]:
        """Returns a dict from average name to variable.

        It contains the given variables, or all variables that have an average.
        """
        variables = moving_avg_variables
        variables = [v for v, _ in self._averages.values()] if variables is None else variables
        return {self.average_name(variable): variable for variable in variables}


def _check_variable(value: Any) -> Variable:
    variable = as_variable(value)
    if variable is None:
        raise TypeError(
            "tf.train.ExponentialMovingAverage does not support non-Variable tensors when eager "
            f"execution is enabled. Received: {shown(value)}."
        )
    if not variable.dtype.is_floating:
        raise TypeError(f"The variables must be half, float, or double: {variable.name}")
    return variable
