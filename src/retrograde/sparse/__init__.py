"""tf.sparse: tensors of which only the elements that are not zero are kept."""

from retrograde.sparse.making import eye, from_dense, to_dense
from retrograde.sparse.tensor import SparseTensor

__all__ = ["SparseTensor", "eye", "from_dense", "to_dense"]
