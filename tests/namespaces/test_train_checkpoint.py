"""tf.train.Checkpoint: names, restoring, deferred restoring, status and errors."""

import gc
import logging
import weakref

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

Checkpoint = tf.train.Checkpoint
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
GRAPH = ("_CHECKPOINTABLE_OBJECT_GRAPH", [])


class Layer(tf.Module):
    """An empty module."""


def make_module(start=0.0):
    """Creates a module with nested containers. Its variables count up from `start`."""
    numbers = iter(np.arange(start, start + 10, dtype=np.float32))
    layer = Layer()
    layer.a = tf.Variable(next(numbers))
    layer.l = [tf.Variable(next(numbers)), tf.Variable([next(numbers)] * 2)]
    layer.d = {"k": tf.Variable(next(numbers)), "n": 3}
    layer.t = (tf.Variable(next(numbers)), "text")
    layer.sub = Layer()
    layer.sub.v = tf.Variable(next(numbers))
    layer.sub.back = layer
    return layer


def variable_values(module):
    return [v.numpy().tolist() for v in module.variables]


def checkpoint_names(path):
    return [name for name, _ in tf.train.list_variables(path)]


# Names


def test_names_are_attribute_paths(tmp_path):
    path = Checkpoint(m=make_module(), step=tf.Variable(3)).save(tmp_path / "ckpt")
    assert path == str(tmp_path / "ckpt-1")
    assert tf.train.list_variables(path) == [
        GRAPH,
        (f"m/a{VALUE}", []),
        (f"m/d/k{VALUE}", []),
        (f"m/l/0{VALUE}", []),
        (f"m/l/1{VALUE}", [2]),
        (f"m/sub/v{VALUE}", []),
        (f"m/t/0{VALUE}", []),
        (f"save_counter{VALUE}", []),
        (f"step{VALUE}", []),
    ]


def test_names_start_at_the_root(tmp_path):
    root = Layer()
    root.v = tf.Variable(1.0)
    path = Checkpoint(root, x=tf.Variable(2)).write(tmp_path / "a")
    assert checkpoint_names(path)[1:] == [f"v{VALUE}", f"x{VALUE}"]


def test_slashes_and_dots_in_names_are_escaped_as_in_tensorflow(tmp_path):
    parts = {name: tf.Variable(1.0) for name in ("a/b", "x.y", ".ATTRIBUTES")}
    path = Checkpoint(d=parts).write(tmp_path / "a")
    expected = [f"d/..ATTRIBUTES{VALUE}", f"d/a.Sb{VALUE}", f"d/x..y{VALUE}"]
    assert checkpoint_names(path)[1:] == expected


def test_shared_variables_are_saved_once(tmp_path):
    v = tf.Variable(1.0)
    path = Checkpoint(a=v, b=[v]).write(tmp_path / "a")
    assert checkpoint_names(path)[1:] == [f"a{VALUE}"]
    w = tf.Variable(0.0)
    Checkpoint(a=w, b=[w]).read(path).assert_consumed()
    assert float(w) == 1.0


def test_shared_variables_are_named_by_the_first_path(tmp_path):
    v = tf.Variable(1.0)
    path = Checkpoint(second=[v], first=[v], z=tf.Variable(2.0)).write(tmp_path / "a")
    assert checkpoint_names(path)[1:] == [f"first/0{VALUE}", f"z{VALUE}"]


# Saving and restoring


def test_save_and_restore(tmp_path):
    saved, other = make_module(1.0), make_module(100.0)
    path = Checkpoint(m=saved).save(tmp_path / "ckpt")
    Checkpoint(m=other).restore(path).assert_consumed()
    assert variable_values(other) == variable_values(saved)


DTYPES = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
]


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_restore_all_dtypes(dtype, shape, tmp_path):
    start = tf.cast(tf.constant(np.random.default_rng(1).integers(0, 2, shape)), dtype)
    path = Checkpoint(v=tf.Variable(start)).write(tmp_path / "a")
    v = tf.Variable(tf.zeros(shape, dtype))
    Checkpoint(v=v).read(path).assert_consumed()
    assert v.dtype == tf.as_dtype(dtype)
    np.testing.assert_array_equal(v.numpy(), start.numpy())
    reader = tf.train.load_checkpoint(path)
    assert reader.get_variable_to_dtype_map()[f"v{VALUE}"] == tf.as_dtype(dtype)
    assert reader.get_variable_to_shape_map()[f"v{VALUE}"] == list(shape)


