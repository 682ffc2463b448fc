from retrograde.image.codecs import (
    decode_bmp as decode_bmp,
    decode_gif as decode_gif,
    decode_image as decode_image,
    decode_png as decode_png,
    encode_png as encode_png,
)
from retrograde.image.jpeg import (
    decode_and_crop_jpeg as decode_and_crop_jpeg,
    decode_jpeg as decode_jpeg,
    encode_jpeg as encode_jpeg,
    extract_jpeg_shape as extract_jpeg_shape,
    is_jpeg as is_jpeg,
)
from retrograde.io import gfile as gfile
from retrograde.io.encodings import (
    decode_base64 as decode_base64,
    decode_compressed as decode_compressed,
    decode_raw as decode_raw,
    encode_base64 as encode_base64,
    parse_tensor as parse_tensor,
    serialize_tensor as serialize_tensor,
)
from retrograde.io.files import (
    match_filenames_once as match_filenames_once,
    matching_files as matching_files,
    read_file as read_file,
    write_file as write_file,
)
from retrograde.io.tables import decode_csv as decode_csv
