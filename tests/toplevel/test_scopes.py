"""Name scopes, variable creators and devices."""

import threading

import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.mark.parametrize(
    ("inner", "variable", "scope"),
    [
        ("b", "a/b/v:0", "a/b"),
        ("x/y", "a/x/y/v:0", "a/x/y"),
        ("x/", "x/v:0", "x"),
        ("", "v:0", ""),
    ],
)
def test_names_of_nested_scopes_are_joined(inner, variable, scope):
    with tf.name_scope("a"), tf.name_scope(inner):
        assert tf.Variable(0.0, name="v").name == variable
        assert tf.get_current_name_scope() == scope
    assert tf.get_current_name_scope() == ""


def test_a_scope_is_reentrant():
    with tf.name_scope("a") as full_name:
        pass
    reentered = tf.name_scope(full_name)
    with tf.name_scope("other"), reentered as first, reentered as second:
        assert first == second == "a/"
        assert tf.Variable(0.0).name == "a/Variable:0"
    assert tf.get_current_name_scope() == ""


def test_an_error_exits_the_scope():
    with pytest.raises(ZeroDivisionError), tf.name_scope("a"):
        _ = 1 / 0

    assert tf.Variable(0.0, name="v").name == "v:0"


def test_each_thread_has_its_own_scopes():
    names = []
    with tf.name_scope("a"):
        other = threading.Thread(target=lambda: names.append(tf.Variable(0.0, name="v").name))
        other.start()
        other.join()

    assert names == ["v:0"]


def test_a_scope_requires_a_string_name():
    assert_raises(
        lambda: tf.name_scope(None),
        ValueError,
        "The name of a name_scope must be a string. Received: None.",
    )


# Creators


def test_creators_run_innermost_first_and_receive_all_arguments():
    received = []

    def outer(next_creator, **kwargs):
        received.append(("outer", kwargs["name"], kwargs["trainable"]))
        return next_creator(**kwargs)

    def inner(next_creator, **kwargs):
        received.append(("inner", kwargs["name"], kwargs["trainable"]))
        assert {"initial_value", "dtype", "shape", "constraint", "aggregation"} <= set(kwargs)
        return next_creator(**kwargs | {"name": "renamed", "trainable": False})

    with tf.variable_creator_scope(outer), tf.variable_creator_scope(inner):
        v = tf.Variable([1.0], name="v")

    assert received == [("inner", "v", None), ("outer", "renamed", False)]
    assert (v.name, v.trainable) == ("renamed:0", False)
    assert tf.Variable(1.0).trainable


def test_a_creator_may_return_another_object():
    with tf.variable_creator_scope(lambda next_creator, **kwargs: (next_creator(**kwargs), "too")):
        v, label = tf.Variable(1.0)

    assert (float(v), label) == (1.0, "too")


def test_subclasses_of_variable_bypass_creators():
    class Special(tf.Variable):
        pass

    with tf.variable_creator_scope(lambda *_, **__: None):
        assert type(Special(1.0)) is Special


# Devices


@pytest.mark.parametrize(
    "name", ["/CPU:0", "cpu:0", "/device:CPU:0", CPU, "/GPU:0", None, "", tf.DeviceSpec()]
)
def test_operations_run_where_their_inputs_are(name):
    with tf.device(name):
        assert (tf.constant(1.0) + 1.0).device == CPU


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (
            "banana",
            ValueError,
            "Unknown attribute 'banana' is encountered while parsing the device spec: 'banana'. "
            "Expected a name like '/CPU:0' or '/job:localhost/replica:0/task:0/device:CPU:0'.",
        ),
        (
            "/cpu:0/gpu:1",
            ValueError,
            "Multiple device types are not allowed while parsing the device spec: /cpu:0/gpu:1.",
        ),
        (3, ValueError, "Expecting a string device name. Got <class 'int'>(3)"),
        (print, RuntimeError, "tf.device does not support functions. Expected a name."),
        (
            "/job:worker/task:1",
            tf.errors.InvalidArgumentError,
            "/job:worker/task:1 unknown device. Expected one of /job:localhost/replica:0/task:0.",
        ),
    ],
)
def test_invalid_device_names_raise(name, error, message):
    def enter():
        with tf.device(name):
            pass

    assert_raises(enter, error, message)


@pytest.mark.parametrize(
    ("name", "full_name"),
    [
        ("/job:w/replica:1/task:2/device:GPU:3", "/job:w/replica:1/task:2/device:GPU:3"),
        ("/CPU:0", "/device:CPU:0"),
        ("cpu:1", "/device:CPU:1"),
        ("/gpu:*", "/device:GPU:*"),
        ("/GPU", "/device:GPU:*"),
        ("/device:XLA_GPU:1", "/device:XLA_GPU:1"),
        ("/job:a/job:b", "/job:b"),
        ("/task:3", "/task:3"),
        ("", ""),
    ],
)
def test_device_names_are_parsed(name, full_name):
    spec = tf.DeviceSpec.from_string(name)

    assert spec.to_string() == full_name
    assert tf.DeviceSpec.from_string(full_name) == spec
    assert hash(tf.DeviceSpec.from_string(full_name)) == hash(spec)


def test_device_specs_have_fields():
    spec = tf.DeviceSpec("w", 1, "2", "gpu", 3)

    assert (spec.job, spec.replica, spec.task) == ("w", 1, 2)
    assert (spec.device_type, spec.device_index) == ("GPU", 3)
    assert spec.replace(device_index=None).to_string() == "/job:w/replica:1/task:2/device:GPU:*"
    merged = spec.make_merged_spec(tf.DeviceSpec.from_string("/job:v/CPU:0"))
    assert merged.to_string() == "/job:v/replica:1/task:2/device:CPU:0"
    assert spec.parse_from_string("/CPU:0").to_string() == "/device:CPU:0"
    assert spec != "/job:w"
    assert repr(tf.DeviceSpec(job="w")) == (
        "<DeviceSpec(job=w, replica=None, task=None, device_type=None, device_index=None)>"
    )
