from retrograde.linalg import experimental as experimental
from retrograde.linalg._einsum import einsum as einsum
from retrograde.linalg.banded import banded_triangular_solve as banded_triangular_solve
from retrograde.linalg.banded import eigh_tridiagonal as eigh_tridiagonal
from retrograde.linalg.banded import tridiagonal_matmul as tridiagonal_matmul
from retrograde.linalg.banded import tridiagonal_solve as tridiagonal_solve
from retrograde.linalg.decompositions import cholesky as cholesky
from retrograde.linalg.decompositions import det as det
from retrograde.linalg.decompositions import eig as eig
from retrograde.linalg.decompositions import eigh as eigh
from retrograde.linalg.decompositions import eigvals as eigvals
from retrograde.linalg.decompositions import eigvalsh as eigvalsh
from retrograde.linalg.decompositions import logdet as logdet
from retrograde.linalg.decompositions import lu as lu
from retrograde.linalg.decompositions import matrix_rank as matrix_rank
from retrograde.linalg.decompositions import qr as qr
from retrograde.linalg.decompositions import slogdet as slogdet
from retrograde.linalg.decompositions import svd as svd
from retrograde.linalg.diagonals import adjoint as adjoint
from retrograde.linalg.diagonals import band_part as band_part
from retrograde.linalg.diagonals import diag as diag
from retrograde.linalg.diagonals import diag_part as diag_part
from retrograde.linalg.diagonals import matrix_transpose as matrix_transpose
from retrograde.linalg.diagonals import set_diag as set_diag
from retrograde.linalg.diagonals import tensor_diag as tensor_diag
from retrograde.linalg.diagonals import tensor_diag_part as tensor_diag_part
from retrograde.linalg.diagonals import trace as trace
from retrograde.linalg.matrix_functions import expm as expm
from retrograde.linalg.matrix_functions import logm as logm
from retrograde.linalg.matrix_functions import sqrtm as sqrtm
from retrograde.linalg.norms import norm as norm
from retrograde.linalg.norms import normalize as normalize
from retrograde.linalg.products import cross as cross
from retrograde.linalg.products import matmul as matmul
from retrograde.linalg.products import matvec as matvec
from retrograde.linalg.products import tensordot as tensordot
from retrograde.linalg.solvers import cholesky_solve as cholesky_solve
from retrograde.linalg.solvers import inv as inv
from retrograde.linalg.solvers import lstsq as lstsq
from retrograde.linalg.solvers import lu_matrix_inverse as lu_matrix_inverse
from retrograde.linalg.solvers import lu_reconstruct as lu_reconstruct
from retrograde.linalg.solvers import lu_solve as lu_solve
from retrograde.linalg.solvers import pinv as pinv
from retrograde.linalg.solvers import solve as solve
from retrograde.linalg.solvers import triangular_solve as triangular_solve
from retrograde.linear_operators.adjoint_and_inverse import (
    LinearOperatorAdjoint as LinearOperatorAdjoint,
)
from retrograde.linear_operators.adjoint_and_inverse import (
    LinearOperatorInversion as LinearOperatorInversion,
)
from retrograde.linear_operators.blocks import LinearOperatorBlockDiag as LinearOperatorBlockDiag
from retrograde.linear_operators.blocks import (
    LinearOperatorBlockLowerTriangular as LinearOperatorBlockLowerTriangular,
)
from retrograde.linear_operators.circulant import LinearOperatorCirculant as LinearOperatorCirculant
from retrograde.linear_operators.circulant import (
    LinearOperatorCirculant2D as LinearOperatorCirculant2D,
)
from retrograde.linear_operators.circulant import (
    LinearOperatorCirculant3D as LinearOperatorCirculant3D,
)
from retrograde.linear_operators.composition import (
    LinearOperatorComposition as LinearOperatorComposition,
)
from retrograde.linear_operators.composition import (
    LinearOperatorKronecker as LinearOperatorKronecker,
)
from retrograde.linear_operators.composition import (
    LinearOperatorLowRankUpdate as LinearOperatorLowRankUpdate,
)
from retrograde.linear_operators.dense import LinearOperatorFullMatrix as LinearOperatorFullMatrix
from retrograde.linear_operators.dense import (
    LinearOperatorLowerTriangular as LinearOperatorLowerTriangular,
)
from retrograde.linear_operators.diagonal import LinearOperatorDiag as LinearOperatorDiag
from retrograde.linear_operators.diagonal import LinearOperatorIdentity as LinearOperatorIdentity
from retrograde.linear_operators.diagonal import (
    LinearOperatorScaledIdentity as LinearOperatorScaledIdentity,
)
from retrograde.linear_operators.diagonal import LinearOperatorZeros as LinearOperatorZeros
from retrograde.linear_operators.linear_operator import LinearOperator as LinearOperator
from retrograde.linear_operators.structured import (
    LinearOperatorHouseholder as LinearOperatorHouseholder,
)
from retrograde.linear_operators.structured import (
    LinearOperatorPermutation as LinearOperatorPermutation,
)
from retrograde.linear_operators.structured import LinearOperatorToeplitz as LinearOperatorToeplitz
from retrograde.linear_operators.structured import LinearOperatorTridiag as LinearOperatorTridiag
from retrograde.math import l2_normalize as l2_normalize
from retrograde.toplevel.clipping import global_norm as global_norm
from retrograde.toplevel.creation import eye as eye
