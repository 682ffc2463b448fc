"""Makes retrograde a backend of Keras 3, with the layout of Keras's own backends.

- `ops/` implements `keras.ops`, one module for each module there.
- `random` and `rnn` implement `keras.random` and the loop of recurrent layers.
- `trainer`, `layer` and `export` are the backend-specific parts of models and layers.
- `saving` makes Keras's files atomic.
- `keras_patches` adds names of `tf.keras` that Keras 3 lacks.
- `backend` exports the names that Keras imports from a backend.

`install` selects this backend in Keras. Programs import `retrograde.keras`.
"""

from retrograde.keras_backend.install import installed_keras

installed_keras()  # the modules of this package need Keras to be imported first
