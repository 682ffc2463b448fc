from retrograde.image.bounding_boxes import draw_bounding_boxes as draw_bounding_boxes
from retrograde.image.bounding_boxes import (
    sample_distorted_bounding_box as sample_distorted_bounding_box,
)
from retrograde.image.bounding_boxes import (
    stateless_sample_distorted_bounding_box as stateless_sample_distorted_bounding_box,
)
from retrograde.image.codecs import decode_bmp as decode_bmp
from retrograde.image.codecs import decode_gif as decode_gif
from retrograde.image.codecs import decode_image as decode_image
from retrograde.image.codecs import decode_png as decode_png
from retrograde.image.codecs import encode_png as encode_png
from retrograde.image.color_adjustment import adjust_brightness as adjust_brightness
from retrograde.image.color_adjustment import adjust_contrast as adjust_contrast
from retrograde.image.color_adjustment import adjust_gamma as adjust_gamma
from retrograde.image.color_adjustment import adjust_hue as adjust_hue
from retrograde.image.color_adjustment import adjust_saturation as adjust_saturation
from retrograde.image.color_adjustment import per_image_standardization as per_image_standardization
from retrograde.image.color_spaces import convert_image_dtype as convert_image_dtype
from retrograde.image.color_spaces import grayscale_to_rgb as grayscale_to_rgb
from retrograde.image.color_spaces import hsv_to_rgb as hsv_to_rgb
from retrograde.image.color_spaces import rgb_to_grayscale as rgb_to_grayscale
from retrograde.image.color_spaces import rgb_to_hsv as rgb_to_hsv
from retrograde.image.color_spaces import rgb_to_yiq as rgb_to_yiq
from retrograde.image.color_spaces import rgb_to_yuv as rgb_to_yuv
from retrograde.image.color_spaces import yiq_to_rgb as yiq_to_rgb
from retrograde.image.color_spaces import yuv_to_rgb as yuv_to_rgb
from retrograde.image.crop_pad import central_crop as central_crop
from retrograde.image.crop_pad import crop_to_bounding_box as crop_to_bounding_box
from retrograde.image.crop_pad import pad_to_bounding_box as pad_to_bounding_box
from retrograde.image.crop_pad import resize_with_crop_or_pad as resize_with_crop_or_pad
from retrograde.image.crop_windows import crop_and_resize as crop_and_resize
from retrograde.image.crop_windows import extract_glimpse as extract_glimpse
from retrograde.image.flip import flip_left_right as flip_left_right
from retrograde.image.flip import flip_up_down as flip_up_down
from retrograde.image.flip import rot90 as rot90
from retrograde.image.flip import transpose as transpose
from retrograde.image.jpeg import adjust_jpeg_quality as adjust_jpeg_quality
from retrograde.image.jpeg import decode_and_crop_jpeg as decode_and_crop_jpeg
from retrograde.image.jpeg import decode_jpeg as decode_jpeg
from retrograde.image.jpeg import encode_jpeg as encode_jpeg
from retrograde.image.jpeg import extract_jpeg_shape as extract_jpeg_shape
from retrograde.image.jpeg import is_jpeg as is_jpeg
from retrograde.image.jpeg import random_jpeg_quality as random_jpeg_quality
from retrograde.image.jpeg import stateless_random_jpeg_quality as stateless_random_jpeg_quality
from retrograde.image.nms import (
    combined_non_max_suppression as combined_non_max_suppression,
)
from retrograde.image.nms import non_max_suppression as non_max_suppression
from retrograde.image.nms import (
    non_max_suppression_overlaps as non_max_suppression_overlaps,
)
from retrograde.image.nms import non_max_suppression_padded as non_max_suppression_padded
from retrograde.image.nms import (
    non_max_suppression_with_scores as non_max_suppression_with_scores,
)
from retrograde.image.quality import image_gradients as image_gradients
from retrograde.image.quality import psnr as psnr
from retrograde.image.quality import sobel_edges as sobel_edges
from retrograde.image.quality import ssim as ssim
from retrograde.image.quality import ssim_multiscale as ssim_multiscale
from retrograde.image.quality import total_variation as total_variation
from retrograde.image.random_augmentation import random_brightness as random_brightness
from retrograde.image.random_augmentation import random_contrast as random_contrast
from retrograde.image.random_augmentation import random_crop as random_crop
from retrograde.image.random_augmentation import random_flip_left_right as random_flip_left_right
from retrograde.image.random_augmentation import random_flip_up_down as random_flip_up_down
from retrograde.image.random_augmentation import random_hue as random_hue
from retrograde.image.random_augmentation import random_saturation as random_saturation
from retrograde.image.random_augmentation import (
    stateless_random_brightness as stateless_random_brightness,
)
from retrograde.image.random_augmentation import (
    stateless_random_contrast as stateless_random_contrast,
)
from retrograde.image.random_augmentation import stateless_random_crop as stateless_random_crop
from retrograde.image.random_augmentation import (
    stateless_random_flip_left_right as stateless_random_flip_left_right,
)
from retrograde.image.random_augmentation import (
    stateless_random_flip_up_down as stateless_random_flip_up_down,
)
from retrograde.image.random_augmentation import stateless_random_hue as stateless_random_hue
from retrograde.image.random_augmentation import (
    stateless_random_saturation as stateless_random_saturation,
)
from retrograde.image.resizing import ResizeMethod as ResizeMethod
from retrograde.image.resizing import resize as resize
from retrograde.image.resizing import resize_with_pad as resize_with_pad
from retrograde.nn.patches import extract_patches as extract_patches
