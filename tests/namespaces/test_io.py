"""tf.io: reading and writing files."""

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises


def test_write_and_read(tmp_path):
    path = str(tmp_path / "new" / "picture.png")
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)

    tf.io.write_file(path, tf.io.encode_png(image))
    contents = tf.io.read_file(tf.constant(path))

    assert contents.dtype == tf.string
    np.testing.assert_array_equal(tf.io.decode_image(contents), image)


def test_write_strings_and_bytes(tmp_path):
    for contents in ("grün", "grün".encode()):
        tf.io.write_file(str(tmp_path / "text"), contents)

        assert tf.io.read_file(str(tmp_path / "text")).numpy().decode() == "grün"


def test_error_classes_match_tensorflow(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")

    assert_raises(
        lambda: tf.io.read_file(str(tmp_path / "none")),
        tf.errors.NotFoundError,
        f"{tmp_path / 'none'}: No such file or directory.",
    )
    assert_raises(
        lambda: tf.io.read_file(str(tmp_path)),
        tf.errors.FailedPreconditionError,
        f"{tmp_path}: Is a directory.",
    )
    assert_raises(
        lambda: tf.io.write_file(str(tmp_path), "x"),
        tf.errors.FailedPreconditionError,
        f"{tmp_path}: Is a directory.",
    )
    assert_raises(
        lambda: tf.io.write_file(str(file / "below"), "x"),
        tf.errors.FailedPreconditionError,
        f"{file / 'below'}: File exists.",
    )
    assert_raises(
        lambda: tf.io.read_file([str(file)]),
        tf.errors.InvalidArgumentError,
        "read_file: `filename` has shape (1,). Expected a scalar.",
    )
    assert_raises(
        lambda: tf.io.write_file(str(file), ["x"]),
        tf.errors.InvalidArgumentError,
        "write_file: `contents` has shape (1,). Expected a scalar.",
    )
    with pytest.raises(TypeError):
        tf.io.read_file(3)


def test_image_functions_are_aliases_of_tf_image():
    images = set(tf.io.__all__) & set(tf.image.__all__)
    assert {"decode_png", "encode_jpeg", "is_jpeg"} <= images
    for name in images:
        assert getattr(tf.io, name) is getattr(tf.image, name)
