"""Sizes at which another algorithm becomes faster. They affect speed and memory, not values.

Each was measured on two cores; see the tables in `docs/decisions`. Modules import them under short
names.
"""

# Elementwise work: blocks and threads (decision 0014)

MANY = 1 << 17  # elements from which on several threads can be faster
BLOCK = 1 << 16  # elements: a few float32 blocks fit in cache, and kernels outlast the GIL switch
THREADED_IF_COSTLY = MANY  # elements from which on costly kernels, such as sine, use threads
THREADED_IF_CHEAP = 1 << 21  # the same for memory-bound kernels, such as addition
UFUNC_BLOCK = 1 << 18  # elements of a block of a single ufunc, which does not benefit from cache
FEW = 2048  # elements up to which the overhead of a call dominates

# Fused loops and lazy evaluation (decision 0017)

FUSED_BLOCK = 1 << 17  # elements: larger blocks, because a block runs several calls
FUSED_THREADED = 1 << 19  # elements times the weight of the calls, from which on threads are used
DEFERRED = 3 << 18  # elements from which on a costly call is deferred
DEFERRED_IF_CHEAP = 1 << 20  # the same for a cheap call, such as addition
DEFERRED_CALLS = 48  # in a group, at most, to bound the size of its source
DEFERRED_ARRAYS = (2, 8)  # inputs that a group may always hold, and at most
DEFERRED_BYTES = 1 << 27  # of inputs, if there are more than the first number of them

# Products (decision 0021)

ONE_BLAS_THREAD = 1 << 18  # multiplications up to which OpenBLAS uses one thread anyway
TWO_BLAS_THREADS = 1 << 22  # multiplications up to which a second thread gains little
SHARED_STACK = 1 << 27  # multiplications of a stack from which on our own threads are used
STACK_SHARE = 1 << 24  # multiplications of a stack that a thread takes at a time
PAIRWISE_SUM = 1024  # elements of a row from which on NumPy's pairwise sum is more precise
ONES = 1 << 20  # rows from which on the vector of ones would take too much memory

# Convolutions (decisions 0010 and 0021)

LINES = 1 << 22  # bytes of lines at a time: they fit in cache, and the products are large
TAPS = 1 << 21  # bytes at a time of windows that are summed elementwise
SHARED_CONVOLUTION = 1 << 24  # multiplications from which on our own threads are used
CONVOLUTION_SHARE = 1 << 23  # multiplications that a thread takes at a time, at least
SHARED_LINES = 1 << 20  # bytes of lines at a time, if threads share the images
SHARES = 8  # parts of the images, at least, so that threads finish at about the same time
PRODUCT_ROWS = 128  # windows in a product, at least: BLAS copies the filter for each product
PARTIAL_SUMS = 1 << 24  # bytes of a filter's partial sums, one for each part of the images

# Programs (decision 0013)

FOLDED = 1 << 20  # bytes of a folded constant, at most: larger ones are faster to recompute
COMPARED = 64  # bytes of a constant that is compared with others, at most
FREED = 1 << 12  # bytes of an array that a replay frees early, at least
INLINED = 1 << 12  # bytes of a constant that is inlined in a compiled program, at most
LOOP_ITERATIONS = 8  # of a re-rolled loop, at least
LOOP_CALLS = 64  # in all iterations together, at least: fewer compile fast when unrolled
LOOP_PERIOD = 4096  # calls from one iteration to the next, at most
LOOP_ROWS = 8  # rows of an array that are handled together, at least
LOOP_RESIDUALS = 64  # of a loop, at most: rematerializing more is faster

# The choice between replay and XLA (decision 0028)

SECONDS_BEFORE_COMPILATION = 2.0  # of replays: shorter runs are not worth the import of JAX
SECONDS_PER_COMPILED_CALL = 0.004  # of a program: XLA takes about that long to compile it
COMPARED_CALLS = 4  # of each kind that are timed

# Checks

CHECKED_FOR_NAN = 1 << 14  # elements of a target up to which the check is cheap
