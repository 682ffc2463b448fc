"""Synthetic images of digits: glyphs of five by seven pixels, shifted and with noise."""

import numpy as np

_ROWS = (
    (14, 17, 19, 21, 25, 17, 14),
    (4, 12, 4, 4, 4, 4, 14),
    (14, 17, 1, 2, 4, 8, 31),
    (31, 2, 4, 2, 1, 17, 14),
    (2, 6, 10, 18, 31, 2, 2),
    (31, 16, 30, 1, 1, 17, 14),
    (6, 8, 16, 30, 17, 17, 14),
    (31, 1, 2, 4, 8, 8, 8),
    (14, 17, 17, 14, 17, 17, 14),
    (14, 17, 17, 15, 1, 2, 12),
)
SHAPES = np.array([[[row >> bit & 1 for bit in range(4, -1, -1)] for row in g] for g in _ROWS])
SIZE = 12


def make_digits(count, seed, noise=0.25, max_shift=2):
    """Returns images of shape (count, 12, 12) in [0, 1], and their labels.

    A digit is shifted by up to `max_shift` pixels from the center.
    """
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count).astype(np.int32)
    images = np.zeros((count, SIZE, SIZE))
    shifts = random.integers(-max_shift, max_shift + 1, (count, 2))
    for picture, label, (down, right) in zip(images, labels, shifts, strict=True):
        picture[2 + down : 9 + down, 3 + right : 8 + right] = SHAPES[label]
    images *= random.uniform(0.7, 1.0, (count, 1, 1))
    images += random.normal(0.0, noise, images.shape)
    return images.clip(0, 1).astype(np.float32), labels
