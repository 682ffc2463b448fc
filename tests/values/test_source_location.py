"""Source locations: the innermost frame of the user's program."""

import functools

import numpy as np
import pytest

import retrograde as tf
from retrograde.values import source_location
from retrograde.values.source_location import first_output


def location_of_call(function, *args):
    """Returns the source location that a tape records for the last call in `function`."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(lines=True) as tape:
        function(x, *args)
    return tape._locations[first_output(tape._entries[-1][2])]


def test_a_location_is_the_line_that_called_a_public_function():
    location = location_of_call(lambda x: tf.reduce_sum(x))

    assert location.filename == __file__
    assert location.text == "location = location_of_call(lambda x: tf.reduce_sum(x))"
    assert location.expression == "tf.reduce_sum(x)"
    assert location.function.endswith("<lambda>")
    assert str(location) == f"{__file__}:{location.line}"


def test_locations_are_found_through_operators():
    assert location_of_call(lambda x: x * 2.0).expression == "x * 2.0"


def test_locations_are_found_through_library_functions_that_call_user_functions():
    assert location_of_call(lambda x: tf.map_fn(lambda e: tf.sin(e), x)).expression.startswith(
        "tf.map_fn"
    )
    assert (
        location_of_call(lambda x: tf.vectorized_map(lambda e: tf.sin(e), x)).expression
        == "tf.sin(e)"
    )


def test_locations_are_found_through_functools():
    location = location_of_call(lambda x: functools.reduce(lambda total, e: total + e, [x, x, x]))

    assert location.expression == "total + e"


def test_a_location_in_a_program_without_a_file_has_no_text():
    program = "x = tf.Variable(1.0)\nwith tf.GradientTape(lines=True) as tape:\n    y = x * x\n"
    scope = {"tf": tf}
    exec(compile(program, "<somewhere>", "exec"), scope)

    (location,) = scope["tape"]._locations.values()

    assert (str(location), location.text, location.expression) == ("<somewhere>:3", "", "")


def test_library_frames_have_no_location():
    assert source_location.location_of(None) is None


@pytest.mark.parametrize("filename", ["<retrograde replay>", "<frozen runpy>", np.__file__])
def test_library_files(filename):
    assert source_location._is_library(filename)


@pytest.mark.parametrize(
    "filename", ["<stdin>", "<doctest page[3]>", "<ipython-input-1>", __file__]
)
def test_user_files(filename):
    assert not source_location._is_library(filename)


def test_locations_of_calls_with_several_outputs():
    location = location_of_call(lambda x: tf.unstack(x))

    assert location.expression == "tf.unstack(x)"


def test_tapes_do_not_record_lines_by_default():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        x * x

    assert tape._locations is None


def test_record_lines_affects_tapes_created_in_its_block():
    with tf.debugging.record_lines():
        inside, opted_out = tf.GradientTape(), tf.GradientTape(lines=False)
    outside = tf.GradientTape()

    assert inside._locations is not None
    assert opted_out._locations is None
    assert outside._locations is None


def test_record_lines_without_a_block():
    tf.debugging.record_lines()
    on = tf.GradientTape()
    tf.debugging.record_lines(False)

    assert on._locations is not None
    assert tf.GradientTape()._locations is None


def test_lines_are_kept_after_the_backward_pass_and_cleared_by_reset():
    x = tf.Variable(1.0)
    with tf.GradientTape(lines=True) as tape:
        y = x * x
    gradient = tape.gradient(y, x)

    assert gradient.numpy() == 2.0
    assert list(tape._locations) == [y._id]

    with tape:
        x + 1.0
        tape.reset()

    assert tape._locations == {}


def test_derivatives_are_the_same_with_lines():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True, lines=True) as tape:
        y = x * x * x
        loss = tf.reduce_sum(y)

    np.testing.assert_array_equal(tape.hessian(loss, x), [[6.0, 0.0], [0.0, 12.0]])
    np.testing.assert_array_equal(tape.jacobian(y, x), [[3.0, 0.0], [0.0, 12.0]])
    assert tf.reduce_sum(tape.gradient(y, x)).numpy() == 15.0
