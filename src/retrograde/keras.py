"""`tf.keras`: Keras 3 with retrograde as its backend.

Importing this module returns Keras's own: `from retrograde.keras import layers` imports Keras's
layers.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keras import saving as saving
    from keras._tf_keras.keras import *  # noqa: F403

    # mypy does not read packages without types, such as Keras.
    def __getattr__(name: str) -> Any: ...

else:
    from retrograde.keras_backend.install import installed_keras

    sys.modules[__name__] = installed_keras()
