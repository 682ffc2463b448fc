from retrograde.experimental import dlpack as dlpack
from retrograde.experimental import numpy as numpy
