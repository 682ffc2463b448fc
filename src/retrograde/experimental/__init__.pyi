from retrograde.data.iterator import Optional as Optional
from retrograde.experimental import dlpack as dlpack
from retrograde.experimental import extension_type as extension_type
from retrograde.experimental import numpy as numpy
from retrograde.extension_types.batching import BatchableExtensionType as BatchableExtensionType
from retrograde.extension_types.batching import (
    ExtensionTypeBatchEncoder as ExtensionTypeBatchEncoder,
)
from retrograde.extension_types.dispatch import dispatch_for_api as dispatch_for_api
from retrograde.extension_types.dispatch import (
    dispatch_for_binary_elementwise_apis as dispatch_for_binary_elementwise_apis,
)
from retrograde.extension_types.dispatch import (
    dispatch_for_binary_elementwise_assert_apis as dispatch_for_binary_elementwise_assert_apis,
)
from retrograde.extension_types.dispatch import (
    dispatch_for_unary_elementwise_apis as dispatch_for_unary_elementwise_apis,
)
from retrograde.extension_types.dispatch import unregister_dispatch_for as unregister_dispatch_for
from retrograde.extension_types.specs import ExtensionTypeSpec as ExtensionTypeSpec
from retrograde.extension_types.types import ExtensionType as ExtensionType