@pytest.mark.parametrize("text", ["", ["a", "", "längst"], [["a"], ["bc"]]])
def test_restore_strings(text, tmp_path):
    path = Checkpoint(v=tf.Variable(text)).write(tmp_path / "a")
    v = tf.Variable(tf.fill(tf.constant(text).shape, "x"))
    Checkpoint(v=v).read(path).assert_consumed()
    np.testing.assert_array_equal(v.numpy(), tf.constant(text).numpy())
    assert tf.train.list_variables(path) == [GRAPH, (f"v{VALUE}", list(v.shape))]


def test_restore_non_contiguous_arrays(tmp_path):
    v = tf.Variable(tf.transpose(tf.reshape(tf.range(6), [2, 3])))
    path = Checkpoint(v=v).write(tmp_path / "a")
    np.testing.assert_array_equal(tf.train.load_variable(path, f"v{VALUE}"), v.numpy())


def test_restore_random_generators(tmp_path):
    generator = tf.random.Generator.from_seed(5)
    generator.normal([2])
    path = Checkpoint(g=generator).write(tmp_path / "a")
    expected = generator.normal([3]).numpy()
    other = tf.random.Generator.from_seed(1)
    Checkpoint(g=other).read(path).assert_consumed()
    np.testing.assert_array_equal(other.normal([3]).numpy(), expected)
    assert checkpoint_names(path)[1:] == [f"g/_state_var{VALUE}"]


class Text(tf.train.experimental.PythonState):
    def __init__(self, text):
        self.text = text

    def serialize(self):
        return self.text

    def deserialize(self, string_value):
        self.text = string_value


def test_python_state(tmp_path):
    path = Checkpoint(t=Text("ab"), u=Text(b"\xff")).write(tmp_path / "a")
    t, u = Text(""), Text("")
    Checkpoint(t=t, u=u).read(path).assert_consumed()
    assert (t.text, u.text) == (b"ab", b"\xff")
    assert tf.train.load_variable(path, "t/.ATTRIBUTES/py_state") == b"ab"


def test_nested_checkpoints(tmp_path):
    inner = Checkpoint(v=tf.Variable(4.0))
    path = Checkpoint(inner=inner).save(tmp_path / "a")
    v = tf.Variable(0.0)
    Checkpoint(inner=Checkpoint(v=v)).restore(path).assert_consumed()
    assert float(v) == 4.0


def test_restore_does_not_change_earlier_values(tmp_path):
    v = tf.Variable([1.0, 2.0])
    path = Checkpoint(v=v).write(tmp_path / "a")
    v.assign([3.0, 4.0])
    value = v.value()
    Checkpoint(v=v).read(path)
    assert value.numpy().tolist() == [3.0, 4.0]


def test_restore_optimizer_slots(tmp_path):
    class Momentum(tf.Module):
        def __init__(self, variables):
            super().__init__()
            self.trained = list(variables)
            self.slots = {f"slot{i}": tf.Variable(v * 0) for i, v in enumerate(variables)}

        def apply(self, gradients):
            for v, g, slot in zip(self.trained, gradients, self.slots.values(), strict=True):
                slot.assign(0.9 * slot + g)
                v.assign_sub(0.1 * slot)

    def make_state():
        v = tf.Variable([1.0, -2.0])
        return v, Momentum([v])

    def train(v, optimizer, count):
        for _ in range(count):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(v**4)
            optimizer.apply(tape.gradient(loss, [v]))

    v, optimizer = make_state()
    train(v, optimizer, 3)
    path = Checkpoint(v=v, optimizer=optimizer).write(tmp_path / "a")
    train(v, optimizer, 3)
    w, other = make_state()
    Checkpoint(v=w, optimizer=other).read(path).assert_consumed()
    train(w, other, 3)
    np.testing.assert_array_equal(w.numpy(), v.numpy())


# Save counter


