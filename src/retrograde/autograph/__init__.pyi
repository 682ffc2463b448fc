from retrograde.autograph import experimental as experimental
from retrograde.autograph.tracing import set_verbosity as set_verbosity, trace as trace
