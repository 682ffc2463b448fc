"""Distributed input: datasets, functions, generators, optionals, signatures and values."""

# %% Setup
import numpy as np
import tensorflow as tf
from recording import make_strategy, note

strategy = make_strategy()


def local(value):
    """Returns the rows of all replicas of this process."""
    return [x for part in strategy.experimental_local_results(value) for x in part.numpy().tolist()]


# %% A dataset of global batches, the last one uneven
dataset = tf.data.Dataset.range(10).batch(4)
distributed = strategy.experimental_distribute_dataset(dataset)
note("sums", [
    strategy.reduce("SUM", strategy.run(lambda x: tf.reduce_sum(x), args=(batch,)), axis=None)
    for batch in distributed
])  # fmt: skip
note("isinstance", isinstance(distributed, tf.distribute.DistributedDataset))
note("iterator", isinstance(iter(distributed), tf.distribute.DistributedIterator))


# %% A dataset of each worker
def dataset_fn(context):
    size = context.get_per_replica_batch_size(8)
    data = tf.data.Dataset.from_tensor_slices(np.arange(16.0, dtype="float32")).repeat()
    return data.shard(context.num_input_pipelines, context.input_pipeline_id).batch(size)


from_function = strategy.distribute_datasets_from_function(dataset_fn)
iterator = iter(from_function)


@tf.function
def mean_of_squares(iterator):
    squares = strategy.run(lambda x: x * x, args=(next(iterator),))
    return strategy.reduce(tf.distribute.ReduceOp.MEAN, squares, axis=0)


note("means", [mean_of_squares(iterator) for _ in range(3)])

# %% A signature from the specs of a distributed dataset
floats = tf.data.Dataset.from_tensor_slices(tf.ones([16, 3])).batch(8)
distributed = strategy.experimental_distribute_dataset(floats)


@tf.function(input_signature=[distributed.element_spec])
def total(batch):
    sums = strategy.run(lambda x: tf.reduce_sum(x, axis=0), args=(batch,))
    return strategy.reduce("SUM", sums, axis=None)


note("totals", [total(batch) for batch in distributed])
note("traces", total.experimental_get_tracing_count())

# %% Optionals end a loop without an exception
iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(6).batch(4)))
taken = []
while True:
    optional = iterator.get_next_as_optional()
    if not optional.has_value().numpy():
        break
    per_replica = strategy.run(lambda x: tf.reduce_sum(x), args=(optional.get_value(),))
    taken.append(strategy.reduce("SUM", per_replica, axis=None))
note("optionals", taken)


# %% A generator
def numbers():
    for i in range(6):
        yield np.array([i, i + 1], "float32")


data = tf.data.Dataset.from_generator(
    numbers, output_signature=tf.TensorSpec([2], tf.float32)
).batch(4)
distributed = strategy.experimental_distribute_dataset(data)
note("generated", [
    strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(batch,)), axis=None)
    for batch in distributed
])  # fmt: skip


# %% Values of each replica
def value_fn(context):
    return tf.constant(10.0 * (context.replica_id_in_sync_group + 1))


values = strategy.experimental_distribute_values_from_function(value_fn)
doubled = strategy.run(lambda x: 2 * x, args=(values,))
note("values", strategy.reduce("SUM", doubled, axis=None))
