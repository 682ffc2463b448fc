"""Large arrays: lazy evaluation, fused elementwise loops, threads, and memory reuse."""
