"""Diagnostics of Keras models report the layer."""

import numpy as np

import retrograde as tf
from retrograde import keras

X = tf.constant(np.linspace(-1.0, 1.0, 8, dtype=np.float32).reshape(4, 2))


def model_with_shortcut():
    inputs = keras.Input((2,))
    hidden = keras.layers.Dense(2, activation="tanh", name="hidden")(inputs)
    added = keras.layers.Add(name="joined")([inputs, hidden])
    return keras.Model(inputs, keras.layers.Dense(1, name="head")(added))


def test_graph_has_one_box_per_layer():
    model = model_with_shortcut()
    with tf.GradientTape(lines=True) as tape:
        y = model(X)
        loss = tf.reduce_mean(y * y)
    boxes = tape.graph(loss).boxes.values()

    titles = [box.rows[0] for box in boxes if box.kind == "calls"]
    assert titles == ["hidden", "joined", "head", "loss = tf.reduce_mean(y * y)"]
    assert "kernel  float32[2, 2]" in next(box.rows for box in boxes if box.rows[0] == "hidden")


def test_custom_layer_is_one_box():
    class Twice(keras.layers.Layer):
        def call(self, x):
            y = tf.sin(x)
            return y + tf.cos(x)

    model = keras.Sequential([keras.Input((2,)), Twice(name="first"), Twice(name="second")])
    x = tf.Variable(X)
    with tf.GradientTape(lines=True) as tape:
        loss = tf.reduce_sum(model(x))
    boxes = tape.graph(loss).boxes.values()

    assert [box.rows[0] for box in boxes if box.kind == "calls"][:2] == ["first", "second"]


def test_lines_report_the_innermost_layer():
    model = keras.Sequential([keras.Input((2,)), model_with_shortcut()])
    with tf.GradientTape(lines=True) as tape:
        y = model(X)
        loss = tf.reduce_mean(y * y)
    lines = list(tape.memory(loss).by_line)

    assert any(line.endswith(": y = model(X)  (layer hidden)") for line in lines)
    assert any(line.endswith(": loss = tf.reduce_mean(y * y)") for line in lines)


def test_autopsy_reports_the_layer():
    inputs = keras.Input((2,))
    logarithm = keras.layers.Lambda(lambda x: tf.math.log(x), name="logarithm")
    model = keras.Model(inputs, logarithm(keras.layers.ReLU(name="positive")(inputs)))
    x = tf.Variable(X)
    with tf.GradientTape(lines=True) as tape:
        loss = tf.reduce_mean(model(x))
    tape.gradient(loss, x)

    assert tape.autopsy().primitive == "log"
    assert tape.autopsy().location.layer == "logarithm"
