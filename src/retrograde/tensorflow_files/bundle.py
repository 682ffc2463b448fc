"""Reads TensorFlow checkpoints, which consist of an index file and data files (a bundle).

The index file is a table of messages that locate the tensors in the data files. Sizes are checked
before anything is allocated, and checksums before a tensor is returned.
"""

from __future__ import annotations

import math
import os
import struct
from typing import Any

import numpy as np

from retrograde.files.crc32c import crc32c as checksum
from retrograde.files.crc32c import mask, masked_crc
from retrograde.protobuf.messages import DecodeError
from retrograde.protobuf.wire import read_varint
from retrograde.tensorflow_files.messages import (
    BundleEntry,
    BundleHeader,
    TrackableObjectGraph,
)
from retrograde.tensorflow_files.slices import slice_key
from retrograde.tensorflow_files.table import read_table
from retrograde.values import dtypes
from retrograde.values.dtypes import DType
from retrograde.values.errors import DataLossError, UnimplementedError

GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_MAX_AXES = 64
_MAX_INDEX_BYTES = 1 << 30
_DTYPES = {
    dtype.as_datatype_enum: dtype
    for dtype in (
        dtypes.bfloat16,
        dtypes.bool_,
        dtypes.complex64,
        dtypes.complex128,
        dtypes.float16,
        dtypes.float32,
        dtypes.float64,
        dtypes.int8,
        dtypes.int16,
        dtypes.int32,
        dtypes.int64,
        dtypes.string,
        dtypes.uint8,
        dtypes.uint16,
        dtypes.uint32,
        dtypes.uint64,
    )
}


