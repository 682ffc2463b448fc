"""Tensor files: errors when a file is opened."""

import pytest

import retrograde as tf
from retrograde.files.tensors import TensorFile


def test_a_file_that_was_deleted_before_it_is_opened_is_not_found(tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match=r"There is no checkpoint at .*gone"):
        TensorFile(str(tmp_path / "gone"), "checkpoint")


def test_a_file_of_another_format_is_corrupt(tmp_path):
    (tmp_path / "text").write_text("text")
    with pytest.raises(tf.errors.DataLossError, match="corrupt or has another format"):
        TensorFile(str(tmp_path / "text"), "checkpoint")
