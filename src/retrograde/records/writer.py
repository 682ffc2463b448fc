"""TFRecordWriter and its options."""

from __future__ import annotations

import os
import zlib
from typing import Any, ClassVar

from retrograde.files.atomic import full_disk_as_resource_exhausted
from retrograde.io._compressed import WINDOWS
from retrograde.io.files import to_tensorflow_error
from retrograde.records.files import encode_record
from retrograde.values.arguments import as_text, expect
from retrograde.values.errors import FailedPreconditionError, NotFoundError


class TFRecordOptions:
    """Options of a `tf.io.TFRecordWriter`: the compression and its parameters.

    `compression_type` is "GZIP", "ZLIB", "" or `None`. The other options are passed to zlib. The
    buffer sizes and `flush_mode` have no effect.

    >>> tf.io.TFRecordOptions("GZIP", compression_level=9).compression_type
    'GZIP'
    """

    compression_type_map: ClassVar = {0: "", 1: "ZLIB", 2: "GZIP"}

    def __init__(
        self,
        compression_type: str | None = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """Returns "", "ZLIB" or "GZIP" for options or a compression type."""
        if options is None:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if isinstance(options, str) and options in cls.compression_type_map.values():
            return options
        if type(options) is int and options in cls.compression_type_map and options < 3:
            return cls.compression_type_map[options]
        raise ValueError(f'Not a valid compression_type: "{as_text(options)}"')

    def _compressor(self) -> Any:
        kind = self.get_compression_type_string(self)
        if not kind:
            return None
        return zlib.compressobj(
            _or_default(self.compression_level, zlib.Z_DEFAULT_COMPRESSION),
            _or_default(self.compression_method, zlib.DEFLATED),
            _or_default(self.window_bits, WINDOWS[kind]),
            _or_default(self.mem_level, zlib.DEF_MEM_LEVEL),
            _or_default(self.compression_strategy, zlib.Z_DEFAULT_STRATEGY),
        )


def _or_default(value: int | None, default: int) -> int:
    return default if value is None else value


class TFRecordWriter:
    """A writer of TFRecord files, which TensorFlow and `tf.data.TFRecordDataset` read.

    `options` is a `TFRecordOptions` or a compression type. Use the writer in a `with` statement, or
    call `close`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with tf.io.TFRecordWriter(f"{folder}/data.tfrecord") as writer:
    ...         writer.write(b"first")
    ...         writer.write(b"second")
    ...     [record.numpy() for record in tf.data.TFRecordDataset(f"{folder}/data.tfrecord")]
    [b'first', b'second']
    """

    def __init__(self, path: Any, options: TFRecordOptions | str | None = None) -> None:
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(TFRecordOptions.get_compression_type_string(options))
        self._compressor = options._compressor()
        self._path = os.fsdecode(
            expect(path, (str, bytes, os.PathLike), "TFRecordWriter", "a path")
        )
        try:
            self._file = open(self._path, "wb")  # noqa: SIM115 (`close` closes it)
        except FileNotFoundError:
            raise NotFoundError(None, None, f"{self._path}; No such file or directory") from None
        except OSError as error:
            raise to_tensorflow_error(error, self._path) from error

    def write(self, record: bytes | str) -> None:
        """Appends a record, usually a serialized `tf.train.Example`."""
        self._check_open()
        expect(record, (bytes, str), "TFRecordWriter.write", "bytes, such as a serialized message")
        data = encode_record(record.encode() if isinstance(record, str) else record)
        self._write(data if self._compressor is None else self._compressor.compress(data))

    def flush(self) -> None:
        """Writes all records to the file, so that other processes can read them."""
        self._check_open()
        if self._compressor is not None:
            self._write(self._compressor.flush(zlib.Z_SYNC_FLUSH))
        with full_disk_as_resource_exhausted(self._path):
            self._file.flush()

    def close(self) -> None:
        """Closes the file. A closed writer can be closed again."""
        if self._file.closed:
            return
        try:
            if self._compressor is not None:
                self._write(self._compressor.flush())
        finally:
            with full_disk_as_resource_exhausted(self._path):
                self._file.close()

    def _write(self, data: bytes) -> None:
        with full_disk_as_resource_exhausted(self._path):
            self._file.write(data)

    def _check_open(self) -> None:
        if self._file.closed:
            raise FailedPreconditionError(None, None, "Writer is closed.")

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
