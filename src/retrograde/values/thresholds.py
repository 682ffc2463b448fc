"""Sizes at which another algorithm becomes faster. They affect speed and memory, not values.

Each was measured on two cores; see the tables in `docs/decisions`. A size is a number of elements,
and work is a number of multiplications.
"""

# Elementwise work: blocks and threads (decision 0014)

LARGE_ARRAY_SIZE = 1 << 17  # larger arrays can benefit from threads
BLOCK_SIZE = 1 << 16  # a few float32 blocks fit in cache, and a kernel outlasts a GIL switch
MIN_THREADED_SIZE_IF_COSTLY = LARGE_ARRAY_SIZE  # for costly kernels, such as sine
MIN_THREADED_SIZE_IF_CHEAP = 1 << 21  # for memory-bound kernels, such as addition
UFUNC_BLOCK_SIZE = 1 << 18  # a single ufunc does not benefit from cache
SMALL_ARRAY_SIZE = 2048  # for smaller arrays, the overhead of a call dominates

# Fused loops and lazy evaluation (decision 0017)

FUSED_BLOCK_SIZE = 1 << 17  # larger, because a block runs several calls
MIN_FUSED_THREADED_WORK = 1 << 19  # elements times the weight of the calls
MIN_DEFERRED_SIZE = 3 << 18  # for costly calls
MIN_DEFERRED_SIZE_IF_CHEAP = 1 << 20  # for cheap calls, such as addition
MAX_DEFERRED_CALLS = 48  # in a group, to bound the length of its source
MAX_DEFERRED_ARRAYS = (2, 8)  # inputs of a group: always allowed, and allowed if they are small
MAX_DEFERRED_BYTES = 1 << 27  # of the inputs, if there are more than are always allowed

# Products (decision 0021)

MAX_SINGLE_THREADED_WORK = 1 << 18  # OpenBLAS uses one thread for smaller products
MAX_CAPPED_WORK = 1 << 22  # a second thread gains little in smaller products
MIN_SHARED_STACK_WORK = 1 << 27  # our own threads share larger stacks of products
STACK_SHARE_WORK = 1 << 24  # of the part of a stack that a thread takes at a time
MIN_PAIRWISE_SUM_SIZE = 1024  # NumPy's pairwise sum is more precise for longer rows
MAX_ONES = 1 << 20  # a longer vector of ones takes too much memory

# Convolutions (decisions 0010 and 0021)

MAX_LINES_BYTES = 1 << 22  # of lines at a time, so that they fit in cache
MAX_TAPS_BYTES = 1 << 21  # of windows at a time, if they are summed elementwise
MIN_SHARED_CONVOLUTION_WORK = 1 << 24  # our own threads share larger convolutions
MIN_CONVOLUTION_SHARE_WORK = 1 << 23  # of the part that a thread takes at a time
MAX_SHARED_LINES_BYTES = 1 << 20  # of lines at a time, if threads share the images
MIN_SHARES = 8  # parts of the images, so that threads finish at about the same time
MIN_PRODUCT_ROWS = 128  # windows in a product, because BLAS copies the filter for each product
MAX_PARTIAL_SUMS_BYTES = 1 << 24  # of a filter, one sum for each part of the images

# Programs (decision 0013)

MAX_FOLDED_BYTES = 1 << 20  # larger constants are faster to recompute
MAX_COMPARED_BYTES = 64  # of a constant that is compared with others
MIN_FREED_BYTES = 1 << 12  # of an array that a replay frees early
MAX_INLINED_BYTES = 1 << 12  # of a constant that is inlined in a compiled program
MIN_LOOP_ITERATIONS = 8  # of a re-rolled loop
MIN_LOOP_CALLS = 64  # in all iterations together: fewer compile fast when unrolled
MAX_LOOP_PERIOD = 4096  # calls from one iteration to the next
MIN_LOOP_ROWS = 8  # of an array that are handled together
MAX_LOOP_RESIDUALS = 64  # rematerializing more values is faster than storing them

# The choice between replay and XLA (decision 0028)

SECONDS_BEFORE_COMPILATION = 2.0  # of replays: shorter runs are not worth the import of JAX
SECONDS_PER_COMPILED_CALL = 0.004  # of a program: XLA takes about that long to compile it
COMPARED_CALLS = 4  # of each kind that are timed

# Checks

MAX_SIZE_CHECKED_FOR_NAN = 1 << 14  # of a target, so that the check is cheap
