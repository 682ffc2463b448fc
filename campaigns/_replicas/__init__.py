"""Networks that are trained in replicas, and the program that workers run."""
