from retrograde.experimental import dlpack as dlpack, numpy as numpy
