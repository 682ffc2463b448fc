"""retrograde as a backend of Keras 3, laid out as Keras lays out its own.

`ops/` holds the functions behind `keras.ops`, one module for each module there; `random` and `rnn`
those behind `keras.random` and recurrent layers; `trainer`, `layer` and `export` the parts of
models and layers that depend on the backend; `saving` makes Keras's files atomic. `backend` gathers
what Keras looks for.

`install` makes Keras choose this backend, and nothing else does. Programs import
`retrograde.keras`.
"""

from retrograde.keras_backend.install import installed_keras

installed_keras()  # these modules can be imported only while Keras is, or after it
