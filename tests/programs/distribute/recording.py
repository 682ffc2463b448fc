"""What the programs of this folder share: their strategy, and the values that they record."""

import os
import tempfile

import numpy as np
import tensorflow as tf

recorded = {}


def note(name, value):
    """Records a value, converted to numbers and lists."""
    if name in recorded:
        raise ValueError(f"{name} is already recorded.")
    recorded[name] = plain(value)


def plain(value):
    """Returns a value as numbers, lists and texts."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "numpy"):
        value = value.numpy()
    return value.tolist() if hasattr(value, "tolist") else value


def make_strategy():
    """Returns a strategy for the workers of TF_CONFIG, or for REPLICAS devices of this process."""
    if os.environ.get("TF_CONFIG"):
        return tf.distribute.MultiWorkerMirroredStrategy()
    devices = [f"/cpu:{i}" for i in range(int(os.environ["REPLICAS"]))]
    return tf.distribute.MirroredStrategy(devices)


def make_devices():
    """Divides the CPU into REPLICAS devices, before anything uses it."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    count = int(os.environ["REPLICAS"])
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * count
    )


def is_chief(strategy):
    """Returns whether this process writes the files that are kept."""
    resolver = strategy.cluster_resolver
    if not os.environ.get("TF_CONFIG"):
        return True
    return resolver.task_type == "chief" or (
        resolver.task_type == "worker" and resolver.task_id == 0
    )


def images(count, seed=0):
    """Returns small images with labels: the brighter quadrant."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, count)
    pixels = random.uniform(0, 0.5, (count, 8, 8, 1)).astype("float32")
    for image, label in zip(pixels, labels, strict=True):
        row, column = divmod(label, 2)
        image[4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 0.4
    return pixels, labels


def set_weights(model, seed=1):
    """Gives a model the same weights in every library."""
    random = np.random.default_rng(seed)
    model.set_weights(
        [random.normal(0, 0.3, w.shape).astype("float32") for w in model.get_weights()]
    )


def new_folder():
    """Returns a new folder, the same one in all workers."""
    shared = os.environ.get("SHARED")
    if shared:
        new_folder.count = getattr(new_folder, "count", 0) + 1
        folder = os.path.join(shared, str(new_folder.count))
        os.makedirs(folder, exist_ok=True)
        return folder
    return tempfile.mkdtemp()