def test_save_counter_is_saved(tmp_path):
    v = tf.Variable(1.0)
    first = Checkpoint(v=v)
    assert int(first.save_counter) == 0
    assert [first.save(tmp_path / "c") for _ in range(2)] == [
        str(tmp_path / "c-1"),
        str(tmp_path / "c-2"),
    ]
    later = Checkpoint(v=v)
    later.restore(str(tmp_path / "c-2")).assert_consumed()
    assert later.save(tmp_path / "c") == str(tmp_path / "c-3")


def test_write_does_not_save_the_counter(tmp_path):
    path = Checkpoint(v=tf.Variable(1.0)).write(tmp_path / "a")
    Checkpoint(v=tf.Variable(0.0)).read(path).assert_consumed()
    status = Checkpoint(v=tf.Variable(0.0)).restore(path)
    with pytest.raises(AssertionError, match="save_counter"):
        status.assert_consumed()


# Deferred restoration


def test_deferred_restoration_of_attributes_lists_and_dicts(tmp_path):
    path = Checkpoint(m=make_module(1.0)).save(tmp_path / "c")
    empty = Layer()
    empty.l = []
    status = Checkpoint(m=empty).restore(path)
    status.assert_existing_objects_matched()
    assert_raises(
        status.assert_consumed,
        AssertionError,
        f"Unresolved object in checkpoint (root).m.a: m/a{VALUE}",
    )
    empty.a = tf.Variable(0.0)
    assert float(empty.a) == 1.0
    empty.l.append(tf.Variable(0.0))
    assert float(empty.l[0]) == 2.0
    empty.l += [tf.Variable([0.0, 0.0])]
    assert empty.l[1].numpy().tolist() == [3.0, 3.0]
    empty.d = {}
    empty.d["k"] = tf.Variable(0.0)
    assert float(empty.d["k"]) == 4.0
    empty.t = (tf.Variable(0.0),)
    assert float(empty.t[0]) == 5.0
    empty.sub = Layer()
    empty.sub.v = tf.Variable(0.0)
    assert float(empty.sub.v) == 6.0
    status.assert_consumed()


def test_deferred_restoration_after_the_status_is_deleted(tmp_path):
    path = Checkpoint(m=make_module(1.0)).save(tmp_path / "c")
    module = Layer()
    Checkpoint(m=module).restore(path)
    gc.collect()
    module.a = tf.Variable(0.0)
    assert float(module.a) == 1.0


def test_deferred_restoration_after_the_file_is_deleted(tmp_path):
    path = Checkpoint(m=make_module(1.0)).save(tmp_path / "c")
    module = Layer()
    Checkpoint(m=module).restore(path)
    (tmp_path / "c-1.safetensors").unlink()
    module.a = tf.Variable(0.0)
    assert float(module.a) == 1.0


def test_deferred_restoration_of_root_attributes(tmp_path):
    saved = make_module(1.0)
    path = Checkpoint(saved, x=tf.Variable(2.0)).write(tmp_path / "a")
    root = Layer()
    root.l = []
    checkpoint = Checkpoint(root)
    status = checkpoint.read(path)
    root.a = tf.Variable(0.0)
    root.l.append(tf.Variable(0.0))
    checkpoint.x = tf.Variable(0.0)
    assert [float(v) for v in (root.a, root.l[0], checkpoint.x)] == [1.0, 2.0, 2.0]
    status.expect_partial()


def test_deferred_restoration_of_nested_lists(tmp_path):
    path = Checkpoint(l=[[tf.Variable(1.0), tf.Variable(2.0)]]).write(tmp_path / "a")
    checkpoint = Checkpoint(l=[[]])
    status = checkpoint.read(path)
    checkpoint.l[0].extend([tf.Variable(0.0), tf.Variable(0.0)])
    assert [float(v) for v in checkpoint.l[0]] == [1.0, 2.0]
    status.assert_consumed()


@pytest.mark.parametrize("created_inside", [True, False])
def test_deferred_restoration_inside_a_function_happens_once(created_inside, tmp_path):
    path = Checkpoint(m=make_module(1.0)).write(tmp_path / "a")
    module, outside = Layer(), tf.Variable(0.0)
    Checkpoint(m=module).read(path).expect_partial()

    @tf.function
    def step(x):
        if not hasattr(module, "a"):
            module.a = tf.Variable(0.0) if created_inside else outside
        module.a.assign_add(x)
        return module.a + 0.0

    assert [float(step(tf.constant(1.0))) for _ in range(3)] == [2.0, 3.0, 4.0]


