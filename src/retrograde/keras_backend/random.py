"""The functions behind `keras.random`."""

from keras.src.random.seed_generator import SeedGenerator, draw_seed, make_default_seed

__all__ = ["SeedGenerator", "draw_seed", "make_default_seed"]
