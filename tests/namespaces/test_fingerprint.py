"""FarmHash64 gives TensorFlow's numbers."""

import pytest

from retrograde.ops._fingerprint import fingerprint64

# (i * 31 + size) % 256 for i in range(size), and what tf.fingerprint makes of it
RECORDED = {
    0: "9ae16a3b2f90404f",
    1: "47a24c13b17e583e",
    3: "35df3f86c1d6a633",
    4: "75848e042bfe1803",
    7: "545ac134b57925ff",
    8: "896a8bf51ae07f3d",
    15: "b5e4107577a2dfb7",
    16: "3f140ed766101d99",
    17: "4acd4440837eaf19",
    31: "432a0bdab737f327",
    32: "747d5f2543b11317",
    33: "234289b5a46ca0d0",
    63: "f47e3529999bce09",
    64: "c2b39d5535be3e5a",
    65: "8af81bc654175276",
    127: "9f6866a015783a8c",
    128: "9e31396eb2b51961",
    129: "6c3f02a004f23d50",
    192: "be2fefa5b17a53ed",
    193: "3b02ac4ca3eb1d17",
    1000: "a170414dd93b8e83",
}


@pytest.mark.parametrize("size", RECORDED)
def test_every_length_has_the_fingerprint_of_tensorflow(size):
    data = bytes((i * 31 + size) % 256 for i in range(size))

    assert f"{fingerprint64(data):016x}" == RECORDED[size]