def test_last_restore_wins(tmp_path):
    first = Checkpoint(m=make_module(1.0)).write(tmp_path / "a")
    second = Checkpoint(m=make_module(50.0)).write(tmp_path / "b")
    module = Layer()
    module.l = []
    checkpoint = Checkpoint(m=module)
    checkpoint.read(first).expect_partial()
    checkpoint.read(second).expect_partial()
    module.l.append(tf.Variable(0.0))
    module.a = tf.Variable(0.0)
    assert (float(module.l[0]), float(module.a)) == (51.0, 50.0)


def test_observed_objects_can_be_freed(tmp_path):
    path = Checkpoint(m=make_module(1.0)).write(tmp_path / "a")
    module = Layer()
    Checkpoint(m=module).read(path).expect_partial()
    freed = weakref.ref(module)
    del module
    gc.collect()
    assert freed() is None


def test_deferred_shape_mismatch_raises_once(tmp_path):
    path = Checkpoint(m=make_module(1.0)).write(tmp_path / "a")
    module = Layer()
    Checkpoint(m=module).read(path).expect_partial()
    assert_raises(
        lambda: setattr(module, "a", tf.Variable([0.0, 0.0], name="late")),
        ValueError,
        "Received incompatible tensor with shape () when attempting to restore variable with shape "
        "(2,) and name late:0.",
    )
    module.other = 3


def test_failed_restore_registers_no_hooks(tmp_path):
    first = Checkpoint(m=make_module(1.0)).write(tmp_path / "a")
    second = Checkpoint(m=make_module(50.0), v=tf.Variable(1)).write(tmp_path / "b")
    module = Layer()
    module.l = []
    original_list = module.l
    checkpoint = Checkpoint(m=module, v=tf.Variable(0.5))
    with pytest.raises(tf.errors.InvalidArgumentError):
        checkpoint.read(second)
    assert module.l is original_list
    module.other = tf.Variable(0.0)
    checkpoint.read(first).expect_partial()
    with pytest.raises(tf.errors.InvalidArgumentError):
        checkpoint.read(second)
    module.a = tf.Variable(0.0)
    assert float(module.a) == 1.0  # restored from the earlier checkpoint


def test_deferred_mismatch_in_a_list_raises_once(tmp_path):
    path = Checkpoint(l=[tf.Variable(1.0), tf.Variable(2.0)]).write(tmp_path / "a")
    checkpoint = Checkpoint(l=[])
    checkpoint.read(path).expect_partial()
    with pytest.raises(ValueError, match="incompatible"):
        checkpoint.l.append(tf.Variable([0.0]))
    checkpoint.l.append(tf.Variable(0.0))
    assert [v.numpy().tolist() for v in checkpoint.l] == [[0.0], 0.0]


# Status


def test_unmatched_objects_are_reported(tmp_path):
    path = Checkpoint(v=tf.Variable(1.0)).save(tmp_path / "c")
    v, other = tf.Variable(0.0), tf.Variable(7, name="other")
    status = Checkpoint(v=v, other=other).restore(path)
    message = (
        "Found 1 Python objects that were not bound to checkpointed values, likely due to changes "
        f"in the Python program. Showing 1 of 1 unmatched objects: [{other!r}]"
    )
    assert_raises(status.assert_consumed, AssertionError, message)
    assert_raises(status.assert_existing_objects_matched, AssertionError, message)
    assert status.assert_nontrivial_match() is status.expect_partial() is status
    assert float(v) == 1.0


def test_assert_nontrivial_match(tmp_path):
    path = Checkpoint(v=tf.Variable(1.0)).write(tmp_path / "a")
    status = Checkpoint(w=tf.Variable(1.0)).read(path).expect_partial()
    assert_raises(
        status.assert_nontrivial_match,
        AssertionError,
        "Nothing was restored: no object has a name that is in the checkpoint.",
    )


def test_restore_none():
    v = tf.Variable(1.0)
    status = Checkpoint(v=v).restore(None)
    assert status.expect_partial() is status
    for check in ("assert_consumed", "assert_existing_objects_matched", "assert_nontrivial_match"):
        assert_raises(
            getattr(status, check),
            AssertionError,
            "No checkpoint specified (save_path=None); nothing is being restored.",
        )
    assert float(v) == 1.0


