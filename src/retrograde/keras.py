"""Keras 3 as `tf.keras` shows it, with retrograde as its backend.

This module stands for Keras's own: `from retrograde.keras import layers` gives Keras's layers.
"""

import sys

from retrograde.keras_backend.install import installed_keras

sys.modules[__name__] = installed_keras()
