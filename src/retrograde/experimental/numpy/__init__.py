"""tf.experimental.numpy: NumPy's functions on tensors, with NumPy's rules for mixing dtypes.

The functions are made of those of the other namespaces, and so tapes follow them. Whatever can
become a tensor may be an argument; results are tensors. Python's integers count as int64 and its
floats as float64, but give way to the dtype of a tensor beside them. The operators of tensors stay
strict, unless `experimental_enable_numpy_behavior` is called.

>>> tnp = tf.experimental.numpy
>>> x = tf.Variable([0.5, 1.5])
>>> with tf.GradientTape() as tape:
...     y = tnp.sum(tnp.sin(x) * tnp.exp(x))
>>> tape.gradient(y, x).numpy()
array([2.237328 , 4.7874846], dtype=float32)
"""

from retrograde._api.lazy import from_stub

__getattr__, __dir__ = from_stub(__name__)
