"""Image files that claim or unpack to far more than they should: bounded before memory is taken."""

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


def codes(count):
    """As many codes, each for one zero more than the code before: about 2,000 bytes a code."""
    bits, written, size, table = 0, 0, 9, 258
    for code in [256, 0, *range(258, 258 + count)]:
        bits |= code << written
        written += size
        if code not in (0, 256):
            table += 1
            size = min(12, table.bit_length())
    return bits.to_bytes(written // 8 + 1, "little")


def jpeg(width, height, sampling=0x11, components=1):
    image = tf.io.encode_jpeg(np.zeros((8, 8, 1), np.uint8)).numpy()
    place = image.index(b"\xff\xc0")
    listed = b"".join(bytes([i + 1, sampling, 0]) for i in range(components))
    frame = struct.pack(">BHHB", 8, height, width, components) + listed
    return (
        image[:place]
        + b"\xff\xc0"
        + struct.pack(">H", len(frame) + 2)
        + frame
        + image[place + 13 :]
    )


def peak(run):
    """The bytes that `run()` had allocated at most, and its result or error."""
    tracemalloc.start()
    try:
        result = run()
    except tf.errors.InvalidArgumentError as error:
        result = str(error)
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return most, result


def test_a_png_is_decompressed_no_further_than_its_image():
    bomb = png(4, 4, zlib.compress(bytes(64 * MEGABYTE)))

    most, image = peak(lambda: tf.io.decode_png(bomb))

    np.testing.assert_array_equal(image.numpy(), np.zeros((4, 4, 1)))
    assert most < MEGABYTE


@pytest.mark.parametrize(("width", "height", "count"), [(1, 1, 2), (5, 3, 22), (8, 1, 12)])
def test_interlaced_lines_are_counted_pass_by_pass(width, height, count):
    enough, too_few = (zlib.compress(bytes(n)) for n in (count, count - 1))

    assert tf.io.decode_png(png(width, height, enough, 1)).shape == (height, width, 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{count} bytes are needed, but"):
        tf.io.decode_png(png(width, height, too_few, 1))


CLAIMS = [
    (
        png(20_000, 20_000, zlib.compress(bytes(100))),
        "PNG: 400020000 bytes are needed, and 12 cannot hold as many.",
    ),
    (png(2**31, 1, b""), "PNG: 2147483648 by 1 pixels are too large."),
    (png(4, 4, zlib.compress(bytes(19))), "PNG: 20 bytes are needed, but there are 19."),
    (
        gif(65_535, 65_535, bytes(10)),
        "GIF: a frame of 4294836225 pixels cannot be packed into 10 bytes.",
    ),
    (
        gif(1, 1, bytes(1), bits=200),
        "GIF: the codes of a frame begin with 200 bits, not with 1 to 8.",
    ),
    (jpeg(65_535, 65_535), "JPEG: the data end too soon."),
    (jpeg(1, 1, sampling=0xFF), "JPEG: its channels have sizes that do not fit together."),
    (jpeg(1, 1, components=200), "JPEG: it has 200 channels, not 1, 3 or 4."),
]


@pytest.mark.parametrize(("data", "reason"), CLAIMS, ids=range(len(CLAIMS)))
def test_claims_that_the_data_cannot_back_take_no_memory(data, reason):
    most, said = peak(lambda: tf.io.decode_image(data))

    assert said == f"decode_image: cannot read {len(data)} bytes of {reason}"
    assert most < MEGABYTE


def test_a_gif_is_unpacked_no_further_than_its_frames():
    data = codes(3800) * 5
    assert len(_gif._unpacked(data, 8, 1 << 40)) > 7 * MEGABYTE

    most, image = peak(lambda: tf.io.decode_gif(gif(2, 1, data)))

    assert image.shape == (1, 1, 2, 3)
    assert most < MEGABYTE


def test_frames_of_a_gif_are_bounded_together():
    large = gif(2000, 2000, codes(2900))
    small = gif(1, 1, codes(0))[13 + 768 : -1]

    most, said = peak(lambda: tf.io.decode_gif(large[:-1] + 200 * small + b";"))

    assert said.endswith("201 frames of 2000 by 2000 pixels are too large.")
    assert most < 32 * MEGABYTE


def test_huffman_tables_do_not_grow_beyond_their_codes():
    data = jpeg(8, 8)
    place = data.index(b"\xff\xc4") + 5
    counts = b"\xff" * 3 + bytes(13)

    most, said = peak(lambda: tf.io.decode_jpeg(data[:place] + counts + data[place + 16 :]))

    assert said.startswith("decode_jpeg: cannot read")
    assert most < 4 * MEGABYTE


def test_scans_of_a_jpeg_are_limited():
    data = jpeg(8, 8)
    place = data.index(b"\xff\xda")
    scan = data[place:-2]

    assert tf.io.decode_jpeg(data[:-2] + 99 * scan + data[-2:]).shape == (8, 8, 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="it has more than 100 scans"):
        tf.io.decode_jpeg(data[:-2] + 100 * scan + data[-2:])


def test_lines_are_unfiltered_alike_in_both_ways():
    rng = np.random.default_rng(3)
    for shape in ((40, 33, 1), (33, 40, 3), (35, 32, 4)):
        lines = rng.integers(0, 256, shape, np.uint8)
        filters = rng.integers(0, 5, shape[0], np.uint8)
        expected = _png._unfiltered_by_diagonals(filters, lines)
        by_lines = [_png._unfiltered(filters[:1], lines[:1])[0]]
        for line, kind in zip(lines[1:], filters[1:], strict=True):
            both = np.stack([by_lines[-1], line])
            by_lines.append(_png._unfiltered(np.array([0, kind], np.uint8), both)[1])
        np.testing.assert_array_equal(by_lines, expected)


def test_images_of_a_single_line_take_few_steps(monkeypatch):
    """By diagonals, each pixel of a line would be a step of its own."""
    monkeypatch.setattr(_png, "_unfiltered_by_diagonals", None)
    line = zlib.compress(b"\4" + bytes([1]) * 50_000)
    lines = zlib.compress(b"\3\1" * 50_000)

    assert tf.io.decode_png(png(50_000, 1, line)).numpy()[0, -1, 0] == 50_000 % 256
    assert tf.io.decode_png(png(1, 50_000, lines)).shape == (50_000, 1, 1)


def test_no_memory_is_an_exhausted_resource(monkeypatch):
    def no_memory(*_):
        raise MemoryError

    monkeypatch.setattr(_png, "_samples", no_memory)
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        tf.io.decode_png(png(4, 4, zlib.compress(bytes(20))))
    message = "decode_png: there is no memory for the image in 68 bytes of PNG."
    assert str(caught.value) == message
