from retrograde.linalg import experimental as experimental
from retrograde.linalg.banded import (
    banded_triangular_solve as banded_triangular_solve,
    eigh_tridiagonal as eigh_tridiagonal,
    tridiagonal_matmul as tridiagonal_matmul,
    tridiagonal_solve as tridiagonal_solve,
)
from retrograde.linalg.decompositions import (
    cholesky as cholesky,
    det as det,
    eig as eig,
    eigh as eigh,
    eigvals as eigvals,
    eigvalsh as eigvalsh,
    logdet as logdet,
    lu as lu,
    matrix_rank as matrix_rank,
    qr as qr,
    slogdet as slogdet,
    svd as svd,
)
from retrograde.linalg.diagonals import (
    adjoint as adjoint,
    band_part as band_part,
    diag as diag,
    diag_part as diag_part,
    matrix_transpose as matrix_transpose,
    set_diag as set_diag,
    tensor_diag as tensor_diag,
    tensor_diag_part as tensor_diag_part,
    trace as trace,
)
from retrograde.linalg.functions import expm as expm, logm as logm, sqrtm as sqrtm
from retrograde.linalg.norms import norm as norm, normalize as normalize
from retrograde.linalg.products import (
    cross as cross,
    matmul as matmul,
    matvec as matvec,
    tensordot as tensordot,
)
from retrograde.linalg.solvers import (
    cholesky_solve as cholesky_solve,
    inv as inv,
    lstsq as lstsq,
    lu_matrix_inverse as lu_matrix_inverse,
    lu_reconstruct as lu_reconstruct,
    lu_solve as lu_solve,
    pinv as pinv,
    solve as solve,
    triangular_solve as triangular_solve,
)
from retrograde.linalg.sums import einsum as einsum
from retrograde.math import l2_normalize as l2_normalize
from retrograde.toplevel.clipping import global_norm as global_norm
from retrograde.toplevel.creating import eye as eye
