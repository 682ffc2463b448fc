"""What retrograde sets out to reach, as quotients of two measured values."""

from dataclasses import dataclass

from benchmarks.workloads import DERIVATIVES

SMALL = ("square", "add8", "chain", "small_mlp")


@dataclass(frozen=True)
class Goal:
    """`above / below` is at least `bound` in `workload`, or at most if `at_most`."""

    workload: str
    above: str
    below: str
    bound: float
    at_most: bool = False

    def __str__(self):
        sign = "<=" if self.at_most else ">="
        return f"{self.above} / {self.below} {sign} {self.bound:g}"

    def is_met(self, ratio):
        return ratio <= self.bound if self.at_most else ratio >= self.bound


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
    Goal("memory_50_layers", "retrograde", "torch", 1, at_most=True),
    Goal("import", "retrograde", "numpy", 1.5, at_most=True),
)
