"""Tests plans: the values that a tape saves for a call, and how it applies vjp rules."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.backward import Cotangents
from retrograde.core.plans import ON_ARRAYS, ON_TENSORS, plan_for, saver
from retrograde.core.rules import ARRAY, NOTHING, SHAPE, UNREAD, Spec, identity_rule


def test_saver_keeps_tensors_or_specs():
    y, x1, x2 = tf.constant([1.0]), tf.constant([2.0, 3.0]), tf.constant([[4.0]])

    all_saved = saver((ARRAY, ARRAY, ARRAY))((y, x1, x2))
    some_saved = saver((UNREAD, SHAPE, ARRAY))((y, x1, x2))
    none_saved = saver((UNREAD, UNREAD, UNREAD))((y, x1, x2))

    assert all_saved[0] is y
    assert all_saved[1] is x1
    assert all_saved[2] is x2
    assert some_saved[0] is NOTHING
    assert some_saved[1] == Spec((2,), np.dtype(np.float32))
    assert some_saved[2] is x2
    assert none_saved == (NOTHING,) * 3


def test_a_plan_holds_only_the_rules_of_connected_inputs():
    first, second = (lambda g, _y, _a, b: g * b), (lambda g, _y, a, _b: g * a)

    assert plan_for((first, second), None, (True, False)).rules == ((0, first),)
    assert plan_for((first, second), None, (True, True)).rules == ((0, first), (1, second))
    assert plan_for((None, second), None, (True, False)) is None


def test_a_plan_saves_the_values_that_its_rules_read():
    first, second = (lambda g, _y, _a, b: g * b), (lambda g, _y, a, _b: g * a)
    y, a, b = tf.constant(1.0), tf.constant(2.0), tf.constant(3.0)

    saved_by_both = plan_for((first, second), None, (True, True)).save((y, a, b))
    saved_by_first = plan_for((first, second), None, (True, False)).save((y, a, b))

    assert saved_by_both[1] is a
    assert saved_by_both[2] is b
    assert saved_by_first[1] == Spec((), np.dtype(np.float32))
    assert saved_by_first[2] is b


# Applying rules: their arguments, and how their results are accumulated


def run_rules(first, second, saved, *, on_tensors=False, needed=None, ids=(1, 2), attrs=None):
    """Runs both rules with the cotangent 2 and returns the cotangents of the inputs by id."""
    plan = plan_for((first, second), None, (True, True))
    cotangents = Cotangents(on_tensors)
    g = tf.constant(2.0) if on_tensors else np.float32(2.0)
    apply_rules = plan.pull[ON_TENSORS if on_tensors else ON_ARRAYS]
    apply_rules(cotangents, needed, g, ids, saved, attrs or {})
    return cotangents


VALUES = tf.constant(1.0), tf.constant(3.0), tf.constant([5.0, 7.0])


def test_rules_receive_arrays_or_tensors():
    first, second = (lambda g, _y, _a, b: g * b), identity_rule
    saved = plan_for((first, second), None, (True, True)).save(VALUES)

    on_arrays = run_rules(first, second, saved)
    on_tensors = run_rules(first, second, saved, on_tensors=True)

    assert type(on_arrays[1]) is np.ndarray
    assert on_arrays[1].tolist() == [10.0, 14.0]
    assert isinstance(on_tensors[1], tf.Tensor)
    assert on_tensors[1].numpy().tolist() == [10.0, 14.0]
    assert on_arrays[2] == 2.0


@pytest.mark.parametrize("keeps_arrays", [False, True])
def test_a_rule_can_read_the_shape_of_an_array_or_a_spec(keeps_arrays):
    first, second = (lambda g, _y, a, _b: (g, a, _b.shape)), identity_rule
    plan = plan_for((first, second), None, (True, True))
    saved = VALUES if keeps_arrays else plan.save(VALUES)

    assert run_rules(first, second, saved)[1] == (2.0, 3.0, (2,))


def test_cotangents_of_the_same_id_are_summed():
    first, second = (lambda g, _y, a, _b: g * a), identity_rule
    saved = plan_for((first, second), None, (True, True)).save(VALUES)

    assert run_rules(first, second, saved, ids=(4, 4)) == {4: 8.0}


def test_rules_of_inputs_that_are_not_needed_do_not_run():
    def never(g, y, _a, _b):
        raise AssertionError(g, y)

    saved = plan_for((never, identity_rule), None, (True, True)).save(VALUES)

    assert run_rules(never, identity_rule, saved, needed={2}) == {2: 2.0}


def test_rules_receive_the_attributes_of_the_call():
    def scale_rule(g, _y, _a, _b, *, factor):
        return g * factor

    saved = plan_for((scale_rule, scale_rule), None, (True, True)).save(VALUES)

    assert run_rules(scale_rule, scale_rule, saved, attrs={"factor": 10}) == {1: 20.0, 2: 20.0}


def test_recorded_lines_are_in_user_code_not_in_generated_code():
    x = tf.Variable(2.0)
    with tf.GradientTape(lines=True) as outer:
        with tf.GradientTape() as inner:
            y = x * x * x
        g = inner.gradient(y, x)  # this line calls the rules

    locations = {str(location) for location in outer._locations.values()}

    assert {location.rpartition("/")[2].partition(":")[0] for location in locations} == {
        "test_plans.py"
    }
    assert g.numpy() == 12.0
