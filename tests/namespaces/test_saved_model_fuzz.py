"""Hostile saved models: replaces each leaf and checks that nothing is executed."""

import contextlib
import copy
import functools
import itertools
import json
import tracemalloc

import numpy as np
import pytest

import retrograde as tf
from retrograde.files.checked_json import dump_with_checksum

CODE = "[open('{canary}', 'w').write('x'), 1][1]"
NESTED = json.loads("[" * 60 + "]" * 60)
CODE_SAMPLES = [
    CODE,
    "__import__('os').system('touch {canary}')",
    "x'); open('{canary}', 'w').close(); ('",
]
OTHER_VALUES = [
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
    """Uses each kind of entry: calls, guards, host functions, samples and gradient functions."""

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
        def double(x):
            return 2.0 * x, lambda g: 3.0 * g

        return tf.reduce_sum(double(x), axis=1) + tf.range(tf.cast(tf.shape(x)[0], tf.float32))


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def call_all(model):
    """Calls the functions of a model in every way. Returns their results."""
    with tf.GradientTape() as tape:
        x = tf.constant(X)
        tape.watch(x)
        rows = model.rows(x)
    results = [model(X), model.branches(X[0] + 1.0), rows, tape.gradient(rows, x)]
    results += [model(X), model.rows(X), model.rows(X[:1])]
    results += [model.signatures["rows"](x=tf.constant(X))]
    return [np.asarray(leaf) for leaf in tf.nest.flatten(results)]


def leaves(data, path=()):
    """Yields the paths of all leaves of JSON data, including empty lists and dicts."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        if isinstance(value, (dict, list)) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


def replace_leaf(data, path, value):
    data = copy.deepcopy(data)
    part = data
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return data


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    directory = tmp_path_factory.mktemp("fuzz") / "model"
    model = Model()
    call_all_original(model)
    tf.saved_model.save(model, str(directory), signatures={"rows": model.rows})
    description = json.loads((directory / "saved_model.json").read_text())
    del description["checksum"]
    return directory, description, call_all(tf.saved_model.load(str(directory)))


def call_all_original(model):
    model(X)
    model.branches(X[0] + 1.0)
    model.branches(X[0] - 1.0)
    model.rows(X)


def test_unchanged_model_gives_the_same_results(saved):
    directory, description, expected = saved
    (directory / "saved_model.json").write_bytes(dump_with_checksum(description))

    for actual, expected_result in zip(
        call_all(tf.saved_model.load(str(directory))), expected, strict=True
    ):
        np.testing.assert_array_equal(actual, expected_result)


@pytest.mark.parametrize("values", [CODE_SAMPLES, OTHER_VALUES], ids=["code", "other values"])
def test_no_replaced_leaf_executes_code(saved, tmp_path, values):
    """Replaces each leaf once, cycling through the values; `campaigns/files.py` tries more."""
    directory, description, _ = saved
    canary = tmp_path / "canary"
    values = json.loads(json.dumps(values).replace("{canary}", str(canary)))
    loaded = rejected = 0
    for path, value in zip(leaves(description), itertools.cycle(values), strict=False):
        changed = replace_leaf(description, path, value)
        (directory / "saved_model.json").write_bytes(dump_with_checksum(changed))
        try:
            model = tf.saved_model.load(str(directory))
        except tf.errors.DataLossError:
            rejected += 1
            continue
        loaded += 1
        with contextlib.suppress(*EXPECTED):
            call_all(model)
        assert not canary.exists(), path
    assert not canary.exists()
    assert rejected > 100
    assert loaded > 0


HUGE = 2**32 - 1


def paths_of_sizes(description):
    """Yields the paths of sizes in specs and in variables that are arguments."""
    for path in leaves(description):
        if "spec" in path or "variable" in path:
            value = functools.reduce(lambda part, key: part[key], path, description)
            if type(value) is int and type(path[-1]) is int and type(path[-2]) is int:
                yield path


def test_huge_sizes_do_not_allocate(saved):
    directory, description, _ = saved
    paths = list(paths_of_sizes(description))
    assert len(paths) > 3
    for path in paths:
        (directory / "saved_model.json").write_bytes(
            dump_with_checksum(replace_leaf(description, path, HUGE))
        )
        tracemalloc.start()
        with contextlib.suppress(tf.errors.DataLossError):
            tf.saved_model.load(str(directory))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**26, path


def test_huge_variable_arguments_do_not_allocate(tmp_path):
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
    path.write_bytes(dump_with_checksum(json.loads(changed)))
    with pytest.raises(tf.errors.DataLossError):
        tf.saved_model.load(str(tmp_path))
    path.write_bytes(dump_with_checksum(json.loads(text.replace("[0, [2]", f"[0, [{HUGE}]"))))
    tracemalloc.start()
    with contextlib.suppress(tf.errors.DataLossError):
        tf.saved_model.load(str(tmp_path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**26
