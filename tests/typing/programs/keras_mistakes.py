"""A program with mistakes that only a checker which reads Keras can find."""

from typing import assert_type

import keras

import retrograde as tf

assert_type(tf.keras.layers.Dense(3), keras.layers.Dense)
tf.keras.layers.Dens(3)  # mistake
tf.keras.layers.Dense()  # mistake
