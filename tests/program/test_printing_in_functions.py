"""Tests the text of tensors while a function is traced, which is the same in TensorFlow."""

import pytest

import retrograde as tf


def texts_of(describe, *args, **kwargs):
    """Returns the texts that `describe` appends in a function that is called three times."""
    texts = []

    @tf.function
    def f(*args, **kwargs):
        texts.extend(describe(*args, **kwargs))
        return args[0] + 1.0

    for i in range(3):
        f(args[0] + float(i), *args[1:], **kwargs)
    assert f.experimental_get_tracing_count() == len(f.recordings()) == 1
    return texts


@pytest.mark.parametrize("spec", ["{}", "{!s}"])
def test_arguments_have_the_name_of_the_parameter(spec):
    texts = []

    @tf.function
    def f(x, pair):
        texts.append(spec.format(x))
        texts.append(repr(pair))
        return x

    for value in (1.0, 2.0, 3.0):
        f(tf.constant([value]), (tf.constant(1), tf.constant(2)))
    assert texts == [
        'Tensor("x:0", shape=(1,), dtype=float32)',
        "(<tf.Tensor 'pair:0' shape=() dtype=int32>, <tf.Tensor 'pair_1:0' shape=() dtype=int32>)",
    ]
    assert len(f.recordings()) == 1


def test_variadic_arguments_are_numbered():
    assert texts_of(
        lambda *args, k: map(str, (*args, k)), tf.ones([]), tf.ones([2]), k=tf.ones([])
    ) == [
        'Tensor("args_0:0", shape=(), dtype=float32)',
        'Tensor("args_1:0", shape=(2,), dtype=float32)',
        'Tensor("k:0", shape=(), dtype=float32)',
    ]


def test_results_have_the_name_of_the_operation():
    def describe(x):
        first, second = x + 1.0, x + 2.0
        return [repr(first), f"{second}", str(tf.split(x, 2))]

    assert texts_of(describe, tf.ones([2])) == [
        "<tf.Tensor 'add:0' shape=(2,) dtype=float32>",
        'Tensor("add_1:0", shape=(2,), dtype=float32)',
        "[<tf.Tensor 'split:0' shape=(1,) dtype=float32>, "
        "<tf.Tensor 'split:1' shape=(1,) dtype=float32>]",
    ]


def test_variables_have_no_value():
    v = tf.Variable(1.0, name="v")

    def describe(x):
        v.assign(x)
        return [repr(v), f"{v}"]

    assert texts_of(describe, tf.ones([])) == ["<tf.Variable 'v:0' shape=() dtype=float32>"] * 2
    assert "numpy=3.0" in repr(v)


def test_constants_have_a_value():
    c = tf.constant([1, 2])

    assert texts_of(lambda _: [str(c)], tf.ones([])) == [str(c)]


def test_ragged_tensors_have_components():
    texts = []

    @tf.function
    def f(x):
        texts.append(repr(x))
        return x

    for value in (1.0, 2.0):
        f(tf.ragged.constant([[value], [2.0, 3.0]]))
    assert texts == [
        'tf.RaggedTensor(values=Tensor("x:0", shape=(3,), dtype=float32), '
        'row_splits=Tensor("x_1:0", shape=(3,), dtype=int64))'
    ]


def test_a_format_specification_reads_the_value():
    texts = []
    f = tf.function(lambda x: texts.append(f"{x:.1f}") or x)

    f(tf.constant(1.0))
    f(tf.constant(2.0))
    assert texts == ["1.0", "2.0"]
