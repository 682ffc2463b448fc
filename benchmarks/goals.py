"""Performance goals, most of them as ratios of two measured values."""

from dataclasses import dataclass

from benchmarks.workloads import COMPILED, DERIVATIVES, KERAS, MODEL_MEMORY, MODELS

PROGRAMS = tuple(name for name in COMPILED if name != "call")
SMALL = ("square", "add8", "chain", "small_mlp")


@dataclass(frozen=True)
class Goal:
    """Requires that `numerator / denominator` is at least (or `at_most`) `bound` in `workload`."""

    workload: str
    numerator: str
    denominator: str
    bound: float
    at_most: bool = False

    def __str__(self):
        sign = "<=" if self.at_most else ">="
        return f"{self.numerator} / {self.denominator} {sign} {self.bound:g}"

    def measurement(self, result):
        """Returns the ratio in `result`, or None if a value is missing."""
        return result.ratio(self.numerator, self.denominator)

    def is_met(self, ratio):
        return ratio <= self.bound if self.at_most else ratio >= self.bound


@dataclass(frozen=True)
class Limit:
    """Requires that `peer` takes at most `microseconds` in `workload`."""

    workload: str
    peer: str
    microseconds: float

    def __str__(self):
        return f"{self.peer} in us <= {self.microseconds:g}"

    def measurement(self, result):
        """Returns the microseconds in `result`, or None if the value is missing."""
        return result.ratio(self.peer, self.peer) and result.values[self.peer] * 1e6

    def is_met(self, microseconds):
        return microseconds <= self.microseconds


GOALS = (
    *(Goal(workload, "tensorflow", "retrograde", 20) for workload in SMALL),
    *(Goal(workload, "torch", "retrograde", 1) for workload in SMALL),
    Goal("mnist_mlp", "torch", "retrograde", 0.91),
    Goal("elementwise_1m", "torch", "retrograde", 1),
    *(Goal(workload, "torch", "retrograde", 1) for workload in DERIVATIVES),
    Goal("jacobian_64", "tensorflow", "retrograde", 100),
    Goal("hessian_32", "tensorflow", "retrograde", 100),
    Goal("conv_small", "tensorflow", "retrograde", 1),
    Goal("conv_64", "torch", "retrograde", 0.67),
    Goal("max_pool", "torch", "retrograde", 0.5),
    Goal("shuffled_batches", "tensorflow", "retrograde", 1),
    Goal("small_mlp_step", "retrograde_eager", "retrograde_function", 2),
    Goal("small_mlp_step", "tensorflow_function", "retrograde_function", 2),
    Goal("elementwise_step", "torch_compile", "retrograde_function", 1),
    *(Goal(workload, "retrograde_xla", "jax_jit", 1.1, at_most=True) for workload in PROGRAMS),
    *(Goal(workload, "tensorflow_xla", "retrograde_xla", 1) for workload in PROGRAMS),
    *(
        Goal(workload, "keras_xla", peer, 1.1, at_most=True)
        for workload in KERAS
        for peer in ("tensorflow_keras", "jax_keras", "torch_keras")
    ),
    *(
        Goal(workload, peer, "keras_default", 1)
        for workload in MODELS
        for peer in ("tensorflow_keras", "jax_keras", "torch_keras")
    ),
    *(Goal(workload, "torch_keras", "keras_eager", 1) for workload in MODELS),
    *(Goal(workload, "keras_xla", "jax_keras", 0.9, at_most=True) for workload in MODELS),
    *(Goal(workload, "keras_eager", "keras_replayed", 1) for workload in MODEL_MEMORY),
    *(Goal(workload, "jax_keras", "keras_xla", 1) for workload in MODEL_MEMORY),
    *(
        Goal(workload, peer, "keras_default", 1)
        for workload in MODEL_MEMORY
        for peer in ("tensorflow_keras", "torch_keras")
    ),
    Goal("keras_loop", "tensorflow_keras_eager", "keras_eager", 4),
    Goal("fit_mlp_32", "keras_eager", "keras_replayed", 3),
    Limit("call", "retrograde_function", 5),
    Goal("memory_50_layers", "retrograde", "torch", 1, at_most=True),
    Goal("import", "retrograde", "numpy", 1.5, at_most=True),
)
