"""tf.io: files, and what is written in them."""

from typing import TYPE_CHECKING

from retrograde._api.lazy import lazily
from retrograde._api.names import HOMES

if TYPE_CHECKING:
    from retrograde.image.codecs import decode_bmp, decode_gif, decode_image, decode_png, encode_png
    from retrograde.image.jpeg import (
        decode_and_crop_jpeg,
        decode_jpeg,
        encode_jpeg,
        extract_jpeg_shape,
        is_jpeg,
    )
    from retrograde.io import gfile
    from retrograde.io.encodings import (
        decode_base64,
        decode_compressed,
        decode_raw,
        encode_base64,
        parse_tensor,
        serialize_tensor,
    )
    from retrograde.io.files import match_filenames_once, matching_files, read_file, write_file
    from retrograde.io.tables import decode_csv

__getattr__, __dir__ = lazily(__name__, HOMES[__name__])

__all__ = [
    "decode_and_crop_jpeg",
    "decode_base64",
    "decode_bmp",
    "decode_compressed",
    "decode_csv",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_raw",
    "encode_base64",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "gfile",
    "is_jpeg",
    "match_filenames_once",
    "matching_files",
    "parse_tensor",
    "read_file",
    "serialize_tensor",
    "write_file",
]
