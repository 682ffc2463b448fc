"""Malicious image files (decompression bombs, huge claimed sizes) do not exhaust memory."""

import struct
import tracemalloc
import zlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.image import _gif, _png

MEGABYTE = 1 << 20


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, data, interlaced=0):
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, interlaced)
    parts = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    return _png.SIGNATURE + b"".join(chunk(*part) for part in parts)


def gif(width, height, data, bits=8):
    blocks = b"".join(
        bytes([len(data[i : i + 255])]) + data[i : i + 255] for i in range(0, len(data), 255)
    )
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0) + bytes([bits]) + blocks
    start = b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF7, 0, 0) + bytes(768)
    return start + frame + b"\0" + b";"


def lzw_data(count):
    """Returns LZW data of `count` codes, each for one zero more than the previous code.

    A code decompresses to about 2,000 bytes on average.
    """
    bits, bit_count, size, table = 0, 0, 9, 258
    for code in [256, 0, *range(258, 258 + count)]:
        bits |= code << bit_count
        bit_count += size
        if code not in (0, 256):
            table += 1
            size = min(12, table.bit_length())
    return bits.to_bytes(bit_count // 8 + 1, "little")


def jpeg(width, height, sampling=0x11, components=1):
    image = tf.io.encode_jpeg(np.zeros((8, 8, 1), np.uint8)).numpy()
    offset = image.index(b"\xff\xc0")
    specs = b"".join(bytes([i + 1, sampling, 0]) for i in range(components))
    frame = struct.pack(">BHHB", 8, height, width, components) + specs
    return (
        image[:offset]
        + b"\xff\xc0"
        + struct.pack(">H", len(frame) + 2)
        + frame
        + image[offset + 13 :]
    )


def peak(run):
    """Returns the peak memory of `run()` in bytes, and its result or error message."""
    tracemalloc.start()
    try:
        result = run()
    except tf.errors.InvalidArgumentError as error:
        result = str(error)
    finally:
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak_bytes, result


def test_png_decompression_stops_at_the_size_of_the_image():
    bomb = png(4, 4, zlib.compress(bytes(64 * MEGABYTE)))

    peak_bytes, image = peak(lambda: tf.io.decode_png(bomb))

    np.testing.assert_array_equal(image.numpy(), np.zeros((4, 4, 1)))
    assert peak_bytes < MEGABYTE


@pytest.mark.parametrize(("width", "height", "count"), [(1, 1, 2), (5, 3, 22), (8, 1, 12)])
def test_interlaced_lines_are_counted_pass_by_pass(width, height, count):
    enough, too_few = (zlib.compress(bytes(n)) for n in (count, count - 1))

    assert tf.io.decode_png(png(width, height, enough, 1)).shape == (height, width, 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{count} bytes are needed, but"):
        tf.io.decode_png(png(width, height, too_few, 1))


IMPOSSIBLE_SIZES = [
    (
        png(20_000, 20_000, zlib.compress(bytes(100))),
        "PNG: 400020000 bytes are needed, which 12 compressed bytes cannot hold.",
    ),
    (png(2**31, 1, b""), "PNG: 2147483648 by 1 pixels are too large."),
    (png(4, 4, zlib.compress(bytes(19))), "PNG: 20 bytes are needed, but there are 19."),
    (
        gif(65_535, 65_535, bytes(10)),
        "GIF: a frame of 4294836225 pixels cannot be compressed into 10 bytes.",
    ),
    (
        gif(1, 1, bytes(1), bits=200),
        "GIF: the minimum LZW code size of a frame is 200 bits, not 1 to 8.",
    ),
    (jpeg(65_535, 65_535), "JPEG: the data is truncated."),
    (jpeg(1, 1, sampling=0xFF), "JPEG: the sampling factors of its channels are not valid."),
    (jpeg(1, 1, components=200), "JPEG: it has 200 channels, not 1, 3 or 4."),
]


@pytest.mark.parametrize(("data", "reason"), IMPOSSIBLE_SIZES, ids=range(len(IMPOSSIBLE_SIZES)))
def test_impossible_sizes_raise_before_memory_is_allocated(data, reason):
    peak_bytes, message = peak(lambda: tf.io.decode_image(data))

    assert message == f"decode_image: cannot read {len(data)} bytes of {reason}"
    assert peak_bytes < MEGABYTE


def test_gif_decompression_stops_at_the_size_of_the_frame():
    data = lzw_data(3800) * 5
    assert len(_gif._decompress_lzw(data, 8, 1 << 40)) > 7 * MEGABYTE

    peak_bytes, image = peak(lambda: tf.io.decode_gif(gif(2, 1, data)))

    assert image.shape == (1, 1, 2, 3)
    assert peak_bytes < MEGABYTE


def test_total_size_of_gif_frames_is_bounded():
    large = gif(2000, 2000, lzw_data(2900))
    small = gif(1, 1, lzw_data(0))[13 + 768 : -1]

    peak_bytes, message = peak(lambda: tf.io.decode_gif(large[:-1] + 200 * small + b";"))

    assert message.endswith("201 frames of 2000 by 2000 pixels are too large.")
    assert peak_bytes < 32 * MEGABYTE


def test_oversubscribed_huffman_tables_raise():
    data = jpeg(8, 8)
    offset = data.index(b"\xff\xc4") + 5
    counts = b"\xff" * 3 + bytes(13)

    peak_bytes, message = peak(
        lambda: tf.io.decode_jpeg(data[:offset] + counts + data[offset + 16 :])
    )

    assert message.startswith("decode_jpeg: cannot read")
    assert peak_bytes < 4 * MEGABYTE


def test_number_of_jpeg_scans_is_limited():
    data = jpeg(8, 8)
    offset = data.index(b"\xff\xda")
    scan = data[offset:-2]

    assert tf.io.decode_jpeg(data[:-2] + 99 * scan + data[-2:]).shape == (8, 8, 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="it has more than 100 scans"):
        tf.io.decode_jpeg(data[:-2] + 100 * scan + data[-2:])


def test_both_png_unfiltering_algorithms_agree():
    rng = np.random.default_rng(3)
    for shape in ((40, 33, 1), (33, 40, 3), (35, 32, 4)):
        lines = rng.integers(0, 256, shape, np.uint8)
        filters = rng.integers(0, 5, shape[0], np.uint8)
        expected = _png._unfilter_diagonals(filters, lines)
        by_lines = [_png._unfilter(filters[:1], lines[:1])[0]]
        for line, kind in zip(lines[1:], filters[1:], strict=True):
            both = np.stack([by_lines[-1], line])
            by_lines.append(_png._unfilter(np.array([0, kind], np.uint8), both)[1])
        np.testing.assert_array_equal(by_lines, expected)


def test_png_images_of_one_row_or_column_are_unfiltered_by_lines(monkeypatch):
    """The algorithm by diagonals would take one step per pixel."""
    monkeypatch.setattr(_png, "_unfilter_diagonals", None)
    line = zlib.compress(b"\4" + bytes([1]) * 50_000)
    lines = zlib.compress(b"\3\1" * 50_000)

    assert tf.io.decode_png(png(50_000, 1, line)).numpy()[0, -1, 0] == 50_000 % 256
    assert tf.io.decode_png(png(1, 50_000, lines)).shape == (50_000, 1, 1)


def test_memory_error_becomes_resource_exhausted_error(monkeypatch):
    def no_memory(*_):
        raise MemoryError

    monkeypatch.setattr(_png, "_samples", no_memory)
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        tf.io.decode_png(png(4, 4, zlib.compress(bytes(20))))
    message = "decode_png: not enough memory to decode the image in 68 bytes of PNG."
    assert str(caught.value) == message
