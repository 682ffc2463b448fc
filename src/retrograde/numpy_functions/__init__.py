"""NumPy's functions on tensors, without rules for dtypes.

`tf.experimental.numpy` and the Keras backend have most names in common. They differ in how they
convert arguments, to which dtype they promote them and which errors they raise for bad arguments.
Everything after that is here: these functions accept tensors of the dtype to compute in. What is a
single call of a primitive after promotion stays in the two packages.

These pairs compute different results, as TensorFlow and Keras do, and stay there as well:

- `cbrt`, `hypot`, `exp2`, `log2`, `log10`, `linspace`, `logspace`, `geomspace`: TensorFlow composes
  them of other functions; Keras has NumPy's precision, and computes half precision in single.
- `isclose`, `signbit`: TensorFlow compares integers exactly, considers no infinity close to itself
  and negative zero positive; Keras does as NumPy.
- `take`, `split`, `pad`, `roll`, `average`: TensorFlow clips or wraps indices and accepts fewer
  modes, orders of indices and shapes of weights than NumPy and Keras.
- `negative`, `reciprocal`, `abs`, `sign`: Keras accepts unsigned integers, integers and booleans
  for which TensorFlow raises an error.
"""
