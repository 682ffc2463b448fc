"""tf.experimental.numpy: NumPy's functions on tensors, with NumPy's rules for mixing dtypes.

The functions are composed of functions of the other namespaces, so tapes record them. Arguments can
be anything that converts to a tensor; results are tensors. Python integers count as int64, floats
as float64, but take the dtype of a tensor in the same call. The operators of tensors stay strict,
unless `experimental_enable_numpy_behavior` is called.

>>> tnp = tf.experimental.numpy
>>> x = tf.Variable([0.5, 1.5])
>>> with tf.GradientTape() as tape:
...     y = tnp.sum(tnp.sin(x) * tnp.exp(x))
>>> tape.gradient(y, x).numpy()
array([2.237328 , 4.7874846], dtype=float32)
"""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
