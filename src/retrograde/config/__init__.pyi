from retrograde.config import experimental as experimental
from retrograde.config import optimizer as optimizer
from retrograde.config import threading as threading
from retrograde.config.devices import LogicalDevice as LogicalDevice
from retrograde.config.devices import LogicalDeviceConfiguration as LogicalDeviceConfiguration
from retrograde.config.devices import PhysicalDevice as PhysicalDevice
from retrograde.config.devices import (
    get_logical_device_configuration as get_logical_device_configuration,
)
from retrograde.config.devices import get_visible_devices as get_visible_devices
from retrograde.config.devices import list_logical_devices as list_logical_devices
from retrograde.config.devices import list_physical_devices as list_physical_devices
from retrograde.config.devices import (
    set_logical_device_configuration as set_logical_device_configuration,
)
from retrograde.config.devices import set_visible_devices as set_visible_devices
from retrograde.config.eager import (
    experimental_functions_run_eagerly as experimental_functions_run_eagerly,
)
from retrograde.config.eager import (
    experimental_run_functions_eagerly as experimental_run_functions_eagerly,
)
from retrograde.config.eager import functions_run_eagerly as functions_run_eagerly
from retrograde.config.eager import get_soft_device_placement as get_soft_device_placement
from retrograde.config.eager import run_functions_eagerly as run_functions_eagerly
from retrograde.config.eager import set_soft_device_placement as set_soft_device_placement
