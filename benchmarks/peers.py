"""Lists the libraries that are compared."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Peer:
    """A library: how to install it, what to import, and which module has its workloads.

    `requirements` are arguments of `pip install`, which runs at the root of the repository. A peer
    that shares the environment of another names it as its `library`. `mode` is how it compiles.
    """

    name: str
    requirements: tuple[str, ...]
    workloads: str
    library: str = ""
    mode: str = ""

    @property
    def package(self):
        """Returns the package to import, which is also the name of the environment."""
        return self.library or self.name


PEERS = (
    Peer("retrograde", ("-e", ".[xla,keras]"), "benchmarks.workloads_tf"),
    Peer("tensorflow", ("tensorflow-cpu", "scipy"), "benchmarks.workloads_tf"),
    Peer("torch", ("torch==2.13.0", "numpy", "keras"), "benchmarks.workloads_torch"),
    Peer("jax", ("jax", "keras"), "benchmarks.workloads_jax"),
    Peer("autograd", ("autograd",), "benchmarks.workloads_autograd"),
)

LOADERS = tuple(peer for peer in PEERS if peer.name in ("retrograde", "tensorflow", "torch"))


def _mode(name, library, module, mode):
    requirements = next(peer.requirements for peer in PEERS if peer.name == library)
    return Peer(name, requirements, f"benchmarks.{module}", library, mode)


COMPILERS = (
    _mode("retrograde_eager", "retrograde", "compiled_tf", "eager"),
    _mode("retrograde_function", "retrograde", "compiled_tf", "function"),
    _mode("retrograde_xla", "retrograde", "compiled_tf", "xla"),
    _mode("tensorflow_function", "tensorflow", "compiled_tf", "function"),
    _mode("tensorflow_xla", "tensorflow", "compiled_tf", "xla"),
    _mode("jax_jit", "jax", "compiled_jax", "jit"),
    _mode("torch_compile", "torch", "compiled_torch", "compile"),
)

# Keras on each of its backends
TAPES = (
    _mode("keras_eager", "retrograde", "keras_models", "eager"),
    _mode("keras_replayed", "retrograde", "keras_models", "replayed"),
    _mode("keras_xla", "retrograde", "keras_models", "xla"),
    _mode("tensorflow_keras_eager", "tensorflow", "keras_models", "eager"),
    _mode("tensorflow_keras", "tensorflow", "keras_models", "default"),
)
BACKENDS = (
    *TAPES,
    _mode("jax_keras", "jax", "keras_models", "default"),
    _mode("torch_keras", "torch", "keras_models", "default"),
)

PEER_BY_NAME = {peer.name: peer for peer in PEERS + COMPILERS + BACKENDS}
