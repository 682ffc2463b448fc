"""Sizes from which on another way to compute is faster. They change speed and memory, not values.

Each was measured on two cores; `docs/decisions` has the tables. A module imports those that it uses
under a short name.
"""

# Elementwise work: blocks and threads (decision 0014)

MANY = 1 << 17  # elements from which on an array may be worth more than one thread
BLOCK = 1 << 16  # elements: a few float32 blocks fit the caches, and a kernel outlasts the GIL
THREADED_IF_COSTLY = MANY  # elements from which on threads are worth waking for sine and the like
THREADED_IF_CHEAP = 1 << 21  # and for an addition, which is bound by memory
UFUNC_BLOCK = 1 << 18  # elements of a block for a single ufunc, which reads nothing twice
FEW = 2048  # elements: a call takes longer than the work on so many

# Fused loops and lazy evaluation (decision 0017)

FUSED_BLOCK = 1 << 17  # elements: with more calls in a block, threads wait less for each other
FUSED_THREADED = 1 << 19  # elements times the weight of the calls that are worth a thread
DEFERRED = 3 << 18  # elements from which on a costly call is deferred
DEFERRED_IF_CHEAP = 1 << 20  # and from which on an addition is, for calls that may follow
DEFERRED_CALLS = 48  # in a group, at most: its source must not grow without bound
DEFERRED_ARRAYS = (2, 8)  # inputs that a group may hold in any case, and at most
DEFERRED_BYTES = 1 << 27  # of inputs, if there are more than the smaller number of them

# Products (decision 0021)

ONE_BLAS_THREAD = 1 << 18  # multiplications up to which OpenBLAS uses one thread anyway
TWO_BLAS_THREADS = 1 << 22  # and up to which a second one gains little even with its own core
SHARED_STACK = 1 << 27  # multiplications of a stack that are worth waking our own threads for
STACK_SHARE = 1 << 24  # multiplications of a stack that a thread takes at a time
PAIRWISE_SUM = 1024  # elements in a row from which on NumPy's pairwise sum is more precise
ONES = 1 << 20  # rows from which on the ones for a sum take as much memory as the matrix

# Convolutions (decisions 0010 and 0021)

LINES = 1 << 22  # bytes of lines at a time: they stay in cache, and the products are large
TAPS = 1 << 21  # bytes at a time of windows that are added up element by element
SHARED_CONVOLUTION = 1 << 24  # multiplications that are worth waking our own threads for
CONVOLUTION_SHARE = 1 << 23  # multiplications that a thread takes at a time, at least
SHARED_LINES = 1 << 20  # bytes of lines at a time, if threads share the images
SHARES = 8  # parts of the images, at least, so that threads finish at about the same time
PRODUCT_ROWS = 128  # windows in a product, at least: BLAS copies the filter for each product
PARTIAL_SUMS = 1 << 24  # bytes of a filter's partial sums, one for each part of the images

# Programs (decision 0013)

FOLDED = 1 << 20  # bytes of a constant: larger ones take longer to keep than to compute
COMPARED = 64  # bytes of a constant that is compared with others: numbers in Python code
FREED = 1 << 12  # bytes of an array that a replay frees before its end
INLINED = 1 << 12  # bytes of a constant that becomes part of a compiled program
LOOP_ITERATIONS = 8  # of a re-rolled loop, at least
LOOP_CALLS = 64  # in all iterations together, at least: fewer compile fast without a loop
LOOP_PERIOD = 4096  # calls from one iteration to the next, at most
LOOP_ROWS = 8  # rows of an array that are handled together, at least
LOOP_RESIDUALS = 64  # that a loop passes to the backward pass: rematerializing more is faster

# Checks

CHECKED_FOR_NAN = 1 << 14  # elements of a target for which the check costs little next to the pass
