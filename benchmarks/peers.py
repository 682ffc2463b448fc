"""The libraries that are compared."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Peer:
    """One library: how to install it, what to import, and which module has its workloads.

    `requirements` are arguments of `pip install`, which runs at the root of the repository.
    """

    name: str
    requirements: tuple[str, ...]
    workloads: str


PEERS = (
    Peer("retrograde", ("-e", "."), "benchmarks.workloads_tf"),
    Peer("tensorflow", ("tensorflow-cpu",), "benchmarks.workloads_tf"),
    Peer("torch", ("torch==2.13.0", "numpy"), "benchmarks.workloads_torch"),
    Peer("jax", ("jax",), "benchmarks.workloads_jax"),
    Peer("autograd", ("autograd",), "benchmarks.workloads_autograd"),
)

PEER_BY_NAME = {peer.name: peer for peer in PEERS}
