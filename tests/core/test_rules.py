"""Tests rules: the values that a rule reads are the values that a tape keeps."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.rules import ARRAY, SHAPE, UNREAD, Outputs, Spec, values_read


def test_a_spec_is_a_shape_and_a_dtype():
    for value in (np.zeros((2, 3), np.float32), tf.zeros([2, 3])):
        spec = Spec.of(value)

        assert spec == ((2, 3), np.dtype(np.float32))
        assert spec.ndim == 2
        assert spec._array is spec


def test_outputs_unwraps_all_its_tensors():
    parts = tf.constant([1.0]), tf.constant([2.0, 3.0])

    arrays = Outputs(parts)._array

    assert [array.tolist() for array in arrays] == [[1.0], [2.0, 3.0]]


# Only the names of the parameters matter here.
RULES = {
    "def rule(g, y, x1, x2): ...": [ARRAY, ARRAY, ARRAY],
    "def rule(g, _y, x1, _x2): ...": [UNREAD, ARRAY, SHAPE],
    "def rule(g, _y, _x1, _x2, *, axis): ...": [UNREAD, SHAPE, SHAPE],
    "def rule(g, _y, _x1, x2, **attrs): ...": [UNREAD, SHAPE, ARRAY],
    "def rule(g, y, *xs): ...": [ARRAY, ARRAY, ARRAY],
    "def rule(g, _y, *_xs, axis): ...": [UNREAD, SHAPE, SHAPE],
}


def define(text):
    scope = {}
    exec(text, scope)
    return scope["rule"]


@pytest.mark.parametrize(("text", "expected"), RULES.items(), ids=RULES)
def test_parameter_names_determine_the_values_a_rule_reads(text, expected):
    assert values_read(define(text), 2, skip=1) == expected


def test_joint_rules_have_needed_as_their_first_parameter():
    rule = define("def rule(needed, g, _y, x): ...")

    assert values_read(rule, 1, skip=2) == [UNREAD, ARRAY]


def test_the_reads_attribute_overrides_parameter_names():
    def rule(*_):
        return None

    rule.reads = [UNREAD, ARRAY]

    assert values_read(rule, 1, skip=1) == [UNREAD, ARRAY]


def test_a_wrong_number_of_parameters_raises():
    with pytest.raises(TypeError, match=r"rule at .*test_rules.py:\d+ takes \['y'\] after its"):
        values_read(lambda g, y: g * y, 1, skip=1)
