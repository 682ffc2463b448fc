"""The messages in TensorFlow's checkpoints."""

from __future__ import annotations

from typing import ClassVar

from retrograde.protobuf.messages import Descriptor, Field, Message


class Dim(Message):
    """The size of one axis."""

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.TensorShapeProto.Dim", (Field(1, "size", "int64"), Field(2, "name", "string"))
    )


class TensorShapeProto(Message):
    """A shape."""

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.TensorShapeProto",
        (Field(2, "dim", Dim, repeated=True), Field(3, "unknown_rank", "bool")),
    )


class Extent(Message):
    """A part of one axis. Without a length, it is the whole axis."""

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.TensorSliceProto.Extent",
        (Field(1, "start", "int64"), Field(2, "length", "int64", oneof="has_length")),
    )


class TensorSliceProto(Message):
    """A slice of a tensor."""

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.TensorSliceProto", (Field(1, "extent", Extent, repeated=True),)
    )


class BundleHeader(Message):
    """The header of a checkpoint: the number of its data files and their byte order."""

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.BundleHeaderProto",
        (Field(1, "num_shards", "int32"), Field(2, "endianness", "enum")),
    )


class BundleEntry(Message):
    """The description of a tensor: dtype, shape, position in a data file and checksum."""

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.BundleEntryProto",
        (
            Field(1, "dtype", "enum"),
            Field(2, "shape", TensorShapeProto),
            Field(3, "shard_id", "int32"),
            Field(4, "offset", "int64"),
            Field(5, "size", "int64"),
            Field(6, "crc32c", "fixed32"),
            Field(7, "slices", TensorSliceProto, repeated=True),
        ),
    )


class ObjectReference(Message):
    """A child of an object: its number and its name."""

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.TrackableObjectGraph.TrackableObject.ObjectReference",
        (Field(1, "node_id", "int32"), Field(2, "local_name", "string")),
    )


class SerializedTensor(Message):
    """A value of an object: its name and its key in the checkpoint."""

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.TrackableObjectGraph.TrackableObject.SerializedTensor",
        (
            Field(1, "name", "string"),
            Field(2, "full_name", "string"),
            Field(3, "checkpoint_key", "string"),
        ),
    )


class TrackableObject(Message):
    """An object with children and values."""

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.TrackableObjectGraph.TrackableObject",
        (
            Field(1, "children", ObjectReference, repeated=True),
            Field(2, "attributes", SerializedTensor, repeated=True),
        ),
    )


class TrackableObjectGraph(Message):
    """All objects of a checkpoint. The first one is the root."""

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.TrackableObjectGraph", (Field(1, "nodes", TrackableObject, repeated=True),)
    )
