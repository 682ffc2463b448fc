from retrograde.types import experimental as experimental
