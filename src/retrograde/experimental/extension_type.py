"""tf.experimental.extension_type: functions for ExtensionTypes."""

from retrograde._api.lazy import from_all
from retrograde.extension_types.types import as_dict

__all__ = ["as_dict"]

__getattr__, __dir__ = from_all(__name__)
