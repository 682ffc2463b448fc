"""Writes the checkpoints of this folder and `expected.json`. Run it with TensorFlow installed."""

import json
import pathlib

import keras
import numpy as np
import tensorflow as tf

FOLDER = pathlib.Path(__file__).parent


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.layers = [tf.Variable([[1.0, 2.0], [3.0, 4.0]]), tf.Variable([5.0, 6.0])]
        self.options = {"rate": tf.Variable(0.5), "other": tf.Variable(7, dtype=tf.int64)}


def variables():
    dtypes = (
        "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 bfloat16"
    )
    result = {name: tf.Variable(tf.cast([[0, 1, 2]], name)) for name in dtypes.split()}
    result["complex64"] = tf.Variable(tf.constant([1 + 2j], tf.complex64))
    result["string"] = tf.Variable(["", "a", "b" * 300])
    result["scalar"] = tf.Variable(1.5)
    result["empty"] = tf.Variable(tf.zeros([0, 3]))
    return result


def keras_2_weights(model):
    """Returns an object whose checkpoint has the names of the weights files of Keras 2."""
    root = tf.Module()
    for number, layer in enumerate(model.layers):
        part = tf.Module()
        part.kernel, part.bias = (tf.Variable(value) for value in layer.get_weights())
        setattr(root, f"layer-{number}", part)
        setattr(root, f"layer_with_weights-{number}", part)
    return root


def make_model():
    model = keras.Sequential([keras.layers.Dense(3, activation="relu"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.1), "mse")
    x = np.linspace(-1, 1, 8).reshape(4, 2)
    model.fit(x, x.sum(1), verbose=0)
    return model


def save():
    yield tf.train.Checkpoint(net=Net(), step=tf.Variable(3)).save(str(FOLDER / "state" / "ckpt"))
    yield tf.train.Checkpoint(**variables()).write(str(FOLDER / "dtypes"))
    many = [tf.Variable(tf.fill([n % 3], float(n))) for n in range(300)]
    yield tf.train.Checkpoint(many=many).write(str(FOLDER / "many"))
    policy = tf.train.experimental.MaxShardSizePolicy(max_shard_size=400)
    options = tf.train.CheckpointOptions(experimental_sharding_callback=policy)
    shards = {f"v{n}": tf.Variable(tf.range(60.0) + n) for n in range(4)}
    yield tf.train.Checkpoint(**shards).write(str(FOLDER / "shards"), options)
    keras.utils.set_random_seed(1)
    model = make_model()
    yield tf.train.Checkpoint(model=model).write(str(FOLDER / "keras_model"))
    weights = tf.train.Checkpoint(root=keras_2_weights(model))
    yield weights.write(str(FOLDER / "keras_2_weights"))
    x = np.linspace(-1, 1, 8).reshape(4, 2)
    np.save(FOLDER / "keras_model_predictions.npy", model.predict(x, verbose=0))
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    table.insert(["a", "b"], [1, 2])
    kind = tf.lookup.experimental.DenseHashTable
    dense = kind(tf.int64, tf.float32, -1.0, 0, -1, initial_num_buckets=4)
    dense.insert(tf.constant([5, 6], tf.int64), [0.5, 0.25])
    yield tf.train.Checkpoint(table=table, dense=dense).write(str(FOLDER / "tables"))


def plain(value):
    array = np.asarray(value)
    if array.dtype.kind in "OS":
        return array.astype(str).tolist()
    return array.astype(np.float64).tolist() if array.dtype.name == "bfloat16" else array.tolist()


def describe(prefix):
    reader = tf.train.load_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    dtypes = reader.get_variable_to_dtype_map()
    return {
        key: [dtypes[key].name, shapes[key], repr(plain(reader.get_tensor(key)))]
        for key in sorted(shapes)
        if key != "_CHECKPOINTABLE_OBJECT_GRAPH"
    }


if __name__ == "__main__":
    answers = {str(pathlib.Path(p).relative_to(FOLDER)): describe(p) for p in save()}
    (FOLDER / "expected.json").write_text(json.dumps(answers, indent=1) + "\n")
