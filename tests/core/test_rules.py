"""What a rule reads is what a tape keeps."""

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


def test_several_outputs_are_kept_together_and_unwrapped_at_once():
    parts = tf.constant([1.0]), tf.constant([2.0, 3.0])

    arrays = Outputs(parts)._array

    assert [array.tolist() for array in arrays] == [[1.0], [2.0, 3.0]]


# What a rule computes from its parameters is of no interest here, only their names.
RULES = {
    "def rule(g, y, x1, x2): ...": [ARRAY, ARRAY, ARRAY],
    "def rule(g, _y, x1, _x2): ...": [UNREAD, ARRAY, SHAPE],
    "def rule(g, _y, _x1, _x2, *, axis): ...": [UNREAD, SHAPE, SHAPE],
    "def rule(g, _y, _x1, x2, **attrs): ...": [UNREAD, SHAPE, ARRAY],
    "def rule(g, y, *xs): ...": [ARRAY, ARRAY, ARRAY],
    "def rule(g, _y, *_xs, axis): ...": [UNREAD, SHAPE, SHAPE],
}


def made_of(text):
    scope = {}
    exec(text, scope)
    return scope["rule"]


@pytest.mark.parametrize(("text", "reads"), RULES.items(), ids=RULES)
def test_the_names_of_its_parameters_say_what_a_rule_reads(text, reads):
    assert values_read(made_of(text), 2, skip=1) == reads


def test_joint_rules_are_told_first_what_is_needed():
    rule = made_of("def rule(needed, g, _y, x): ...")

    assert values_read(rule, 1, skip=2) == [UNREAD, ARRAY]


def test_rules_that_wrap_others_say_themselves_what_they_read():
    def rule(*_):
        return None

    rule.reads = [UNREAD, ARRAY]

    assert values_read(rule, 1, skip=1) == [UNREAD, ARRAY]


def test_a_rule_with_the_wrong_number_of_parameters_is_refused():
    with pytest.raises(TypeError, match=r"rule at .*test_rules.py:\d+ takes \['y'\] after its"):
        values_read(lambda g, y: g * y, 1, skip=1)
