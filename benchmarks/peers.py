"""Lists the libraries that are compared."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Peer:
    """A library: how to install it, what to import, and which module has its workloads.

    `requirements` are arguments of `pip install`, which runs at the root of the repository.
    `library` names the peer whose environment is reused, if any. `mode` is the execution mode that
    the workloads get.
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

INPUT_PIPELINE_PEERS = tuple(
    peer for peer in PEERS if peer.name in ("retrograde", "tensorflow", "torch")
)


def _variant(name, library, module, mode):
    requirements = next(peer.requirements for peer in PEERS if peer.name == library)
    return Peer(name, requirements, f"benchmarks.{module}", library, mode)


COMPILED_PEERS = (
    _variant("retrograde_eager", "retrograde", "compiled_tf", "eager"),
    _variant("retrograde_function", "retrograde", "compiled_tf", "function"),
    _variant("retrograde_xla", "retrograde", "compiled_tf", "xla"),
    _variant("tensorflow_function", "tensorflow", "compiled_tf", "function"),
    _variant("tensorflow_xla", "tensorflow", "compiled_tf", "xla"),
    _variant("jax_jit", "jax", "compiled_jax", "jit"),
    _variant("torch_compile", "torch", "compiled_torch", "compile"),
)

# Keras on backends that have a gradient tape
KERAS_TAPE_PEERS = (
    _variant("keras_eager", "retrograde", "keras_models", "eager"),
    _variant("keras_replayed", "retrograde", "keras_models", "replayed"),
    _variant("keras_xla", "retrograde", "keras_models", "xla"),
    _variant("tensorflow_keras_eager", "tensorflow", "keras_models", "eager"),
    _variant("tensorflow_keras", "tensorflow", "keras_models", "default"),
)
# Keras on each of its backends
KERAS_PEERS = (
    *KERAS_TAPE_PEERS,
    _variant("jax_keras", "jax", "keras_models", "default"),
    _variant("torch_keras", "torch", "keras_models", "default"),
)

# The same, and the default mode of ours, which chooses between replay and XLA
MODEL_PEERS = (_variant("keras_default", "retrograde", "keras_models", "default"), *KERAS_PEERS)

PEER_BY_NAME = {peer.name: peer for peer in PEERS + COMPILED_PEERS + MODEL_PEERS}
