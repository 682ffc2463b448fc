"""A multilayer perceptron as a `tf.Module`."""

import itertools

import numpy as np
import tensorflow as tf


class Mlp(tf.Module):
    """A multilayer perceptron with an activation between the layers."""

    def __init__(self, widths, activation=tf.tanh, seed=1, name=None):
        super().__init__(name=name)
        random = np.random.default_rng(seed)
        self.activation = activation
        self.layers = []
        for i, (fan_in, fan_out) in enumerate(itertools.pairwise(widths)):
            initial = random.normal(0.0, fan_in**-0.5, (fan_in, fan_out)).astype(np.float32)
            w = tf.Variable(initial, name=f"w{i}")
            b = tf.Variable(np.zeros(fan_out, np.float32), name=f"b{i}")
            self.layers.append((w, b))

    def __call__(self, x):
        for w, b in self.layers[:-1]:
            x = self.activation(x @ w + b)
        w, b = self.layers[-1]
        return x @ w + b
