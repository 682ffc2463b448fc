"""tf.nest: containers, packing, mapping and error messages."""

import collections
import json
import pathlib

import pytest

import retrograde as tf
from tests.data.recorded_results import evaluate, is_close

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "nest_results.json").read_text())

Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize("call", EXPECTED)
def test_result_agrees_with_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, EXPECTED[call]), f"got {actual}, expected {EXPECTED[call]}"


def test_named_tuples_keep_their_type():
    mapped = tf.nest.map_structure(lambda x: 10 * x, [Point(1, 2), {"a": Point(3, 4)}])

    assert mapped == [Point(10, 20), {"a": Point(30, 40)}]
    assert type(mapped[0]) is Point
    assert tf.nest.flatten(Point([1], 2)) == [1, 2]


def test_dicts_keep_the_order_of_their_keys():
    packed = tf.nest.pack_sequence_as({"b": 0, "a": 0}, [1, 2])

    assert list(packed.items()) == [("b", 2), ("a", 1)]


class MyList(list):
    pass


class MyDict(dict):
    pass


@pytest.mark.parametrize(
    "structure",
    [
        MyList([1, 2]),
        MyDict(b=2, a=1),
        collections.OrderedDict(b=2, a=1),
        collections.defaultdict(list, b=2, a=1),
        collections.deque([1, 2]),
    ],
    ids=lambda s: type(s).__name__,
)
def test_other_containers_keep_their_type(structure):
    mapped = tf.nest.map_structure(lambda x: x, structure)

    assert tf.nest.flatten(structure) == [1, 2]
    assert mapped == structure
    assert type(mapped) is type(structure)
    assert not isinstance(structure, dict) or list(mapped) == list(structure)


def test_dicts_are_matched_by_their_keys():
    pairs = tf.nest.map_structure(
        lambda x, y: (x, y), {"a": 1, "b": 2}, collections.OrderedDict(b=20, a=10)
    )

    assert pairs == {"a": (1, 10), "b": (2, 20)}


def test_leaves_are_not_copied():
    x, v = tf.constant([1.0]), tf.Variable([1.0])

    first, second = tf.nest.flatten({"x": x, "v": v})

    assert first is v
    assert second is x
    assert tf.nest.flatten(v)[0] is v


def test_error_messages_name_the_difference():
    with pytest.raises(TypeError, match="the types list and tuple differ"):
        tf.nest.assert_same_structure({"a": [1]}, {"a": (1,)})
    with pytest.raises(ValueError, match=r"the keys \['a'\] and \['b'\] differ"):
        tf.nest.assert_same_structure([{"a": 1}], [{"b": 1}])
    with pytest.raises(ValueError, match="1 and 2 elements"):
        tf.nest.assert_same_structure([1], [1, 2])
