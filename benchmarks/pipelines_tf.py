"""Data pipelines for TensorFlow and retrograde."""

from benchmarks import inputs
from benchmarks.registry import Registry

workload = Registry()


@workload
def shuffled_batches(tf):
    data = tf.data.Dataset.from_tensor_slices(inputs.rows_and_labels())
    data = data.shuffle(60_000).batch(128)

    def step():
        batches = rows = 0
        for x, _ in data:
            batches, rows = batches + 1, rows + x.shape[0]
        return [tf.constant(batches), tf.constant(rows)]

    return step
