from retrograde.random._drawing import Algorithm as Algorithm
from retrograde.random.generator import (
    Generator as Generator,
    create_rng_state as create_rng_state,
    get_global_generator as get_global_generator,
    set_global_generator as set_global_generator,
)
from retrograde.random.shuffling import (
    index_shuffle as index_shuffle,
    stateless_shuffle as stateless_shuffle,
)
from retrograde.random.stateless import (
    stateless_fold_in as stateless_fold_in,
    stateless_split as stateless_split,
)
