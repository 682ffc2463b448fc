from retrograde.compat.conversion import as_bytes as as_bytes
from retrograde.compat.conversion import as_str as as_str
from retrograde.compat.conversion import as_str_any as as_str_any
from retrograde.compat.conversion import as_text as as_text
from retrograde.compat.conversion import bytes_or_text_types as bytes_or_text_types
from retrograde.compat.conversion import complex_types as complex_types
from retrograde.compat.conversion import dimension_at_index as dimension_at_index
from retrograde.compat.conversion import dimension_value as dimension_value
from retrograde.compat.conversion import (
    forward_compatibility_horizon as forward_compatibility_horizon,
)
from retrograde.compat.conversion import forward_compatible as forward_compatible
from retrograde.compat.conversion import integral_types as integral_types
from retrograde.compat.conversion import path_to_str as path_to_str
from retrograde.compat.conversion import real_types as real_types
from retrograde.compat.conversion import v2 as v2