class Bundle:
    """The tensors of a checkpoint, which are read on demand.

    `description` has the children and values of each object, as in retrograde's checkpoints.
    """

    converts_integers = True  # a variable of int32 can be restored from int64

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._entries = self._read_index()
        self.keys = frozenset(self._entries)
        self.table_keys: set[str] = set()  # of lookup tables, stored as two tensors
        self.description = self._read_objects()

    def _read_index(self) -> dict[str, BundleEntry]:
        path = f"{self._prefix}.index"
        if os.path.getsize(path) > _MAX_INDEX_BYTES:
            raise self.read_error("the index file is larger than 1 GB")
        with open(path, "rb") as file:
            data = file.read()
        try:
            table = read_table(data)
            header = BundleHeader.FromString(table.pop(b"", b""))
            entries = {key: BundleEntry.FromString(value) for key, value in table.items()}
            named = {key.decode(): entries[key] for key in entries if not key.startswith(b"\0")}
        except (DecodeError, ValueError) as error:
            raise self.read_error(f"the index file is corrupt: {error}") from None
        self._shards, self._swapped = header.num_shards, header.endianness == 1
        for key, entry in entries.items():
            self._check_entry(key, entry)
        self._slices = {key: entry for key, entry in entries.items() if key.startswith(b"\0")}
        return named

    def _check_entry(self, key: bytes, entry: BundleEntry) -> None:
        sizes = [dim.size for dim in entry.shape.dim]
        if min([entry.offset, entry.size, *sizes]) < 0 or len(sizes) > _MAX_AXES:
            raise self.read_error(f"the entry of {key!r} has a negative size or too many axes")
        if not 0 <= entry.shard_id < self._shards:
            raise self.read_error(f"the entry of {key!r} is in the missing file {entry.shard_id}")
        dtype, count = _DTYPES.get(entry.dtype), math.prod(sizes)
        if dtype is None or len(entry.slices):
            return  # an unknown tensor can be listed, but not read
        if dtype == dtypes.string:
            if count > entry.size:
                raise self.read_error(f"the entry of {key!r} has fewer bytes than strings")
        elif count * dtype.size != entry.size:
            raise self.read_error(f"the entry of {key!r} has a size that does not match its shape")

    def read_error(self, reason: str) -> DataLossError:
        """Returns the error for a corrupt checkpoint."""
        message = f"Cannot read {self._prefix} as a TensorFlow checkpoint: {reason}."
        return DataLossError(None, None, message)

    def shape(self, key: str) -> list[int]:
        """Returns the shape of a tensor."""
        return [dim.size for dim in self._entries[key].shape.dim]

    def dtype(self, key: str) -> DType:
        """Returns the dtype of a tensor."""
        return _DTYPES.get(self._entries[key].dtype, dtypes.variant)

    def array(self, key: str) -> np.ndarray:
        """Returns a tensor as an array, after comparing its checksum."""
        if key not in self._entries:
            return self._read_table(key)
        entry = self._entries[key]
        if entry.dtype not in _DTYPES:
            message = f"The tensor {key!r} of {self._prefix} has the unknown type {entry.dtype}."
            raise UnimplementedError(None, None, message)
        return self._join_slices(key, entry) if len(entry.slices) else self._read_values(key, entry)

    def _join_slices(self, key: str, entry: BundleEntry) -> np.ndarray:
        shape, parts = self.shape(key), []
        for slice_proto in entry.slices:
            extents = [
                (e.start, e.length if e.HasField("length") else -1) for e in slice_proto.extent
            ]
            part = self._slices.get(slice_key(key, extents))
            sizes = [n if length < 0 else length for (_, length), n in zip(extents, shape)]  # noqa: B905
            if part is None or part.dtype != entry.dtype or len(extents) != len(shape):
                raise self.read_error(f"a slice of {key!r} is missing")
            is_inside = all(0 <= a <= a + n <= m for (a, _), n, m in zip(extents, sizes, shape))  # noqa: B905
            if not is_inside or [dim.size for dim in part.shape.dim] != sizes:
                raise self.read_error(f"a slice of {key!r} does not match its shape")
            window = tuple([slice(a, a + n) for (a, _), n in zip(extents, sizes, strict=True)])
            parts.append((window, part))
        counts = [math.prod(dim.size for dim in part.shape.dim) for _, part in parts]
        if sum(counts) != math.prod(shape):
            raise self.read_error(f"the slices of {key!r} do not cover its shape")
        result = np.empty(shape, _DTYPES[entry.dtype].numpy_dtype)
        for window, part in parts:
            result[window] = self._read_values(key, part)
        return result

    def _read_values(self, key: str, entry: BundleEntry) -> np.ndarray:
        data = self._read(entry)
        if _DTYPES[entry.dtype] == dtypes.string:
            return self._decode_strings(key, entry, data)
        if masked_crc(data) != entry.crc32c:
            raise self.read_error(f"the checksum of {key!r} is wrong")
        dtype = _DTYPES[entry.dtype].numpy_dtype
        if dtype == np.bool_ and data.strip(b"\0\1"):
            raise self.read_error(f"{key!r} has a bool that is neither 0 nor 1")
        array = np.frombuffer(data, dtype).reshape([dim.size for dim in entry.shape.dim])
        return array.byteswap() if self._swapped else array

    def _read(self, entry: BundleEntry) -> bytes:
        path = f"{self._prefix}.data-{entry.shard_id:05d}-of-{self._shards:05d}"
        try:
            with open(path, "rb") as file:
                if entry.offset + entry.size > os.fstat(file.fileno()).st_size:
                    raise self.read_error(f"{path} is truncated")
                file.seek(entry.offset)
                return file.read(entry.size)
        except FileNotFoundError:
            raise self.read_error(f"the file {path} does not exist") from None

    def _decode_strings(self, key: str, entry: BundleEntry, data: bytes) -> np.ndarray:
        """Decodes strings, stored as their lengths, a checksum of the lengths, and all bytes."""
        shape = [dim.size for dim in entry.shape.dim]
        count, position, lengths = math.prod(shape), 0, []
        try:
            for _ in range(count):
                length, position = read_varint(data, position)
                lengths.append(length)
        except ValueError as error:
            raise self.read_error(f"the strings of {key!r} are corrupt: {error}") from None
        order = ">" if self._swapped else "<"
        sizes = b"".join(struct.pack(order + ("I" if n < 1 << 32 else "Q"), n) for n in lengths)
        start = position + 4
        header_crc = struct.pack(order + "I", masked_crc(sizes))
        if data[position:start] != header_crc or start + sum(lengths) != len(data):
            raise self.read_error(f"the lengths of the strings of {key!r} are corrupt")
        if mask(checksum(sizes + header_crc + data[start:])) != entry.crc32c:
            raise self.read_error(f"the checksum of {key!r} is wrong")
        array = np.empty(count, object)
        for index, length in enumerate(lengths):
            array[index] = data[start : start + length]
            start += length
        return array.reshape(shape)

    # Objects

    def _read_objects(self) -> list[dict[str, Any]]:
        """Returns the objects of the checkpoint, or only a root for a name-based checkpoint."""
        if GRAPH_KEY not in self.keys or self._entries[GRAPH_KEY].dtype != 7:
            return [{"children": {}, "values": {}}]
        data = self.array(GRAPH_KEY)
        try:
            graph = TrackableObjectGraph.FromString(data.item())
        except (DecodeError, ValueError) as error:
            raise self.read_error(f"the description of objects is corrupt: {error}") from None
        return [
            {
                "children": {child.local_name: child.node_id for child in node.children},
                "values": self._values(node),
            }
            for node in graph.nodes
        ]

    def _values(self, node: Any) -> dict[str, str]:
        values = {}
        for part in node.attributes:
            key = part.checkpoint_key
            if {f"{key}-keys", f"{key}-values"} <= self.keys:
                self.table_keys.add(key)
            if key in self.keys or key in self.table_keys:
                values[part.name] = key
        return values

    def _read_table(self, key: str) -> np.ndarray:
        """Returns the content of a lookup table, as `MutableHashTable` restores it."""
        from retrograde.lookup.mutable import encode_table

        data = np.empty((), object)
        keys = self.array(f"{key}-keys")
        if keys.ndim not in (1, 2) or keys.size != len(keys):
            raise self.read_error(f"the keys of {key!r} have the shape {keys.shape}")
        data[()] = encode_table(keys.reshape(len(keys)), self.array(f"{key}-values"))
        return data
