"""libjpeg-turbo and our own JPEG decoder return the same pixels and raise the same errors."""

from unittest.mock import Mock

import numpy as np
import pytest
import simplejpeg
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograde as tf
from retrograde.image import _jpeg, _libjpeg


def picture(height, width, channels, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = np.stack([np.sin(x / (7 + 3 * c) + y / 11) for c in range(channels)], -1)
    return (127 + 90 * waves + rng.normal(0, 12, waves.shape)).clip(0, 255).astype(np.uint8)


def decode_without_library(data, channels, options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_libjpeg, "_simplejpeg", lambda: None)
        return _jpeg.decode(data, channels, options)


@settings(max_examples=60)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.sampled_from(["444", "422", "420", "440", "411", "Gray"]),
    st.integers(10, 100),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 1, 3]),
)
def test_pixels_are_identical(height, width, subsampling, quality, fancy, accurate, channels):
    image = picture(height, width, 3, height * width)
    data = simplejpeg.encode_jpeg(image, quality, "RGB", subsampling)
    options = _jpeg.Options(fancy, accurate)
    fast = _libjpeg.decode(data, _jpeg.shape(data), channels, fancy, accurate)
    assert fast is not None
    np.testing.assert_array_equal(fast, decode_without_library(data, channels, options))


def test_decode_jpeg_uses_the_library(monkeypatch):
    data = tf.io.encode_jpeg(picture(20, 30, 3, 0)).numpy()
    expected = tf.io.decode_jpeg(data).numpy()
    library = Mock(wraps=simplejpeg)
    monkeypatch.setattr(_libjpeg, "_simplejpeg", lambda: library)
    np.testing.assert_array_equal(tf.io.decode_image(data).numpy(), expected)
    assert library.decode_jpeg.call_count == 1


@pytest.mark.parametrize("corrupt", ["truncated", "flipped", "no_table"])
def test_corrupt_files_raise_the_errors_of_our_decoder(corrupt):
    data = tf.io.encode_jpeg(picture(64, 64, 3, 1)).numpy()
    if corrupt == "truncated":
        data = data[: len(data) // 2]
    elif corrupt == "flipped":
        data = data[:-400] + b"\xff\xc0" * 200
    else:
        data = data.replace(b"\xff\xdb", b"\xff\xe5")
    with pytest.raises(tf.errors.InvalidArgumentError, match="JPEG"):
        tf.io.decode_jpeg(data)


def test_a_size_that_the_data_cannot_fill_is_not_allocated():
    data = tf.io.encode_jpeg(picture(8, 8, 1, 0)).numpy()
    frame = data.index(b"\xff\xc0") + 5
    data = data[:frame] + b"\xff\xff\xff\xff" + data[frame + 4 :]
    assert _libjpeg.decode(data, _jpeg.shape(data), 0, True, False) is None
    with pytest.raises(tf.errors.InvalidArgumentError, match="truncated"):
        tf.io.decode_jpeg(data)
