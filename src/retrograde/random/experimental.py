"""tf.random.experimental: other names of the same, and two ways to shuffle."""

from retrograde.random._drawing import Algorithm
from retrograde.random.generator import (
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
)
from retrograde.random.shuffling import index_shuffle, stateless_shuffle
from retrograde.random.stateless import fold_in as stateless_fold_in
from retrograde.random.stateless import split as stateless_split

__all__ = [
    "Algorithm",
    "Generator",
    "create_rng_state",
    "get_global_generator",
    "index_shuffle",
    "set_global_generator",
    "stateless_fold_in",
    "stateless_shuffle",
    "stateless_split",
]
