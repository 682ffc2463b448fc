"""The protocol buffer messages of `tf.train.Example` and `tf.train.SequenceExample`."""

from __future__ import annotations

from typing import ClassVar

from retrograde.protobuf.messages import Descriptor, Field, Message


class BytesList(Message):
    """A list of byte strings in a `tf.train.Feature`.

    >>> tf.train.BytesList(value=[b"a", "é".encode()]).value
    [b'a', b'\\xc3\\xa9']
    """

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.BytesList", (Field(1, "value", "bytes", repeated=True),)
    )


class FloatList(Message):
    """A list of float32 numbers in a `tf.train.Feature`.

    >>> tf.train.FloatList(value=[0.5, 2]).value
    [0.5, 2.0]
    """

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.FloatList", (Field(1, "value", "float", repeated=True),)
    )


class Int64List(Message):
    """A list of 64-bit integers in a `tf.train.Feature`.

    >>> tf.train.Int64List(value=[1, 2])
    value: 1
    value: 2
    <BLANKLINE>
    """

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.Int64List", (Field(1, "value", "int64", repeated=True),)
    )


class Feature(Message):
    """The values of a feature: one of `bytes_list`, `float_list` and `int64_list`.

    >>> feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
    >>> feature.WhichOneof("kind"), feature.int64_list.value[0]
    ('int64_list', 3)
    """

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.Feature",
        (
            Field(1, "bytes_list", BytesList, oneof="kind"),
            Field(2, "float_list", FloatList, oneof="kind"),
            Field(3, "int64_list", Int64List, oneof="kind"),
        ),
    )


class Features(Message):
    """A map from names to features, in the field `feature`.

    >>> features = tf.train.Features()
    >>> features.feature["size"].int64_list.value.append(3)
    >>> list(features.feature)
    ['size']
    """

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.Features", (Field(1, "feature", Feature, is_map=True),)
    )


class FeatureList(Message):
    """A list of features: the values of one feature at each step of a sequence.

    >>> steps = tf.train.FeatureList()
    >>> steps.feature.add().float_list.value.extend([1.0, 2.0])
    >>> len(steps.feature)
    1
    """

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.FeatureList", (Field(1, "feature", Feature, repeated=True),)
    )


class FeatureLists(Message):
    """A map from names to feature lists, in the field `feature_list`.

    >>> lists = tf.train.FeatureLists(feature_list={"words": tf.train.FeatureList()})
    >>> "words" in lists.feature_list
    True
    """

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.FeatureLists", (Field(1, "feature_list", FeatureList, is_map=True),)
    )


class Example(Message):
    """An example, which maps names to features. TFRecord files usually contain serialized examples.

    >>> example = tf.train.Example()
    >>> example.features.feature["label"].int64_list.value.append(7)
    >>> serialized = example.SerializeToString()
    >>> tf.train.Example.FromString(serialized).features.feature["label"].int64_list.value
    [7]
    """

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor("tensorflow.Example", (Field(1, "features", Features),))


class SequenceExample(Message):
    """An example with a sequence: features in `context`, and a list of features for each step.

    >>> example = tf.train.SequenceExample()
    >>> example.context.feature["id"].int64_list.value.append(1)
    >>> words = example.feature_lists.feature_list["words"]
    >>> words.feature.add().bytes_list.value.append(b"hello")
    >>> list(example.context.feature), len(words.feature)
    (['id'], 1)
    """

    __slots__ = ()
    DESCRIPTOR: ClassVar = Descriptor(
        "tensorflow.SequenceExample",
        (Field(1, "context", Features), Field(2, "feature_lists", FeatureLists)),
    )
