from retrograde.autograph import experimental as experimental
from retrograde.autograph.tracing import set_verbosity as set_verbosity
from retrograde.autograph.tracing import trace as trace