def test_one_value_is_restored_to_one_object(tmp_path):
    v = tf.Variable(1.0)
    path = Checkpoint(a=v, b=v).write(tmp_path / "a")
    a, b = tf.Variable(0.0), tf.Variable(0.0)
    status = Checkpoint(a=a, b=b).read(path)
    assert (float(a), float(b)) == (1.0, 0.0)
    with pytest.raises(AssertionError, match="Found 1 Python objects"):
        status.assert_consumed()


def test_unused_values_are_reported_when_the_restoration_ends(tmp_path, caplog):
    path = Checkpoint(a=tf.Variable(1.0), b=[tf.Variable(2.0)]).write(tmp_path / "a")
    with caplog.at_level(logging.WARNING, "retrograde"):
        checkpoint = Checkpoint(a=tf.Variable(1.0))
        checkpoint.read(path)
        gc.collect()
        assert caplog.messages == []
        del checkpoint
        gc.collect()
        assert caplog.messages == [
            "1 values of a checkpoint were not used: (root).b.0. If this is intended, call "
            "expect_partial() on the status that restore() returned."
        ]
        caplog.clear()
        Checkpoint(a=tf.Variable(1.0)).read(path).expect_partial()
        gc.collect()
        assert caplog.messages == []


# Errors


def test_mismatch_does_not_change_variables(tmp_path):
    path = Checkpoint(a=tf.Variable(1.0), b=tf.Variable([1.0, 2.0])).write(tmp_path / "a")
    a, b = tf.Variable(0.0), tf.Variable([0.0])
    assert_raises(
        lambda: Checkpoint(a=a, b=b).read(path),
        ValueError,
        "Received incompatible tensor with shape (2,) when attempting to restore variable with "
        f"shape (1,) and name {b.name}.",
    )
    assert float(a) == 0.0
    b = tf.Variable([0, 0])
    assert_raises(
        lambda: Checkpoint(a=a, b=b).read(path),
        tf.errors.InvalidArgumentError,
        f"tensor_name = b{VALUE}; expected dtype int32 does not equal original dtype float32.",
    )
    assert float(a) == 0.0


def test_object_of_another_type_is_not_restored(tmp_path):
    path = Checkpoint(a=tf.Variable(1.0)).write(tmp_path / "a")
    text = Text("mine")
    with pytest.raises(AssertionError, match="Unresolved object in checkpoint"):
        Checkpoint(a=text).read(path).expect_partial().assert_consumed()
    assert text.text == "mine"


@pytest.mark.parametrize("value", [3, "a", None, tf.constant(1.0)])
def test_untrackable_objects_raise(value):
    assert_raises(
        lambda: Checkpoint(x=value),
        ValueError,
        "`Checkpoint` was expecting x to be a trackable object: a variable, a module, a model, an "
        f"optimizer, an iterator or similar. Got {value!r}.",
    )


def test_conflicting_names_of_the_root_raise():
    root = Layer()
    root.v = tf.Variable(1.0)
    Checkpoint(root, v=root.v)
    assert_raises(
        lambda: Checkpoint(root, v=tf.Variable(1.0)),
        ValueError,
        "`root` has an attribute `v` that is not the object passed as `v`. Use another name.",
    )


def test_dict_keys_must_be_strings_or_integers(tmp_path):
    v = tf.Variable(1.0)
    path = Checkpoint(d={1: v, "a": [v], (): []}).write(tmp_path / "a")
    assert checkpoint_names(path)[1:] == [f"d/1{VALUE}"]
    for parts, key in (({(): [v]}, "()"), ({1: v, "1": tf.Variable(2.0)}, "'1'")):
        checkpoint = Checkpoint(d=parts)
        assert_raises(
            lambda checkpoint=checkpoint: checkpoint.write(tmp_path / "a"),
            ValueError,
            f"Unable to save the dict {parts!r}: its key {key} is not a unique string or integer, "
            "and its item has values to be saved. Use strings for keys.",
        )


def test_write_callbacks(tmp_path):
    calls = []
    options = tf.train.CheckpointOptions(
        experimental_write_callbacks=[calls.append, lambda: calls.append("again")]
    )
    path = Checkpoint(v=tf.Variable(1.0)).save(tmp_path / "c", options)
    assert calls == [path, "again"]
