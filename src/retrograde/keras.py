"""Keras 3 as `tf.keras` shows it, with retrograde in the seat of its backend.

This module stands for Keras's own: `from retrograde.keras import layers` gives Keras's layers.
"""

import sys

from retrograde.keras_backend import install

sys.modules[__name__] = install.take()
