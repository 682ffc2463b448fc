"""tf.Module: the variables it finds, their order and their names."""

import collections

import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises


class Layer(tf.Module):
    def __init__(self, size, name=None):
        super().__init__(name=name)
        with self.name_scope:
            self.w = tf.Variable(tf.ones([size]), name="w")
            self.b = tf.Variable(tf.ones([size]), name="b", trainable=False)

    @tf.Module.with_name_scope
    def __call__(self, x):
        """Scales `x`."""
        if not hasattr(self, "late"):
            self.late = tf.Variable(1.0, name="late")
        return x * self.w * self.late


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.z = tf.Variable(1.0, name="z")
        self.layers = [Layer(1), Layer(2)]
        self.d = {"q": Layer(3), "a": tf.Variable(2.0, name="dv")}
        self.t = (Layer(1, name="named"), [tf.Variable(4.0, name="deep")])
        self.a = tf.Variable(5.0, name="a")
        self._private = tf.Variable(6.0, name="private")
        self.nested = [[{"x": (tf.Variable(7.0, name="nested"),)}]]
        self.others = {tf.Variable}, "text", 3, tf.constant([1.0])


def names(variables):
    return [v.name.removesuffix(":0") for v in variables]


def test_own_variables_come_first_sorted_by_attribute_name():
    model = Model()
    own = ["private", "a", "dv", "nested", "deep", "z"]

    expected = [*own, *["layer/b", "layer/w"] * 3, "named/b", "named/w"]
    assert names(model.variables) == expected
    assert names(model.trainable_variables) == [*own, *["layer/w"] * 3, "named/w"]
    assert names(model.non_trainable_variables) == [*["layer/b"] * 3, "named/b"]
    assert [m.name for m in model.submodules] == ["layer", "layer", "layer", "named"]


def test_properties_return_tuples():
    model = Model()

    for result in (model.variables, model.trainable_variables, model.submodules):
        assert type(result) is tuple


def test_shared_variables_are_listed_once():
    v = tf.Variable(1.0)
    model = tf.Module()
    model.a, model.b, model.c = v, [v, v], tf.Module()
    model.c.v, model.c.back = v, model

    assert len(model.variables) == 1
    assert len(model.submodules) == 1


def test_a_module_may_contain_itself():
    model = tf.Module()
    model.me, model.v = model, tf.Variable(1.0)

    assert len(model.variables) == 1
    assert model.submodules == ()
    assert [path for path, _ in model._flatten(with_path=True, predicate=is_variable)] == [("v",)]


def test_dicts_are_visited_by_sorted_key_and_named_tuples_in_order():
    model = tf.Module()
    pair = collections.namedtuple("Pair", "b a")
    model.od = collections.OrderedDict(z=tf.Variable(1.0, name="z"), y=tf.Variable(1.0, name="y"))
    model.nt = pair(tf.Variable(1.0, name="first"), tf.Variable(1.0, name="second"))

    assert names(model.variables) == ["first", "second", "y", "z"]


def test_attributes_can_be_ignored():
    class Ignoring(tf.Module):
        _TF_MODULE_IGNORED_PROPERTIES = frozenset(["skipped"])

    model = Ignoring()
    model.skipped, model.kept = tf.Variable(1.0, name="skipped"), tf.Variable(1.0, name="kept")

    assert names(model.variables) == ["kept"]


def is_variable(leaf):
    return isinstance(leaf, tf.Variable)


def test_flatten_returns_paths_and_accepts_a_sort_key():
    model = tf.Module()
    model.v = [{"a": tf.Variable(1.0, name="v")}]
    model.layer = Layer(2)

    paths = [path for path, _ in model._flatten(predicate=is_variable, with_path=True)]
    assert paths == [("v", 0, "a"), ("layer", "b"), ("layer", "w")]
    backwards = model._flatten(
        predicate=is_variable, attribute_traversal_key=lambda key: -ord(key[0])
    )
    assert names(backwards) == ["v", "layer/w", "layer/b"]
    assert names(model._flatten(recursive=False, predicate=is_variable)) == ["v"]
    assert model.layer in list(model._flatten(recursive=False))


def test_properties_are_not_evaluated():
    class Failing(tf.Module):
        @property
        def broken(self):
            raise RuntimeError

    assert Failing().variables == ()


def test_a_module_works_without_its_constructor():
    class WithoutSuperInit(tf.Module):
        def __init__(self):
            self.v = tf.Variable(1.0)

    assert len(WithoutSuperInit().variables) == 1
    with pytest.raises(AttributeError):
        _ = WithoutSuperInit().name


def test_objects_that_represent_a_variable_are_found():
    class VariableLike:
        trainable = True

        def __init__(self):
            self.variable = tf.Variable(1.0)

        def __retrograde_tensor__(self):
            return self.variable

    model = tf.Module()
    model.v = VariableLike()

    assert model.trainable_variables == (model.v,)


@pytest.mark.parametrize(
    ("class_name", "name"),
    [
        ("MyDenseLayer2D", "my_dense_layer2_d"),
        ("RNNCell", "rnn_cell"),
        ("A1B", "a1_b"),
        ("_Private", "__private"),
        ("plain", "plain"),
    ],
)
def test_default_name_is_the_class_name_in_snake_case(class_name, name):
    assert type(class_name, (tf.Module,), {})().name == name


def test_with_name_scope_runs_methods_in_the_scope_of_the_module():
    with tf.name_scope("outer"):
        layer = Layer(1)
    layer(2.0)

    assert layer.name_scope.name == "outer/layer/"
    assert names(layer.variables) == ["outer/layer/b", "outer/layer/late", "outer/layer/w"]
    assert layer.__call__.__doc__ == "Scales `x`."


def test_a_module_can_be_trained():
    layer = Layer(2)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(tf.constant([1.0, 2.0])))
    gradients = tape.gradient(loss, layer.trainable_variables)

    assert [g.numpy().tolist() for g in gradients] == [3.0, [1.0, 2.0]]


@pytest.mark.parametrize("name", ["a b", "1x", "a/b", "", "x-y"])
def test_a_name_must_be_an_identifier(name):
    assert_raises(
        lambda: tf.Module(name=name),
        ValueError,
        f"{name!r} is not a valid module name. Module names must be valid Python identifiers "
        "(e.g. a valid class name).",
    )


def test_dict_keys_must_be_sortable():
    model = tf.Module()
    model.d = {"a": 1, 2: 3}

    assert_raises(
        lambda: model.variables,
        ValueError,
        "Module: the keys of {'a': 1, 2: 3} in attribute 'd' cannot be sorted. Expected keys of "
        "one type.",
    )
