"""Hostile saved models: every leaf may be anything, and none of it is executed."""

import contextlib
import copy
import functools
import itertools
import json
import tracemalloc

import numpy as np
import pytest

import retrograde as tf
from retrograde.files.checked_json import sealed

CODE = "[open('{canary}', 'w').write('x'), 1][1]"
NESTED = json.loads("[" * 60 + "]" * 60)
CODES = [
    CODE,
    "__import__('os').system('touch {canary}')",
    "x'); open('{canary}', 'w').close(); ('",
]
OTHERS = [
    10**30,
    -(10**30),
    -1,
    2**31,
    1.5,
    None,
    True,
    [],
    {},
    ["a", 1],
    {"tuple": [CODE, 3]},
    {"list": [1, 2, 3]},
    {"of sizes": [[[1, 0, [0]]], [1, 0]]},
    NESTED,
]


# Names of functions, attributes and results are among the leaves.
EXPECTED = (tf.errors.OpError, ValueError, TypeError, AttributeError, KeyError)


class Model(tf.Module):
    """Uses each kind of entry: calls, guards, host functions, draws and gradient functions."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        self.parts = {"scale": tf.Variable(2.0, name="scale"), "list": [tf.constant([1, 2])]}

    @tf.function
    def __call__(self, x):
        y = tf.reduce_mean(x[:, :2] @ self.w[1:], axis=0)
        return {"y": tf.reshape(tf.transpose(y * self.parts["scale"]), [1, 2]), "n": 3}

    @tf.function
    def branches(self, x):
        self.parts["scale"].assign_add(0.0)
        if x[0] > 0:
            return tf.searchsorted(x, [1.5])
        return tf.cast(tf.random.uniform([1], seed=3) * 0.0, tf.int32)

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def rows(self, x):
        @tf.custom_gradient
        def doubled(x):
            return 2.0 * x, lambda g: 3.0 * g

        return tf.reduce_sum(doubled(x), axis=1) + tf.range(tf.cast(tf.shape(x)[0], tf.float32))


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def call_all(model):
    """Calls the functions of a model in every way, and returns their results."""
    with tf.GradientTape() as tape:
        x = tf.constant(X)
        tape.watch(x)
        rows = model.rows(x)
    results = [model(X), model.branches(X[0] + 1.0), rows, tape.gradient(rows, x)]
    results += [model(X), model.rows(X), model.rows(X[:1])]
    results += [model.signatures["rows"](x=tf.constant(X))]
    return [np.asarray(leaf) for leaf in tf.nest.flatten(results)]


def leaves(data, place=()):
    """The places of all leaves of plain data, empty lists and dicts among them."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        if isinstance(value, (dict, list)) and value:
            yield from leaves(value, (*place, key))
        else:
            yield (*place, key)


def replaced(data, place, value):
    data = copy.deepcopy(data)
    part = data
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    return data


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz") / "model"
    model = Model()
    call_all_of_the_original(model)
    tf.saved_model.save(model, str(folder), signatures={"rows": model.rows})
    description = json.loads((folder / "saved_model.json").read_text())
    del description["checksum"]
    return folder, description, call_all(tf.saved_model.load(str(folder)))


def call_all_of_the_original(model):
    model(X)
    model.branches(X[0] + 1.0)
    model.branches(X[0] - 1.0)
    model.rows(X)


def test_a_model_that_was_not_changed_gives_the_same_results(saved):
    folder, description, expected = saved
    (folder / "saved_model.json").write_bytes(sealed(description))

    for actual, wanted in zip(call_all(tf.saved_model.load(str(folder))), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("values", [CODES, OTHERS], ids=["code", "other values"])
def test_every_leaf_may_be_anything(saved, tmp_path, values):
    """Each leaf is replaced once here, by the values in turn; `campaigns/files.py` tries more."""
    folder, description, _ = saved
    canary = tmp_path / "canary"
    values = json.loads(json.dumps(values).replace("{canary}", str(canary)))
    loaded = refused = 0
    for place, value in zip(leaves(description), itertools.cycle(values), strict=False):
        changed = replaced(description, place, value)
        (folder / "saved_model.json").write_bytes(sealed(changed))
        try:
            model = tf.saved_model.load(str(folder))
        except tf.errors.DataLossError:
            refused += 1
            continue
        loaded += 1
        with contextlib.suppress(*EXPECTED):
            call_all(model)
        assert not canary.exists(), place
    assert not canary.exists()
    assert refused > 100
    assert loaded > 0


HUGE = 2**32 - 1


def huge_sizes(description):
    """The places of sizes in specs and variables that stand for arguments."""
    for place in leaves(description):
        if "spec" in place or "variable" in place:
            value = functools.reduce(lambda part, key: part[key], place, description)
            if type(value) is int and type(place[-1]) is int and type(place[-2]) is int:
                yield place


def test_huge_sizes_in_a_file_take_no_memory(saved):
    folder, description, _ = saved
    places = list(huge_sizes(description))
    assert len(places) > 3
    for place in places:
        (folder / "saved_model.json").write_bytes(sealed(replaced(description, place, HUGE)))
        tracemalloc.start()
        with contextlib.suppress(tf.errors.DataLossError):
            tf.saved_model.load(str(folder))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**26, place


def test_a_huge_variable_among_the_arguments_takes_no_memory(tmp_path):
    class Scaled(tf.Module):
        @tf.function
        def __call__(self, v, x):
            return v * x

    model = Scaled()
    model(tf.Variable([1.0, 2.0]), tf.constant(3.0))
    tf.saved_model.save(model, str(tmp_path))
    path = tmp_path / "saved_model.json"
    description = json.loads(path.read_text())
    del description["checksum"]
    text = json.dumps(description)
    changed = text.replace('"variable": [0, [2]', f'"variable": [0, [{HUGE}, {HUGE}]')
    assert changed != text
    path.write_bytes(sealed(json.loads(changed)))
    with pytest.raises(tf.errors.DataLossError):
        tf.saved_model.load(str(tmp_path))
    path.write_bytes(sealed(json.loads(text.replace("[0, [2]", f"[0, [{HUGE}]"))))
    tracemalloc.start()
    with contextlib.suppress(tf.errors.DataLossError):
        tf.saved_model.load(str(tmp_path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**26
