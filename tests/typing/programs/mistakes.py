"""A program with a mistake in each line that is marked."""

import retrograde as tf

tape = tf.GradientTape()
tensor = tf.constant(1.0)
variable = tf.Variable(1.0)

tf.reduce_summ([1.0])  # mistake
tf.GradientTape(persistant=True)  # mistake
tape.gradients(tensor, variable)  # mistake
tape.jacobian(tensor)  # mistake
tensor.nunpy()  # mistake
number: int = tensor * 2.0  # mistake
variable.assign_additively(1.0)  # mistake
tf.nn.conv2d(tf.ones([1, 8, 8, 3]))  # mistake
tf.nn.relu6(tensor, axis=0)  # mistake
tf.data.Datasets.range(3)  # mistake
tf.function(lambda x: x, jit_compiled=True)  # mistake
