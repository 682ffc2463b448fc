"""String hashes agree with TensorFlow."""

import pytest

from retrograde.ops._hashes import fingerprint64, murmur64, siphash64

# By string length: the results of tf.fingerprint, tf.strings.to_hash_bucket and
# tf.strings.to_hash_bucket_strong (with the key 1, -2) with 2 ** 62 buckets
RECORDED = {
    0: ("9ae16a3b2f90404f", "01769421199f9e3b", "15f9c9e4409f3326"),
    1: ("47a24c13b17e583e", "22b02903c2030d3a", "0a40e9479f4cec82"),
    3: ("35df3f86c1d6a633", "3e874df628e255fc", "28fe640087651ac5"),
    4: ("75848e042bfe1803", "0d5e39ee92a2fcce", "3580be42432be94c"),
    7: ("545ac134b57925ff", "1f3f60ea64e81647", "07db653b9741defc"),
    8: ("896a8bf51ae07f3d", "06348f82684a666d", "0e719846c1d7cfce"),
    15: ("b5e4107577a2dfb7", "384ed951bcabd5a9", "268e9f9e1b1fa9cb"),
    16: ("3f140ed766101d99", "3452cbcb9b7230f5", "2003e0f1ee13465f"),
    17: ("4acd4440837eaf19", "215bdb4fd73f63cf", "3c15edd32da9fd9f"),
    31: ("432a0bdab737f327", "2fb9d5792a2b1292", "1ab1f36aff05b1f9"),
    32: ("747d5f2543b11317", "29a93f07ace72a43", "1c41dff09f034a98"),
    33: ("234289b5a46ca0d0", "3187ec9f359c1aed", "3c95c449d20ace9b"),
    63: ("f47e3529999bce09", "2ca3f03fe13d1e43", "3617bb4c1748992e"),
    64: ("c2b39d5535be3e5a", "15fb3f8db5f809d2", "30f6a107359d4964"),
    65: ("8af81bc654175276", "1955276a92334d59", "14de10d55b949ce8"),
    127: ("9f6866a015783a8c", "1756eff774dcaf2c", "3f762906bdc44f12"),
    128: ("9e31396eb2b51961", "26994b5d58764657", "0524866215948736"),
    129: ("6c3f02a004f23d50", "2fcb008cad735e54", "013b43b47505c32c"),
    192: ("be2fefa5b17a53ed", "12e0777b59ccd43f", "368aedda67de6b68"),
    193: ("3b02ac4ca3eb1d17", "0ce0cc65a8592549", "0f088ab6a0722ba5"),
    1000: ("a170414dd93b8e83", "3282f2ef57a29324", "04b65d8a1229da66"),
}


@pytest.mark.parametrize("size", RECORDED)
def test_hashes_of_every_length_agree_with_tensorflow(size):
    data = bytes((i * 31 + size) % 256 for i in range(size))
    hashes = fingerprint64(data), murmur64(data) % 2**62, siphash64(data, (1, -2)) % 2**62

    assert tuple(f"{h:016x}" for h in hashes) == RECORDED[size]
