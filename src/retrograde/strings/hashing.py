"""Hash buckets and fingerprints of strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops._hashes import fingerprint64, murmur64, siphash64
from retrograde.ops.arguments import integer, integers
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.strings._elementwise import STRING, map_strings, scalar_string
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid

_INT64, _UINT8 = np.dtype(np.int64), np.dtype(np.uint8)


def to_hash_bucket(input: Any, num_buckets: Any, name: str | None = None) -> Any:
    """Hashes each string to a bucket in [0, num_buckets), with TensorFlow's older hash function."""
    buckets = _buckets(num_buckets, "to_hash_bucket")
    return map_strings(lambda s: murmur64(s) % buckets, input, _INT64)


def to_hash_bucket_fast(input: Any, num_buckets: Any, name: str | None = None) -> Any:
    """Hashes each string to a bucket in [0, num_buckets): its fingerprint modulo `num_buckets`.

    >>> tf.strings.to_hash_bucket_fast(["hello"], 100).numpy()
    array([96])
    """
    buckets = _buckets(num_buckets, "to_hash_bucket_fast")
    return map_strings(lambda s: fingerprint64(s) % buckets, input, _INT64)


def to_hash_bucket_strong(input: Any, num_buckets: Any, key: Any, name: str | None = None) -> Any:
    """Hashes each string to a bucket in [0, num_buckets) with a keyed hash (SipHash).

    Strings that collide cannot be constructed without `key`.
    """
    buckets = _buckets(num_buckets, "to_hash_bucket_strong")
    secret = integers(key, "to_hash_bucket_strong: key")
    if len(secret) != 2:
        raise invalid(
            f"to_hash_bucket_strong: expected a key of 2 integers. Received: {shown(list(secret))}."
        )
    return map_strings(lambda s: siphash64(s, secret) % buckets, input, _INT64)


def _buckets(num_buckets: Any, op_name: str) -> int:
    buckets = integer(num_buckets, f"{op_name}: num_buckets")
    if buckets < 1:
        raise invalid(f"{op_name}: expected num_buckets >= 1. Received: {buckets}.")
    return buckets


@host_function
def fingerprint(data: Any, method: Any = "farmhash64", name: str | None = None) -> Tensor:
    """Computes a fingerprint of 8 bytes for each row of `data`.

    >>> tf.fingerprint(["a"]).numpy()
    array([[227, 117, 223, 182, 101,  66,  69, 179]], dtype=uint8)
    """
    if scalar_string(method, "fingerprint: method") != b"farmhash64":
        raise invalid(f"fingerprint: the method must be 'farmhash64'. Received: {shown(method)}.")
    x = as_tensor(data)
    if not x.ndim:
        raise invalid("fingerprint: expected data with at least one axis. Received: a scalar.")
    rows = np.asarray(x).reshape(x.shape[0], x.shape[1:].num_elements())
    numbers = [fingerprint64(_bytes_to_hash(row)) for row in rows]
    hashes = b"".join(n.to_bytes(8, "little") for n in numbers)
    return Tensor(np.frombuffer(hashes, _UINT8).reshape(len(rows), 8).copy())


def _bytes_to_hash(row: np.ndarray) -> bytes:
    """Returns the bytes of a row to hash: its memory, its only string, or its strings' hashes."""
    if row.dtype != STRING:
        return row.tobytes()
    strings = row.tolist()
    if len(strings) == 1:
        return strings[0]
    return b"".join(fingerprint64(s).to_bytes(8, "little") for s in strings)
