"""Implements `keras.ops.image`."""

from retrograde.keras_backend.ops.image.color import hsv_to_rgb, rgb_to_grayscale, rgb_to_hsv
from retrograde.keras_backend.ops.image.filters import gaussian_blur, sobel_edges
from retrograde.keras_backend.ops.image.interpolation import (
    MAP_COORDINATES_FILL_MODES,
    map_coordinates,
)
from retrograde.keras_backend.ops.image.resize import (
    RESIZE_INTERPOLATIONS,
    SCALE_AND_TRANSLATE_METHODS,
    resize,
    scale_and_translate,
)
from retrograde.keras_backend.ops.image.transforms import (
    AFFINE_TRANSFORM_FILL_MODES,
    AFFINE_TRANSFORM_INTERPOLATIONS,
    affine_transform,
    compute_homography_matrix,
    elastic_transform,
    perspective_transform,
)
