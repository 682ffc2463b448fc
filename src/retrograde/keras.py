"""`tf.keras`: Keras 3 with retrograde as its backend.

Importing this module returns Keras's own: `from retrograde.keras import layers` imports Keras's
layers.
"""

import sys

from retrograde.keras_backend.install import installed_keras

sys.modules[__name__] = installed_keras()
