"""The libraries that are compared."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Peer:
    """One library: how to install it, what to import, and which module has its workloads.

    `requirements` are arguments of `pip install`, which runs at the root of the repository. A peer
    that shares the environment of another names it as its `library`; `way` says how it compiles.
    """

    name: str
    requirements: tuple[str, ...]
    workloads: str
    library: str = ""
    way: str = ""

    @property
    def package(self):
        """What to import; the environment has the same name."""
        return self.library or self.name


PEERS = (
    Peer("retrograde", ("-e", ".[xla,keras]"), "benchmarks.workloads_tf"),
    Peer("tensorflow", ("tensorflow-cpu", "scipy"), "benchmarks.workloads_tf"),
    Peer("torch", ("torch==2.13.0", "numpy", "keras"), "benchmarks.workloads_torch"),
    Peer("jax", ("jax", "keras"), "benchmarks.workloads_jax"),
    Peer("autograd", ("autograd",), "benchmarks.workloads_autograd"),
)

LOADERS = tuple(peer for peer in PEERS if peer.name in ("retrograde", "tensorflow", "torch"))


def _way(name, library, module, way):
    requirements = next(peer.requirements for peer in PEERS if peer.name == library)
    return Peer(name, requirements, f"benchmarks.{module}", library, way)


COMPILERS = (
    _way("retrograde_eager", "retrograde", "compiled_tf", "eager"),
    _way("retrograde_function", "retrograde", "compiled_tf", "function"),
    _way("retrograde_xla", "retrograde", "compiled_tf", "xla"),
    _way("tensorflow_function", "tensorflow", "compiled_tf", "function"),
    _way("tensorflow_xla", "tensorflow", "compiled_tf", "xla"),
    _way("jax_jit", "jax", "compiled_jax", "jit"),
    _way("torch_compile", "torch", "compiled_torch", "compile"),
)

# Keras, on each of its backends
TAPES = (
    _way("keras_eager", "retrograde", "keras_models", "eager"),
    _way("keras_replayed", "retrograde", "keras_models", "replayed"),
    _way("keras_xla", "retrograde", "keras_models", "xla"),
    _way("tensorflow_keras_eager", "tensorflow", "keras_models", "eager"),
    _way("tensorflow_keras", "tensorflow", "keras_models", "default"),
)
BACKENDS = (
    *TAPES,
    _way("jax_keras", "jax", "keras_models", "default"),
    _way("torch_keras", "torch", "keras_models", "default"),
)

PEER_BY_NAME = {peer.name: peer for peer in PEERS + COMPILERS + BACKENDS}
