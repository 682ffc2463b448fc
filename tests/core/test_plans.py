"""What a tape keeps of a call, and how it pulls cotangents back through it."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.backward import Cotangents
from retrograde.core.plans import ON_ARRAYS, ON_TENSORS, plan_for, saver
from retrograde.core.rules import ARRAY, NOTHING, SHAPE, UNREAD, Spec, identity_rule


def test_what_is_saved():
    y, x1, x2 = tf.constant([1.0]), tf.constant([2.0, 3.0]), tf.constant([[4.0]])

    all_of_it = saver((ARRAY, ARRAY, ARRAY))((y, x1, x2))
    some = saver((UNREAD, SHAPE, ARRAY))((y, x1, x2))
    none = saver((UNREAD, UNREAD, UNREAD))((y, x1, x2))

    assert all_of_it[0] is y
    assert all_of_it[1] is x1
    assert all_of_it[2] is x2
    assert some[0] is NOTHING
    assert some[1] == Spec((2,), np.dtype(np.float32))
    assert some[2] is x2
    assert none == (NOTHING,) * 3


def test_a_plan_holds_the_rules_of_connected_inputs_only():
    first, second = (lambda g, _y, _a, b: g * b), (lambda g, _y, a, _b: g * a)

    assert plan_for((first, second), None, (True, False)).rules == ((0, first),)
    assert plan_for((first, second), None, (True, True)).rules == ((0, first), (1, second))
    assert plan_for((None, second), None, (True, False)) is None


def test_a_plan_saves_what_any_of_its_rules_reads():
    first, second = (lambda g, _y, _a, b: g * b), (lambda g, _y, a, _b: g * a)
    y, a, b = tf.constant(1.0), tf.constant(2.0), tf.constant(3.0)

    both = plan_for((first, second), None, (True, True)).save((y, a, b))
    one = plan_for((first, second), None, (True, False)).save((y, a, b))

    assert both[1] is a
    assert both[2] is b
    assert one[1] == Spec((), np.dtype(np.float32))
    assert one[2] is b


# Pulling back: what each rule is given, and where its result goes


def seen_by(first, second, saved, *, on_tensors=False, needed=None, ids=(1, 2), attrs=None):
    plan = plan_for((first, second), None, (True, True))
    cotangents = Cotangents(on_tensors)
    g = tf.constant(2.0) if on_tensors else np.float32(2.0)
    pull = plan.pull[ON_TENSORS if on_tensors else ON_ARRAYS]
    pull(cotangents, needed, g, ids, saved, attrs or {})
    return cotangents


VALUES = tf.constant(1.0), tf.constant(3.0), tf.constant([5.0, 7.0])


def test_rules_are_given_arrays_in_a_plain_pass_and_tensors_in_one_that_is_observed():
    first, second = (lambda g, _y, _a, b: g * b), identity_rule
    saved = plan_for((first, second), None, (True, True)).save(VALUES)

    plain = seen_by(first, second, saved)
    heard = seen_by(first, second, saved, on_tensors=True)

    assert type(plain[1]) is np.ndarray
    assert plain[1].tolist() == [10.0, 14.0]
    assert isinstance(heard[1], tf.Tensor)
    assert heard[1].numpy().tolist() == [10.0, 14.0]
    assert plain[2] == 2.0


@pytest.mark.parametrize("all_of_it", [False, True])
def test_a_rule_that_reads_a_shape_finds_it_whether_or_not_the_array_was_kept(all_of_it):
    first, second = (lambda g, _y, a, _b: (g, a, _b.shape)), identity_rule
    plan = plan_for((first, second), None, (True, True))
    saved = VALUES if all_of_it else plan.save(VALUES)

    assert seen_by(first, second, saved)[1] == (2.0, 3.0, (2,))


def test_what_arrives_for_one_id_adds_up():
    first, second = (lambda g, _y, a, _b: g * a), identity_rule
    saved = plan_for((first, second), None, (True, True)).save(VALUES)

    assert seen_by(first, second, saved, ids=(4, 4)) == {4: 8.0}


def test_rules_of_inputs_that_lead_nowhere_are_not_run():
    def never(g, y, _a, _b):
        raise AssertionError(g, y)

    saved = plan_for((never, identity_rule), None, (True, True)).save(VALUES)

    assert seen_by(never, identity_rule, saved, needed={2}) == {2: 2.0}


def test_rules_are_given_the_attributes_of_the_call():
    def scaled(g, _y, _a, _b, *, by):
        return g * by

    saved = plan_for((scaled, scaled), None, (True, True)).save(VALUES)

    assert seen_by(scaled, scaled, saved, attrs={"by": 10}) == {1: 20.0, 2: 20.0}


def test_lines_are_told_of_the_users_program_through_code_that_was_written():
    x = tf.Variable(2.0)
    with tf.GradientTape(lines=True) as outer:
        with tf.GradientTape() as inner:
            y = x * x * x
        g = inner.gradient(y, x)  # the calls of its rules come from here

    places = {str(place) for place in outer._places.values()}

    assert {place.rpartition("/")[2].partition(":")[0] for place in places} == {"test_plans.py"}
    assert g.numpy() == 12.0
