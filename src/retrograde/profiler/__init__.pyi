from retrograde.profiler import experimental as experimental
