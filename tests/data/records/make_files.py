"""Writes the files of this folder. Run it with TensorFlow installed."""

import pathlib

import tensorflow as tf

FOLDER = pathlib.Path(__file__).parent


def examples():
    for number in range(3):
        example = tf.train.Example()
        feature = example.features.feature
        feature["id"].int64_list.value.extend([number, -number])
        feature["x"].float_list.value.extend([number + 0.5] * number)
        feature["text"].bytes_list.value.append(b"record \xff %d" % number)
        yield example.SerializeToString(deterministic=True)


if __name__ == "__main__":
    for name, options in {
        "plain": None,
        "gzip": tf.io.TFRecordOptions("GZIP", compression_level=9),
        "zlib": "ZLIB",
    }.items():
        with tf.io.TFRecordWriter(str(FOLDER / f"{name}.tfrecord"), options) as writer:
            for record in [*examples(), b"", b"x" * 5000]:
                writer.write(record)
