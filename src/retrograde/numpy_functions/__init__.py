"""NumPy functions on tensors, without dtype promotion.

`tf.experimental.numpy` and the Keras backend share most function names. They differ in argument
conversion, dtype promotion and errors. The functions here implement the rest: they accept tensors
that already have the dtype to compute in. Functions that are a single primitive call after
promotion are defined in the two packages.

So are these functions, because TensorFlow and Keras compute different results:

- `cbrt`, `hypot`, `exp2`, `log2`, `log10`, `linspace`, `logspace`, `geomspace`: TensorFlow composes
  them of other functions. Keras has NumPy's precision, and computes half precision in float32.
- `isclose`, `signbit`: TensorFlow compares integers exactly, treats no infinity as close to itself
  and treats negative zero as positive. Keras agrees with NumPy.
- `take`, `split`, `pad`, `roll`, `average`: TensorFlow clips or wraps indices and accepts fewer
  modes, index orders and weight shapes than NumPy and Keras.
- `negative`, `reciprocal`, `abs`, `sign`: Keras accepts unsigned integers, integers and booleans
  for which TensorFlow raises an error.
"""
