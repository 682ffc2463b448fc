"""The exact error messages of tf.image."""

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

IMAGE = np.ones([2, 3, 1], np.float32)
RGB = np.ones([2, 3, 3], np.float32)
BOXES = np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.5, 0.5]], np.float32)
SCORES = np.array([0.5, 0.9], np.float32)
SIZE = [9, 9, 3]

MESSAGES = [
    (
        lambda: tf.image.resize(np.ones([2, 3]), [1, 1]),
        ValueError,
        "resize: `images` has shape (2, 3). Expected three axes, or four for a batch of images.",
    ),
    (
        lambda: tf.image.resize(IMAGE, [1.5, 1]),
        ValueError,
        "resize: `size` must be two int32 numbers. Received: [1.5, 1].",
    ),
    (
        lambda: tf.image.resize(IMAGE, [1]),
        ValueError,
        "resize: `size` must be two numbers, new_height and new_width. Received: [1].",
    ),
    (
        lambda: tf.image.resize(IMAGE, [1, 0]),
        tf.errors.InvalidArgumentError,
        "resize: output dimensions must be positive. Received: 1 and 0.",
    ),
    (
        lambda: tf.image.resize(IMAGE, [1, 1], "cubic"),
        ValueError,
        "resize: method 'cubic' is not supported. Expected one of bilinear, nearest, bicubic, "
        "area, lanczos3, lanczos5, gaussian, mitchellcubic.",
    ),
    (
        lambda: tf.image.resize(IMAGE > 0, [1, 1]),
        tf.errors.InvalidArgumentError,
        "resize: `images` has dtype bool. Expected one of int8, uint8, int16, uint16, int32, "
        "int64, float16, bfloat16, float32, float64.",
    ),
    (
        lambda: tf.image.resize(IMAGE[:0], [1, 1]),
        tf.errors.InvalidArgumentError,
        "resize: images have shape (0, 3, 1). Expected a height, width and number of "
        "channels above 0.",
    ),
    (
        lambda: tf.image.resize_with_pad(IMAGE, 0, 1),
        ValueError,
        "resize_with_pad: target_height must be > 0. Received: 0.",
    ),
    (
        lambda: tf.image.flip_left_right(np.ones([2, 3])),
        ValueError,
        "flip_left_right: `image` has shape (2, 3). Expected at least three axes: height, "
        "width, channels.",
    ),
    (
        lambda: tf.image.flip_left_right(np.ones([2, 0, 3])),
        ValueError,
        "flip_left_right: `image` has shape (2, 0, 3). Expected a height, width and number "
        "of channels above 0.",
    ),
    (
        lambda: tf.image.flip_left_right(np.ones([1, 1, 2, 3, 1])),
        ValueError,
        "flip_left_right: `image` has shape (1, 1, 2, 3, 1). Expected three axes, or four "
        "for a batch of images.",
    ),
    (
        lambda: tf.image.rot90(IMAGE, [1, 2]),
        ValueError,
        "rot90: `k` must be a scalar. Received: [1, 2].",
    ),
    (
        lambda: tf.image.central_crop(IMAGE, 1.5),
        ValueError,
        "central_fraction must be within (0, 1]. Received: 1.5.",
    ),
    (
        lambda: tf.image.crop_to_bounding_box(IMAGE, -1, 0, 1, 1),
        ValueError,
        "crop_to_bounding_box: offset_height must be >= 0. Received: -1.",
    ),
    (
        lambda: tf.image.crop_to_bounding_box(IMAGE, 0, 0, 0, 1),
        ValueError,
        "crop_to_bounding_box: target_height must be > 0. Received: 0.",
    ),
    (
        lambda: tf.image.crop_to_bounding_box(IMAGE, 0, 2, 1, 2),
        ValueError,
        "crop_to_bounding_box: width must be >= target + offset. Received: width 3, target "
        "2, offset 2.",
    ),
    (
        lambda: tf.image.crop_to_bounding_box(IMAGE, 1, 0, tf.constant(2), 2),
        tf.errors.InvalidArgumentError,
        "crop_to_bounding_box: height must be >= target + offset. Received: height 2, target "
        "2, offset 1.",
    ),
    (
        lambda: tf.image.pad_to_bounding_box(IMAGE, 0, 1, 2, 3),
        ValueError,
        "pad_to_bounding_box: width must be <= target - offset. Received: width 3, target 3, "
        "offset 1.",
    ),
    (
        lambda: tf.image.pad_to_bounding_box(IMAGE, 0, 0, 1, 3),
        ValueError,
        "pad_to_bounding_box: height must be <= target - offset. Received: height 2, target "
        "1, offset 0.",
    ),
    (
        lambda: tf.image.convert_image_dtype(IMAGE, tf.bool),
        AttributeError,
        "dtype must be either floating point or integer. Received: bool.",
    ),
    (
        lambda: tf.image.convert_image_dtype(IMAGE > 0, tf.float32),
        AttributeError,
        "image dtype must be either floating point or integer. Received: bool.",
    ),
    (
        lambda: tf.image.grayscale_to_rgb([1.0]),
        ValueError,
        "grayscale_to_rgb: `images` has shape (1,). Expected at least two axes.",
    ),
    (
        lambda: tf.image.grayscale_to_rgb([[1.0, 2.0]]),
        ValueError,
        "grayscale_to_rgb: `images` has shape (1, 2). Expected a last axis of size 1.",
    ),
    (
        lambda: tf.image.rgb_to_hsv(1.0),
        tf.errors.InvalidArgumentError,
        "rgb_to_hsv: `images` is a scalar. Expected at least one axis, the channels.",
    ),
    (
        lambda: tf.image.rgb_to_hsv(IMAGE),
        tf.errors.FailedPreconditionError,
        "rgb_to_hsv: `images` has shape (2, 3, 1). Expected 3 channels.",
    ),
    (
        lambda: tf.image.hsv_to_rgb(tf.constant([1, 2, 3])),
        tf.errors.InvalidArgumentError,
        "hsv_to_rgb: `images` has dtype int32. Expected one of float16, bfloat16, float32, "
        "float64.",
    ),
    (
        lambda: tf.image.adjust_gamma(RGB, -1),
        ValueError,
        "adjust_gamma: gamma should be a non-negative real number. Received: -1.",
    ),
    (
        lambda: tf.image.adjust_hue(RGB, 1.5),
        ValueError,
        "adjust_hue: delta must be in the interval [-1, 1]. Received: 1.5.",
    ),
    (
        lambda: tf.image.adjust_hue(IMAGE, 0.5),
        tf.errors.InvalidArgumentError,
        "adjust_hue: images have shape (2, 3, 1). Expected 3 channels.",
    ),
    (
        lambda: tf.image.adjust_saturation(RGB[0], 0.5),
        tf.errors.InvalidArgumentError,
        "adjust_saturation: images have shape (3, 3). Expected at least three axes: height, "
        "width, channels.",
    ),
    (
        lambda: tf.image.adjust_contrast(RGB, [0.5]),
        tf.errors.InvalidArgumentError,
        "adjust_contrast: contrast_factor must be a scalar of dtype float32. Received: shape "
        "(1,), float32.",
    ),
    (
        lambda: tf.image.psnr(IMAGE, RGB, 1.0),
        ValueError,
        "psnr: images have shapes (2, 3, 1) and (2, 3, 3). Expected the same height, width "
        "and channels.",
    ),
    (
        lambda: tf.image.ssim(IMAGE[0], IMAGE[0], 1.0),
        ValueError,
        "ssim: images have shapes (3, 1) and (3, 1). Expected at least three axes: height, "
        "width, channels.",
    ),
    (
        lambda: tf.image.ssim(np.ones([2, 3, 3, 1]), np.ones([4, 3, 3, 1]), 1.0),
        ValueError,
        "ssim: images have shapes (2, 3, 3, 1) and (4, 3, 3, 1). Expected batches that broadcast.",
    ),
    (
        lambda: tf.image.ssim(IMAGE, IMAGE.astype(np.float64), 1.0),
        tf.errors.InvalidArgumentError,
        "ssim: images have dtypes float32 and float64. Expected the same.",
    ),
    (
        lambda: tf.image.ssim(IMAGE, IMAGE, 1.0),
        tf.errors.InvalidArgumentError,
        "ssim: images have shape (2, 3, 1). Expected at least filter_size=11 pixels along "
        "height and width.",
    ),
    (
        lambda: tf.image.ssim(IMAGE, IMAGE, 1.0, filter_size=0),
        tf.errors.InvalidArgumentError,
        "ssim: filter_size must be at least 1. Received: 0.",
    ),
    (
        lambda: tf.image.ssim_multiscale(IMAGE, IMAGE, 1.0, ()),
        IndexError,
        "ssim_multiscale: power_factors is empty. Expected one factor per scale.",
    ),
    (
        lambda: tf.image.total_variation(IMAGE > 0),
        tf.errors.InvalidArgumentError,
        "total_variation: `images` has dtype bool. Expected one of float16, bfloat16, "
        "float32, float64, complex64, complex128, int8, int16, int32, int64.",
    ),
    (
        lambda: tf.image.image_gradients(IMAGE),
        ValueError,
        "image_gradients: `image` has shape (2, 3, 1). Expected four axes: batch, height, "
        "width, channels.",
    ),
    (
        lambda: tf.image.sobel_edges(IMAGE),
        tf.errors.InvalidArgumentError,
        "sobel_edges: `image` has shape (2, 3, 1). Expected four axes (batch, height, width, "
        "channels), with at least two pixels along height and width.",
    ),
    (
        lambda: tf.image.random_crop(IMAGE, [3, 3, 1]),
        tf.errors.InvalidArgumentError,
        "random_crop: size [3, 3, 1] does not fit into shape [2, 3, 1]. Expected one size per "
        "axis, at most the size of the axis.",
    ),
    (
        lambda: tf.image.random_brightness(IMAGE, -0.5),
        ValueError,
        "max_delta must be non-negative. Received: -0.5.",
    ),
    (
        lambda: tf.image.random_hue(RGB, 0.6),
        ValueError,
        "max_delta must be <= 0.5. Received: 0.6.",
    ),
    (
        lambda: tf.image.random_contrast(IMAGE, 0.5, 0.5),
        ValueError,
        "upper must be > lower. Received: 0.5 and 0.5.",
    ),
    (
        lambda: tf.image.random_saturation(RGB, -0.5, 0.5),
        ValueError,
        "lower must be non-negative. Received: -0.5.",
    ),
    (
        lambda: tf.image.crop_and_resize(IMAGE, BOXES, [0, 0], [2, 2]),
        tf.errors.InvalidArgumentError,
        "crop_and_resize: `image` has shape (2, 3, 1). Expected four axes (batch, height, "
        "width, channels) with at least one pixel.",
    ),
    (
        lambda: tf.image.crop_and_resize(IMAGE[None], BOXES[0], [0, 0], [2, 2]),
        tf.errors.InvalidArgumentError,
        "crop_and_resize: `boxes` has shape (4,). Expected (number of boxes, 4).",
    ),
    (
        lambda: tf.image.crop_and_resize(IMAGE[None], BOXES, [0], [2, 2]),
        tf.errors.InvalidArgumentError,
        "crop_and_resize: `box_indices` has shape (1,). Expected (2,): one for each box.",
    ),
    (
        lambda: tf.image.crop_and_resize(IMAGE[None], BOXES, [0, 1], [2, 2]),
        tf.errors.OutOfRangeError,
        "crop_and_resize: box_indices has values outside [0, 1), the batch size.",
    ),
    (
        lambda: tf.image.crop_and_resize(IMAGE[None], BOXES, [0, 0], [2, 0]),
        tf.errors.InvalidArgumentError,
        "crop_and_resize: `crop_size` is [2, 0]. Expected two integers > 0, height and width.",
    ),
    (
        lambda: tf.image.crop_and_resize(IMAGE[None], BOXES, [0, 0], [2, 2], "cubic"),
        tf.errors.InvalidArgumentError,
        "crop_and_resize: method 'cubic' is not supported. Expected 'bilinear' or 'nearest'.",
    ),
    (
        lambda: tf.image.extract_glimpse(IMAGE, [2, 2], [[0.0, 0.0]]),
        tf.errors.InvalidArgumentError,
        "extract_glimpse: `input` has shape (2, 3, 1). Expected batch, height, width and channels.",
    ),
    (
        lambda: tf.image.extract_glimpse(IMAGE[None], [2], [[0.0, 0.0]]),
        tf.errors.InvalidArgumentError,
        "extract_glimpse: `size` is [2]. Expected two integers >= 0, height and width.",
    ),
    (
        lambda: tf.image.extract_glimpse(IMAGE[None], [2, 2], [0.0, 0.0]),
        tf.errors.InvalidArgumentError,
        "extract_glimpse: `offsets` has shape (2,). Expected (1, 2): y and x for each image.",
    ),
    (
        lambda: tf.image.extract_glimpse(IMAGE[None], [2, 2], [[0.0, 0.0]], noise="pink"),
        tf.errors.InvalidArgumentError,
        "extract_glimpse: noise 'pink' is not supported. Expected 'uniform', 'gaussian' or 'zero'.",
    ),
    (
        lambda: tf.image.non_max_suppression(BOXES[0], SCORES, 2),
        tf.errors.InvalidArgumentError,
        "non_max_suppression: `boxes` has shape (4,). Expected (number of boxes, 4).",
    ),
    (
        lambda: tf.image.non_max_suppression(BOXES, SCORES[:1], 2),
        tf.errors.InvalidArgumentError,
        "non_max_suppression: `scores` has shape (1,). Expected (2,): one for each box.",
    ),
    (
        lambda: tf.image.non_max_suppression(BOXES, SCORES, -1),
        tf.errors.InvalidArgumentError,
        "non_max_suppression: max_output_size must be an integer >= 0. Received: -1.",
    ),
    (
        lambda: tf.image.non_max_suppression(BOXES, SCORES, 2, 1.5),
        tf.errors.InvalidArgumentError,
        "non_max_suppression: iou_threshold must be in [0, 1]. Received: 1.5.",
    ),
    (
        lambda: tf.image.non_max_suppression(BOXES, SCORES, 2, [0.5]),
        tf.errors.InvalidArgumentError,
        "non_max_suppression: iou_threshold must be a scalar. Received: [0.5].",
    ),
    (
        lambda: tf.image.non_max_suppression(
            tf.constant(BOXES), tf.constant(SCORES.astype(np.float16)), 2
        ),
        tf.errors.InvalidArgumentError,
        "non_max_suppression: `scores` has dtype float16. Expected one of float32.",
    ),
    (
        lambda: tf.image.non_max_suppression_with_scores(BOXES, SCORES, 2, soft_nms_sigma=-1.0),
        tf.errors.InvalidArgumentError,
        "non_max_suppression_with_scores: soft_nms_sigma must be >= 0. Received: -1.0.",
    ),
    (
        lambda: tf.image.non_max_suppression_overlaps(BOXES, SCORES, 2),
        tf.errors.InvalidArgumentError,
        "non_max_suppression_overlaps: `overlaps` has shape (2, 4). Expected a square matrix.",
    ),
    (
        lambda: tf.image.non_max_suppression_overlaps(BOXES[:, :2], SCORES[:1], 2),
        tf.errors.InvalidArgumentError,
        "non_max_suppression_overlaps: `scores` has shape (1,). Expected (2,): one for each box.",
    ),
    (
        lambda: tf.image.non_max_suppression_padded(BOXES[None], SCORES[None], 2),
        ValueError,
        "non_max_suppression_padded: pad_to_max_output_size must be True for boxes in batches.",
    ),
    (
        lambda: tf.image.non_max_suppression_padded(BOXES, SCORES[:1], 2),
        ValueError,
        "non_max_suppression_padded: `boxes` has shape (2, 4), `scores` (1,). Expected (..., "
        "number of boxes, 4) and (..., number of boxes).",
    ),
    (
        lambda: tf.image.combined_non_max_suppression(BOXES, SCORES, 2, 2),
        tf.errors.InvalidArgumentError,
        "combined_non_max_suppression: `boxes` has shape (2, 4), `scores` (2,). Expected "
        "(batch, boxes, 1 or classes, 4) and (batch, boxes, classes).",
    ),
    (
        lambda: tf.image.draw_bounding_boxes(IMAGE, BOXES[None], None),
        tf.errors.InvalidArgumentError,
        "draw_bounding_boxes: `images` has shape (2, 3, 1). Expected batch, height, width, "
        "and 1, 3 or 4 channels.",
    ),
    (
        lambda: tf.image.draw_bounding_boxes(IMAGE[None], BOXES, None),
        tf.errors.InvalidArgumentError,
        "draw_bounding_boxes: `boxes` has shape (2, 4). Expected (1, number of boxes, 4).",
    ),
    (
        lambda: tf.image.draw_bounding_boxes(RGB[None], BOXES[None], [[1.0]]),
        tf.errors.InvalidArgumentError,
        "draw_bounding_boxes: `colors` has shape (1, 1). Expected (number of colors, 3): "
        "one value for each channel of the images.",
    ),
    (
        lambda: tf.image.sample_distorted_bounding_box([9, 9], BOXES[None]),
        tf.errors.InvalidArgumentError,
        "sample_distorted_bounding_box: `image_size` has shape (2,). Expected (3,): height, "
        "width, channels.",
    ),
    (
        lambda: tf.image.sample_distorted_bounding_box(SIZE, BOXES),
        tf.errors.InvalidArgumentError,
        "sample_distorted_bounding_box: `bounding_boxes` has shape (2, 4). Expected (batch, "
        "boxes, 4).",
    ),
    (
        lambda: tf.image.sample_distorted_bounding_box(SIZE, BOXES[None, :0]),
        tf.errors.InvalidArgumentError,
        "sample_distorted_bounding_box: `bounding_boxes` has shape (1, 0, 4), which has no "
        "boxes. Set use_image_if_no_bounding_boxes=True to use the whole image as the box.",
    ),
    (
        lambda: tf.image.sample_distorted_bounding_box(SIZE, BOXES[None, :1] * 2),
        tf.errors.InvalidArgumentError,
        "sample_distorted_bounding_box: coordinates of boxes must be in [0, 1]. Received: "
        "[[[0. 0. 2. 2.]]].",
    ),
    (
        lambda: tf.image.sample_distorted_bounding_box(SIZE, BOXES[None], area_range=[0.5]),
        tf.errors.InvalidArgumentError,
        "sample_distorted_bounding_box: area_range must be two numbers > 0. Received: [0.5].",
    ),
    (
        lambda: tf.image.sample_distorted_bounding_box(SIZE, BOXES[None], area_range=[0.5, 2.0]),
        tf.errors.InvalidArgumentError,
        "sample_distorted_bounding_box: area_range must not exceed 1. Received: [0.5, 2.0].",
    ),
    (
        lambda: tf.image.sample_distorted_bounding_box(SIZE, BOXES[None], min_object_covered=-0.5),
        tf.errors.InvalidArgumentError,
        "sample_distorted_bounding_box: min_object_covered must be >= 0. Received: -0.5.",
    ),
    (
        lambda: tf.image.sample_distorted_bounding_box(SIZE, BOXES[None], max_attempts=0),
        tf.errors.InvalidArgumentError,
        "sample_distorted_bounding_box: max_attempts must be > 0. Received: 0.",
    ),
    (
        lambda: tf.image.decode_png([b"x"]),
        tf.errors.InvalidArgumentError,
        "decode_png: `contents` has shape (1,). Expected a scalar.",
    ),
    (
        lambda: tf.image.decode_png(b""),
        tf.errors.InvalidArgumentError,
        "decode_png: `contents` is empty.",
    ),
    (
        lambda: tf.image.decode_png(b"x"),
        tf.errors.InvalidArgumentError,
        "decode_png: the file format is unknown. Expected JPEG, PNG, GIF or BMP.",
    ),
    (
        lambda: tf.image.decode_png(b"\x89PNG", channels=2),
        tf.errors.InvalidArgumentError,
        "decode_png: `channels` must be 0, 1, 3 or 4. Received: 2.",
    ),
    (
        lambda: tf.image.decode_png(b"\x89PNG\r\n\x1a\n"),
        tf.errors.InvalidArgumentError,
        "decode_png: cannot read 8 bytes of PNG: the data is truncated or inconsistent.",
    ),
    (
        lambda: tf.image.decode_png(b"\x89PNG", dtype=tf.float32),
        tf.errors.InvalidArgumentError,
        "decode_png: dtype must be uint8 or uint16. Received: float32.",
    ),
    (
        lambda: tf.image.decode_png(b"BM"),
        tf.errors.InvalidArgumentError,
        "decode_png: the file is a BMP. Use decode_bmp or decode_image.",
    ),
    (
        lambda: tf.image.decode_bmp(b"GIF89a"),
        tf.errors.InvalidArgumentError,
        "decode_bmp: the file is a GIF. Use decode_gif or decode_image.",
    ),
    (
        lambda: tf.image.decode_bmp(b"BM"),
        tf.errors.InvalidArgumentError,
        "decode_bmp: cannot read 2 bytes of BMP: the header needs 32 bytes, but there are 2.",
    ),
    (
        lambda: tf.image.decode_bmp(b"BM", channels=1),
        tf.errors.InvalidArgumentError,
        "decode_bmp: `channels` must be 0, 3 or 4 for BMP. Received: 1.",
    ),
    (
        lambda: tf.image.decode_gif(b"BM"),
        tf.errors.InvalidArgumentError,
        "decode_gif: the file is a BMP. Use decode_bmp or decode_image.",
    ),
    (
        lambda: tf.image.decode_image(b"GIF89a", channels=1),
        tf.errors.InvalidArgumentError,
        "decode_image: `channels` must be 0 or 3 for GIF. Received: 1.",
    ),
    (
        lambda: tf.image.encode_png(IMAGE),
        tf.errors.InvalidArgumentError,
        "encode_png: `image` has dtype float32. Expected one of uint8, uint16.",
    ),
    (
        lambda: tf.image.encode_png(np.zeros([2, 2, 5], np.uint8)),
        tf.errors.InvalidArgumentError,
        "encode_png: `image` has shape (2, 2, 5). Expected (..., height, width, channels), 1 "
        "to 4 channels.",
    ),
    (
        lambda: tf.image.encode_png(np.zeros([2, 2, 3], np.uint8), compression=10),
        tf.errors.InvalidArgumentError,
        "encode_png: compression must be from -1 to 9. Received: 10.",
    ),
    (
        lambda: tf.image.encode_png(np.zeros([0, 2, 3], np.uint8)),
        tf.errors.InternalError,
        "encode_png: `image` has shape (0, 2, 3), which has no pixels.",
    ),
    (
        lambda: tf.image.extract_jpeg_shape(b"x"),
        tf.errors.InvalidArgumentError,
        "extract_jpeg_shape: the data (1 bytes) are not a JPEG file.",
    ),
    (
        lambda: tf.image.extract_jpeg_shape(b"\xff\xd8\xff\xd9\x00\x00"),
        tf.errors.InvalidArgumentError,
        "extract_jpeg_shape: cannot read 6 bytes of JPEG: it has no frame header.",
    ),
    (
        lambda: tf.image.extract_jpeg_shape(b"x", tf.float32),
        tf.errors.InvalidArgumentError,
        "extract_jpeg_shape: output_type must be int32 or int64. Received: float32.",
    ),
    (
        lambda: tf.image.decode_jpeg(b"BM"),
        tf.errors.InvalidArgumentError,
        "decode_jpeg: the file is a BMP. Use decode_bmp or decode_image.",
    ),
    (
        lambda: tf.image.decode_jpeg(b"\xff\xd8\xff\xd9"),
        tf.errors.InvalidArgumentError,
        "decode_jpeg: cannot read 4 bytes of JPEG: it has no frame header.",
    ),
    (
        lambda: tf.image.decode_jpeg(b"\xff\xd8\xff\xd9", channels=4),
        tf.errors.InvalidArgumentError,
        "decode_jpeg: `channels` must be 0, 1 or 3 for JPEG. Received: 4.",
    ),
    (
        lambda: tf.image.decode_jpeg(b"\xff\xd8\xff\xc9\x00\x02\xff\xd9"),
        tf.errors.InvalidArgumentError,
        "decode_jpeg: cannot read 8 bytes of JPEG: its compression (marker 0xc9) is not supported.",
    ),
    (
        lambda: tf.image.decode_jpeg(b"\xff\xd8\xff\xc0\x00\x08\x08\x00\x00\x00\x00\x01\xff\xd9"),
        tf.errors.InvalidArgumentError,
        "decode_jpeg: cannot read 14 bytes of JPEG: the header is not valid.",
    ),
    (
        lambda: tf.image.decode_jpeg(b"\xff\xd8\xff\xc0\x00\x09"),
        tf.errors.InvalidArgumentError,
        "decode_jpeg: cannot read 6 bytes of JPEG: a segment extends beyond the end of the data.",
    ),
    (
        lambda: tf.image.decode_jpeg(b"\xff\xd8\xff\xc0\x00\x02\x00"),
        tf.errors.InvalidArgumentError,
        "decode_jpeg: cannot read 7 bytes of JPEG: the data is truncated or inconsistent.",
    ),
    (
        lambda: tf.image.decode_jpeg(b"x", ratio=3),
        tf.errors.InvalidArgumentError,
        "decode_jpeg: ratio must be 1, 2, 4 or 8. Received: 3.",
    ),
    (
        lambda: tf.image.decode_jpeg(b"x", dct_method="fast"),
        tf.errors.InvalidArgumentError,
        "decode_jpeg: dct_method must be '', 'INTEGER_FAST' or 'INTEGER_ACCURATE'. Received: "
        "'fast'.",
    ),
    (
        lambda: tf.image.decode_and_crop_jpeg(tf.io.encode_jpeg(np.zeros([2, 3, 3])), [0, 0, 3, 3]),
        tf.errors.InvalidArgumentError,
        "decode_and_crop_jpeg: crop_window is [0, 0, 3, 3]. Expected top, left, height and "
        "width in an image of height 2 and width 3.",
    ),
    (
        lambda: tf.image.encode_jpeg(np.zeros([2, 2, 2], np.uint8)),
        tf.errors.InvalidArgumentError,
        "encode_jpeg: `image` has shape (2, 2, 2). Expected (height, width, 1 or 3).",
    ),
    (
        lambda: tf.image.encode_jpeg(np.zeros([2, 2, 3], np.uint8), quality=101),
        tf.errors.InvalidArgumentError,
        "encode_jpeg: quality must be from 0 to 100. Received: 101.",
    ),
    (
        lambda: tf.image.encode_jpeg(np.zeros([2, 2, 3], np.uint8), format="bgr"),
        tf.errors.InvalidArgumentError,
        "encode_jpeg: format must be '', 'grayscale' or 'rgb'. Received: 'bgr'.",
    ),
    (
        lambda: tf.image.encode_jpeg(np.zeros([2, 2, 3], np.uint8), density_unit="m"),
        tf.errors.InvalidArgumentError,
        "encode_jpeg: density_unit must be 'in' or 'cm'. Received: 'm'.",
    ),
    (
        lambda: tf.image.encode_jpeg(np.zeros([0, 2, 3], np.uint8)),
        tf.errors.InternalError,
        "encode_jpeg: `image` has shape (0, 2, 3), which has no pixels.",
    ),
    (
        lambda: tf.image.adjust_jpeg_quality(IMAGE[0], 50),
        tf.errors.InvalidArgumentError,
        "adjust_jpeg_quality: `image` has shape (3, 1). Expected (height, width, 1 or 3).",
    ),
    (
        lambda: tf.image.random_jpeg_quality(RGB, 50, 40),
        ValueError,
        "min_jpeg_quality must be less than max_jpeg_quality. Received: 50 and 40.",
    ),
    (
        lambda: tf.image.random_jpeg_quality(RGB, 50, 140),
        ValueError,
        "jpeg quality must be from 0 to 100. Received: 50 and 140.",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), MESSAGES)
def test_error_message(call, error, message):
    assert_raises(call, error, message)
