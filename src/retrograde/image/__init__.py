"""tf.image: images as arrays of height, width and channels, alone or in batches.

`name` is accepted and ignored.
"""

from typing import TYPE_CHECKING

from retrograde._api.lazy import lazily
from retrograde._api.names import HOMES

if TYPE_CHECKING:
    from retrograde.image.adjusting import (
        adjust_brightness,
        adjust_contrast,
        adjust_gamma,
        adjust_hue,
        adjust_saturation,
        per_image_standardization,
    )
    from retrograde.image.boxes import (
        draw_bounding_boxes,
        sample_distorted_bounding_box,
        stateless_sample_distorted_bounding_box,
    )
    from retrograde.image.codecs import decode_bmp, decode_gif, decode_image, decode_png, encode_png
    from retrograde.image.colour import (
        convert_image_dtype,
        grayscale_to_rgb,
        hsv_to_rgb,
        rgb_to_grayscale,
        rgb_to_hsv,
        rgb_to_yiq,
        rgb_to_yuv,
        yiq_to_rgb,
        yuv_to_rgb,
    )
    from retrograde.image.cutting import crop_and_resize, extract_glimpse
    from retrograde.image.jpeg import (
        adjust_jpeg_quality,
        decode_and_crop_jpeg,
        decode_jpeg,
        encode_jpeg,
        extract_jpeg_shape,
        is_jpeg,
        random_jpeg_quality,
        stateless_random_jpeg_quality,
    )
    from retrograde.image.placing import (
        central_crop,
        crop_to_bounding_box,
        flip_left_right,
        flip_up_down,
        pad_to_bounding_box,
        resize_with_crop_or_pad,
        rot90,
        transpose,
    )
    from retrograde.image.quality import (
        image_gradients,
        psnr,
        sobel_edges,
        ssim,
        ssim_multiscale,
        total_variation,
    )
    from retrograde.image.resizing import ResizeMethod, resize, resize_with_pad
    from retrograde.image.sampling import (
        random_brightness,
        random_contrast,
        random_crop,
        random_flip_left_right,
        random_flip_up_down,
        random_hue,
        random_saturation,
        stateless_random_brightness,
        stateless_random_contrast,
        stateless_random_crop,
        stateless_random_flip_left_right,
        stateless_random_flip_up_down,
        stateless_random_hue,
        stateless_random_saturation,
    )
    from retrograde.image.suppression import (
        combined_non_max_suppression,
        non_max_suppression,
        non_max_suppression_overlaps,
        non_max_suppression_padded,
        non_max_suppression_with_scores,
    )
    from retrograde.nn.patches import extract_patches

__getattr__, __dir__ = lazily(__name__, HOMES[__name__])

__all__ = [
    "ResizeMethod",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_jpeg_quality",
    "adjust_saturation",
    "central_crop",
    "combined_non_max_suppression",
    "convert_image_dtype",
    "crop_and_resize",
    "crop_to_bounding_box",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "draw_bounding_boxes",
    "encode_jpeg",
    "encode_png",
    "extract_glimpse",
    "extract_jpeg_shape",
    "extract_patches",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "image_gradients",
    "is_jpeg",
    "non_max_suppression",
    "non_max_suppression_overlaps",
    "non_max_suppression_padded",
    "non_max_suppression_with_scores",
    "pad_to_bounding_box",
    "per_image_standardization",
    "psnr",
    "random_brightness",
    "random_contrast",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_hue",
    "random_jpeg_quality",
    "random_saturation",
    "resize",
    "resize_with_crop_or_pad",
    "resize_with_pad",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "rot90",
    "sample_distorted_bounding_box",
    "sobel_edges",
    "ssim",
    "ssim_multiscale",
    "stateless_random_brightness",
    "stateless_random_contrast",
    "stateless_random_crop",
    "stateless_random_flip_left_right",
    "stateless_random_flip_up_down",
    "stateless_random_hue",
    "stateless_random_jpeg_quality",
    "stateless_random_saturation",
    "stateless_sample_distorted_bounding_box",
    "total_variation",
    "transpose",
    "yiq_to_rgb",
    "yuv_to_rgb",
]
