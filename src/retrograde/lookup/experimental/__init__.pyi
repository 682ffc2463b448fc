from retrograde.lookup.mutable import DenseHashTable as DenseHashTable
from retrograde.lookup.mutable import MutableHashTable as MutableHashTable
