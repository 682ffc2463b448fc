"""JPEG: constants from the standard."""

from __future__ import annotations

import numpy as np


def _zigzag_key(i: int) -> tuple[int, int]:
    """Sorts the coefficients of a block by diagonal, alternating in direction."""
    row, column = divmod(i, 8)
    return row + column, column if (row + column) % 2 == 0 else row


ZIGZAG = np.array(sorted(range(64), key=_zigzag_key))  # file order -> index in a block

# Quantization steps at quality 50, for luma and for chroma.
QUANTIZATION = (
    np.array([
        16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55,
        14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62,
        18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
        49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
    ]),
    np.array([
        17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99,
        24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,
        *[99] * 32,
    ]),
)  # fmt: skip

# Huffman codes: the number of codes of each length from 1 to 16, and their symbols in order.
DC_CODES = (
    (bytes.fromhex("00010501010101010100000000000000"), bytes(range(12))),
    (bytes.fromhex("00030101010101010101010000000000"), bytes(range(12))),
)
AC_CODES = (
    (
        bytes.fromhex("0002010303020403050504040000017d"),
        bytes.fromhex(
            "01020300041105122131410613516107227114328191a1082342b1c11552d1f024336272"
            "82090a161718191a25262728292a3435363738393a434445464748494a53545556575859"
            "5a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3"
            "a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2"
            "e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa"
        ),
    ),
    (
        bytes.fromhex("00020102040403040705040400010277"),
        bytes.fromhex(
            "000102031104052131061241510761711322328108144291a1b1c109233352f0156272d1"
            "0a162434e125f11718191a262728292a35363738393a434445464748494a535455565758"
            "595a636465666768696a737475767778797a82838485868788898a92939495969798999a"
            "a2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9da"
            "e2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa"
        ),
    ),
)


def codes(counts: bytes) -> list[tuple[int, int]]:
    """Returns the Huffman codes and their lengths, given the number `counts[n - 1]` of length n."""
    pairs, code = [], 0
    for length, count in enumerate(counts, 1):
        for _ in range(count):
            pairs.append((code, length))
            code += 1
        code <<= 1
    return pairs
