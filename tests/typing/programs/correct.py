"""A program that uses the public names as their documentation says."""

from typing import assert_type

import numpy as np

import retrograde as tf

x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
w = tf.Variable(tf.random.normal([2, 1]), name="w")
b = tf.Variable(tf.zeros([1]))
assert_type(w, tf.Variable)

with tf.GradientTape(persistent=True) as tape:
    prediction = tf.nn.relu(x @ w + b)
    loss = tf.reduce_mean(tf.square(prediction - 1.0))
assert_type(prediction, tf.Tensor)
assert_type(2.0 * loss, tf.Tensor)
gradients = tape.gradient(loss, [w, b])
jacobian = tape.jacobian(prediction, w, memory_limit=2**20)
print(tape.explain(loss, w), tape.memory())
for gradient, variable in zip(gradients, [w, b], strict=True):
    assert_type(variable.assign_sub(0.1 * gradient), tf.Variable)


@tf.function
def step(values: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(values * w)


@tf.function(jit_compile=True)
def compiled(values: tf.Tensor) -> tf.Tensor:
    return step(values) + 1.0


print(float(compiled(x)), step(x).numpy(), step.get_concrete_function(x))

dataset = tf.data.Dataset.from_tensor_slices((np.ones((8, 2)), np.ones(8))).shuffle(8).batch(4)
assert_type(dataset, tf.data.Dataset)
for features, labels in dataset:
    print(features.shape, labels.dtype)

model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
model.compile(optimizer=tf.keras.optimizers.Adam(1e-3), loss=tf.keras.losses.MeanSquaredError())
model.fit(dataset, epochs=1)

image = tf.nn.conv2d(tf.ones([1, 8, 8, 3]), tf.ones([3, 3, 3, 4]), strides=1, padding="SAME")
total: tf.Tensor = tf.math.log(tf.reduce_sum(image) + 1.0)
shape: tf.TensorShape = total.shape
dtype: tf.DType = tf.float32
spec = tf.TensorSpec([None, 2], tf.float32)
print(total.numpy(), shape.rank, dtype.name, spec.shape, image[0, :, ..., 1] > 2)
