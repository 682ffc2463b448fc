from retrograde.image.codecs import decode_bmp as decode_bmp
from retrograde.image.codecs import decode_gif as decode_gif
from retrograde.image.codecs import decode_image as decode_image
from retrograde.image.codecs import decode_png as decode_png
from retrograde.image.codecs import encode_png as encode_png
from retrograde.image.jpeg import decode_and_crop_jpeg as decode_and_crop_jpeg
from retrograde.image.jpeg import decode_jpeg as decode_jpeg
from retrograde.image.jpeg import encode_jpeg as encode_jpeg
from retrograde.image.jpeg import extract_jpeg_shape as extract_jpeg_shape
from retrograde.image.jpeg import is_jpeg as is_jpeg
from retrograde.io import gfile as gfile
from retrograde.io.csv import decode_csv as decode_csv
from retrograde.io.encodings import decode_base64 as decode_base64
from retrograde.io.encodings import decode_compressed as decode_compressed
from retrograde.io.encodings import decode_raw as decode_raw
from retrograde.io.encodings import encode_base64 as encode_base64
from retrograde.io.encodings import parse_tensor as parse_tensor
from retrograde.io.encodings import serialize_tensor as serialize_tensor
from retrograde.io.files import match_filenames_once as match_filenames_once
from retrograde.io.files import matching_files as matching_files
from retrograde.io.files import read_file as read_file
from retrograde.io.files import write_file as write_file
from retrograde.io.sparse import deserialize_many_sparse as deserialize_many_sparse
from retrograde.io.sparse import serialize_many_sparse as serialize_many_sparse
from retrograde.io.sparse import serialize_sparse as serialize_sparse
from retrograde.records.features import FixedLenFeature as FixedLenFeature
from retrograde.records.features import FixedLenSequenceFeature as FixedLenSequenceFeature
from retrograde.records.features import RaggedFeature as RaggedFeature
from retrograde.records.features import SparseFeature as SparseFeature
from retrograde.records.features import VarLenFeature as VarLenFeature
from retrograde.records.parsing import parse_example as parse_example
from retrograde.records.parsing import parse_single_example as parse_single_example
from retrograde.records.sequence_parsing import parse_sequence_example as parse_sequence_example
from retrograde.records.sequence_parsing import (
    parse_single_sequence_example as parse_single_sequence_example,
)
from retrograde.records.writer import TFRecordOptions as TFRecordOptions
from retrograde.records.writer import TFRecordWriter as TFRecordWriter
