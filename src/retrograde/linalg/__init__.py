"""tf.linalg: products, decompositions and solvers. `name` is accepted and ignored."""

from typing import TYPE_CHECKING

from retrograde._api.lazy import lazily
from retrograde._api.names import HOMES

if TYPE_CHECKING:
    from retrograde.linalg import experimental
    from retrograde.linalg.banded import (
        banded_triangular_solve,
        eigh_tridiagonal,
        tridiagonal_matmul,
        tridiagonal_solve,
    )
    from retrograde.linalg.decompositions import (
        cholesky,
        det,
        eig,
        eigh,
        eigvals,
        eigvalsh,
        logdet,
        lu,
        matrix_rank,
        qr,
        slogdet,
        svd,
    )
    from retrograde.linalg.diagonals import (
        adjoint,
        band_part,
        diag,
        diag_part,
        matrix_transpose,
        set_diag,
        tensor_diag,
        tensor_diag_part,
        trace,
    )
    from retrograde.linalg.functions import expm, logm, sqrtm
    from retrograde.linalg.norms import norm, normalize
    from retrograde.linalg.products import cross, matmul, matvec, tensordot
    from retrograde.linalg.solvers import (
        cholesky_solve,
        inv,
        lstsq,
        lu_matrix_inverse,
        lu_reconstruct,
        lu_solve,
        pinv,
        solve,
        triangular_solve,
    )
    from retrograde.linalg.sums import einsum
    from retrograde.math import l2_normalize
    from retrograde.toplevel.clipping import global_norm
    from retrograde.toplevel.creating import eye

__getattr__, __dir__ = lazily(__name__, HOMES[__name__])

__all__ = [
    "adjoint",
    "band_part",
    "banded_triangular_solve",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eig",
    "eigh",
    "eigh_tridiagonal",
    "eigvals",
    "eigvalsh",
    "einsum",
    "experimental",
    "expm",
    "eye",
    "global_norm",
    "inv",
    "l2_normalize",
    "logdet",
    "logm",
    "lstsq",
    "lu",
    "lu_matrix_inverse",
    "lu_reconstruct",
    "lu_solve",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
    "triangular_solve",
    "tridiagonal_matmul",
    "tridiagonal_solve",
]
