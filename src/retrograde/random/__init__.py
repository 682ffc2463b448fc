"""tf.random: numbers that are a function of a seed and of how often it was drawn from.

The numbers come from a counter-based generator (`numpy.random.Philox`). The same seed
gives the same numbers again; they are not those of TensorFlow.
"""

from typing import TYPE_CHECKING

from retrograde._api.lazy import lazily
from retrograde._api.names import HOMES

if TYPE_CHECKING:
    from retrograde.random import experimental
    from retrograde.random._drawing import Algorithm
    from retrograde.random.candidates import (
        all_candidate_sampler,
        fixed_unigram_candidate_sampler,
        learned_unigram_candidate_sampler,
        log_uniform_candidate_sampler,
        uniform_candidate_sampler,
    )
    from retrograde.random.generator import (
        Generator,
        create_rng_state,
        get_global_generator,
        set_global_generator,
    )
    from retrograde.random.stateful import (
        categorical,
        gamma,
        normal,
        poisson,
        set_seed,
        shuffle,
        truncated_normal,
        uniform,
    )
    from retrograde.random.stateless import (
        fold_in,
        split,
        stateless_binomial,
        stateless_categorical,
        stateless_gamma,
        stateless_normal,
        stateless_parameterized_truncated_normal,
        stateless_poisson,
        stateless_truncated_normal,
        stateless_uniform,
    )

__getattr__, __dir__ = lazily(__name__, HOMES[__name__])

__all__ = [
    "Algorithm",
    "Generator",
    "all_candidate_sampler",
    "categorical",
    "create_rng_state",
    "experimental",
    "fixed_unigram_candidate_sampler",
    "fold_in",
    "gamma",
    "get_global_generator",
    "learned_unigram_candidate_sampler",
    "log_uniform_candidate_sampler",
    "normal",
    "poisson",
    "set_global_generator",
    "set_seed",
    "shuffle",
    "split",
    "stateless_binomial",
    "stateless_categorical",
    "stateless_gamma",
    "stateless_normal",
    "stateless_parameterized_truncated_normal",
    "stateless_poisson",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
    "uniform_candidate_sampler",
]
