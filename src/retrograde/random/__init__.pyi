from retrograde.random import experimental as experimental
from retrograde.random._sampling import Algorithm as Algorithm
from retrograde.random.candidate_sampling import all_candidate_sampler as all_candidate_sampler
from retrograde.random.candidate_sampling import (
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
)
from retrograde.random.candidate_sampling import (
    learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
)
from retrograde.random.candidate_sampling import (
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
)
from retrograde.random.candidate_sampling import (
    uniform_candidate_sampler as uniform_candidate_sampler,
)
from retrograde.random.generator import Generator as Generator
from retrograde.random.generator import create_rng_state as create_rng_state
from retrograde.random.generator import get_global_generator as get_global_generator
from retrograde.random.generator import set_global_generator as set_global_generator
from retrograde.random.stateful import categorical as categorical
from retrograde.random.stateful import gamma as gamma
from retrograde.random.stateful import normal as normal
from retrograde.random.stateful import poisson as poisson
from retrograde.random.stateful import set_seed as set_seed
from retrograde.random.stateful import shuffle as shuffle
from retrograde.random.stateful import truncated_normal as truncated_normal
from retrograde.random.stateful import uniform as uniform
from retrograde.random.stateless import fold_in as fold_in
from retrograde.random.stateless import split as split
from retrograde.random.stateless import stateless_binomial as stateless_binomial
from retrograde.random.stateless import stateless_categorical as stateless_categorical
from retrograde.random.stateless import stateless_gamma as stateless_gamma
from retrograde.random.stateless import stateless_normal as stateless_normal
from retrograde.random.stateless import (
    stateless_parameterized_truncated_normal as stateless_parameterized_truncated_normal,
)
from retrograde.random.stateless import stateless_poisson as stateless_poisson
from retrograde.random.stateless import stateless_truncated_normal as stateless_truncated_normal
from retrograde.random.stateless import stateless_uniform as stateless_uniform
