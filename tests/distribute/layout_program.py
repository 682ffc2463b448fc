"""Programs that train with `keras.distribution`, on several devices or in several processes."""

from __future__ import annotations

import json
import os

import numpy as np

import retrograde as tf
from retrograde import keras

TOKENS, LENGTH, WIDTH = 12, 4, 8
LAYOUTS = {
    ".*tokens/embeddings": (None, "model"),
    ".*attention/(query|key|value)/kernel": (None, "model", None),
    ".*attention/attention_output/kernel": ("model", None, None),
    ".*wide/kernel": (None, "model"),
    ".*wide/bias": ("model",),
    ".*wide.*output": ("data", None, "model"),
    ".*narrow/kernel": ("model", None),
}


def transformer():
    """Returns a small transformer that predicts the next token."""
    keras.utils.set_random_seed(7)
    tokens = keras.Input((LENGTH,), dtype="int32")
    x = keras.layers.Embedding(TOKENS, WIDTH, name="tokens")(tokens)
    x += keras.layers.MultiHeadAttention(2, WIDTH // 2, name="attention")(x, x)
    y = keras.layers.LayerNormalization()(x)
    y = keras.layers.Dense(16, activation="gelu", name="wide")(y)
    y = keras.layers.Dropout(0.1)(y)
    x += keras.layers.Dense(WIDTH, name="narrow")(y)
    model = keras.Model(tokens, keras.layers.Dense(TOKENS, name="logits")(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss, metrics=["accuracy"])
    return model


def data():
    """Returns tokens, and the tokens that follow them."""
    x = np.random.default_rng(3).integers(0, TOKENS, (24, LENGTH)).astype("int32")
    return x, (x + 1) % TOKENS


def train(as_dataset=False):
    """Trains a transformer. Returns its losses, its weights and its layouts by path."""
    model, (x, y) = transformer(), data()
    if as_dataset:
        x, y = tf.data.Dataset.from_tensor_slices((x, y)).batch(8, drop_remainder=True), None
    options = {} if as_dataset else {"batch_size": 8}
    history = model.fit(x, y, epochs=3, verbose=0, shuffle=False, **options)
    layouts = {
        v.path: tuple(v._value.sharding.spec)
        for v in (*model.weights, *model.optimizer.variables)
        if hasattr(v._value, "sharding")
    }
    weights = [v.numpy() for v in model.weights]
    return {"losses": history.history["loss"], "weights": weights, "layouts": layouts}, model


def model_parallel(shape=(2, 2)):
    """Returns a distribution over a (data, model) mesh."""
    mesh = keras.distribution.DeviceMesh(shape, ["data", "model"])
    layouts = keras.distribution.LayoutMap(mesh)
    for path, axes in LAYOUTS.items():
        layouts[path] = axes
    return keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name="data")


def four_devices():
    """Returns trainings with one device, and with layouts over four devices."""
    results = {"devices": keras.distribution.list_devices(), "one": train()[0]}
    distributions = {"data": keras.distribution.DataParallel(), "model": model_parallel()}
    x, y = data()
    for name, distribution in distributions.items():
        with distribution.scope():
            results[name], model = train()
            if name == "model":
                results["uneven"] = model.predict(x[:7], batch_size=4, verbose=0)
                results["evaluated"] = model.evaluate(x[:6], y[:6], batch_size=4, verbose=0)
    model_without = transformer()
    model_without.set_weights(results["model"]["weights"])
    results["predicted"] = model_without.predict(x[:7], verbose=0)
    results["expected"] = model_without.evaluate(x[:6], y[:6], verbose=0)
    kernel = model.get_layer("wide").kernel
    kernel.assign(np.ones(kernel.shape))
    kernel.assign_add(tf.ones(kernel.shape))
    shards = kernel._value._current()._device.addressable_shards
    results["assigned"] = tuple(kernel._value.sharding.spec), {s.data.shape for s in shards}
    results["sums"] = kernel.numpy().sum().item()
    results["tensors"] = _tensors(distributions["model"].device_mesh)
    return results


def _tensors(mesh):
    """Returns values, gradients and layouts of distributed tensors."""
    layout = keras.distribution.TensorLayout(("data", None), mesh)
    x = tf.reshape(tf.range(8.0), [4, 2])

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = keras.distribution.distribute_tensor(x * x, layout)
            loss = tf.reduce_sum(y * y)
        return y, tape.gradient(loss, x)

    results = []
    for run in (f, tf.function(f), tf.function(f, jit_compile=True)):
        y, gradient = [run(x) for _ in range(2)][-1]
        device = y._device
        spec = None if device is None else tuple(device.sharding.spec)
        results.append((y.numpy().tolist(), gradient.numpy().tolist(), spec))
    return results


def two_processes():
    """Returns trainings in one of two processes, each with one device."""
    cluster = json.loads(os.environ["TF_CONFIG"])
    keras.distribution.initialize(
        cluster["cluster"]["worker"][0], num_processes=2, process_id=cluster["task"]["index"]
    )
    results = {"drawn": float(keras.random.uniform(()))}
    distributions = {
        "data": keras.distribution.DataParallel(),
        "model": model_parallel((1, 2)),
    }
    for name, distribution in distributions.items():
        with distribution.scope():
            results[name], _ = train(as_dataset=True)
    import jax

    jax.distributed.shutdown()
    return results
