"""tf.sysconfig: build information, with constants since retrograde is pure Python."""

from __future__ import annotations

import pathlib

from retrograde._api.lazy import from_all

__all__ = [
    "CXX11_ABI_FLAG",
    "CXX_VERSION",
    "MONOLITHIC_BUILD",
    "get_build_info",
    "get_lib",
]

__getattr__, __dir__ = from_all(__name__)

CXX11_ABI_FLAG = 1
CXX_VERSION = 201703
MONOLITHIC_BUILD = 0


def get_build_info() -> dict[str, bool]:
    """Returns the build options: no CUDA, ROCm or TensorRT."""
    return {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}


def get_lib() -> str:
    """Returns the directory of the library."""
    return str(pathlib.Path(__file__).parent)
