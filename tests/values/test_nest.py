"""Flattening and packing nested structures."""

import collections

import numpy as np
import pytest

import retrograde as tf
from retrograde.values.nest import flatten, flatten_with_pack, map_leaves

Point = collections.namedtuple("Point", "x y")


STRUCTURES = [
    (1, [1]),
    (None, [None]),
    ("abc", ["abc"]),
    ([], []),
    ((), []),
    ({}, []),
    ([1, 2], [1, 2]),
    ((1, None), [1, None]),
    ([1, [2, (3,)]], [1, 2, 3]),
    ({"b": 2, "a": 1}, [1, 2]),
    ({"b": [2, {"d": 4, "c": 3}], "a": (1,)}, [1, 2, 3, 4]),
    (Point(1, [2, 3]), [1, 2, 3]),
    ([Point(1, 2), None], [1, 2, None]),
    (collections.OrderedDict([("b", 1), ("a", 2)]), None),
]


@pytest.mark.parametrize(("structure", "leaves"), STRUCTURES, ids=repr)
def test_packing_the_leaves_restores_the_structure(structure, leaves):
    flat, pack = flatten_with_pack(structure)

    assert leaves is None or flat == leaves
    assert flatten(structure) == flat
    packed = pack(flat)
    assert packed == structure
    assert type(packed) is type(structure)


def test_tensors_variables_and_arrays_are_leaves():
    x, v, array = tf.constant([1.0, 2.0]), tf.Variable([1.0]), np.ones(3)

    leaves = flatten({"a": [x, v], "b": array})

    assert leaves[0] is x
    assert leaves[1] is v
    assert leaves[2] is array


def test_the_number_of_leaves_is_checked():
    for structure in (1, {"a": 1, "b": [2]}):
        _, pack = flatten_with_pack(structure)
        with pytest.raises(ValueError):
            pack([1, 2, 3])


def test_gradients_have_the_structure_of_the_sources():
    v, w = tf.Variable(2.0), tf.Variable(3.0)

    with tf.GradientTape() as tape:
        y = v * v * w

    gradients = tape.gradient(y, {"point": Point(v, w), "list": [w]})

    assert type(gradients["point"]) is Point
    assert [float(g) for g in gradients["point"]] == [12.0, 4.0]
    assert [float(g) for g in gradients["list"]] == [4.0]


def test_a_range_that_is_too_long_raises():
    message = r"A structure has 1000000000 elements: range\(0, 1000000000\). Expected at most"
    with pytest.raises(tf.errors.ResourceExhaustedError, match=message):
        tf.nest.flatten(range(10**9))
    with pytest.raises(ValueError, match="A structure has too many elements: range"):
        tf.nest.flatten(range(10**400))


def test_map_leaves_keeps_the_structure():
    structure = {"b": [1, (2, 3)], "a": None}
    mapped = map_leaves(lambda leaf: leaf if leaf is None else 10 * leaf, structure)
    assert mapped == {"b": [10, (20, 30)], "a": None}
    assert list(mapped) == ["b", "a"]
