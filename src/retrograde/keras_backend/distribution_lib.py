"""Implements `keras.distribution` with JAX's devices, meshes and layouts.

Keras lays out variables and batches over a mesh of devices. They become global arrays, and XLA
divides the work of a compiled step between the devices.
"""

import os

import numpy as np
from keras.src import tree
from keras.src.backend.common import KerasVariable, global_state

from retrograde.core.apply import apply
from retrograde.core.lazy import make_lazy
from retrograde.core.tensor import Tensor
from retrograde.devices.device_tensors import DeviceArray, on_device
from retrograde.devices.meshes import use_mesh
from retrograde.keras_backend.sharded_variable import global_array
from retrograde.ops.conversion import as_tensor
from retrograde.ops.layouts import with_layout


def _jax():
    try:
        import jax
    except ImportError:
        raise ImportError(
            "keras.distribution requires JAX. Install it with: pip install 'retrograde[xla]'."
        ) from None
    return jax


# Devices and processes


def list_devices(device_type=None):
    """Returns the names of all devices of a type, such as "cpu:0", including other processes'."""
    devices = _jax().devices(device_type and device_type.lower())
    return [f"{device.platform}:{device.id}" for device in devices]


def get_device_count(device_type=None):
    """Returns the number of devices of a type, including devices of other processes."""
    return _jax().device_count(device_type and device_type.lower())


def num_processes():
    """Returns the number of processes."""
    return _jax().process_count()


def process_id():
    """Returns the number of this process."""
    return _jax().process_index()


def initialize(job_addresses, num_processes, process_id):
    """Connects this process with the others. The coordinator has the first address.

    All processes get the same random seed, unless the program has set one. The coordinator listens
    only on its own address, or on JAX_COORDINATOR_BIND_ADDRESS.
    """
    addresses = job_addresses.split(",") if job_addresses else [None]
    if len(addresses) > 1 and num_processes not in (None, len(addresses)):
        raise ValueError(
            f"The provided job_addresses {addresses} has {len(addresses)} jobs, but num_processes "
            f"is {num_processes}"
        )
    if addresses[0] is not None:
        os.environ.setdefault("JAX_COORDINATOR_BIND_ADDRESS", addresses[0])
    jax = _jax()
    jax.distributed.initialize(
        coordinator_address=addresses[0], num_processes=num_processes, process_id=process_id
    )
    # Keras imports them after the backend.
    from keras.src.random import seed_generator
    from keras.src.utils import rng_utils

    if rng_utils.get_random_seed() is None:
        seed = np.uint32(seed_generator.make_default_seed())
        if jax.process_count() > 1:
            from jax.experimental import multihost_utils

            seed = multihost_utils.broadcast_one_to_all(seed)
        rng_utils.set_random_seed(int(seed))


# Layouts


def distribute_tensor(tensor, layout):
    """Returns `tensor` with a layout: a `TensorLayout`, or JAX's `Sharding` or `Format`."""
    layout = getattr(layout, "backend_layout", layout)
    jax = _jax()
    if isinstance(tensor, jax.core.Tracer):
        return jax.lax.with_sharding_constraint(tensor, layout)
    if isinstance(tensor, jax.Array):
        return jax.device_put(tensor, layout)
    if isinstance(tensor, KerasVariable):
        tensor = tensor.value
    sharding = getattr(layout, "sharding", layout)
    y = apply(with_layout, (as_tensor(tensor),), {"sharding": sharding})
    if type(y) is Tensor and isinstance(y._array, (np.ndarray, np.generic)):
        _move(y, sharding)
    return y


def _move(tensor, sharding):
    """Moves a tensor to the devices of `sharding`, if its dimensions are divisible."""
    try:
        sharding.shard_shape(tensor._array.shape)
    except ValueError:
        return
    make_lazy(tensor, DeviceArray(global_array(tensor._array, sharding)))


def distribute_data_input(per_process_batch, layout, batch_dim_name):
    """Returns the global batch whose rows in this process are `per_process_batch`."""
    del batch_dim_name
    sharding = getattr(layout, "backend_layout", layout)
    jax = _jax()
    use_mesh(sharding)
    if isinstance(per_process_batch, jax.Array):
        return jax.make_array_from_process_local_data(sharding, per_process_batch)
    array = np.asarray(per_process_batch)
    with jax.enable_x64(True):
        return on_device(jax.make_array_from_process_local_data(sharding, array))


def current_distribution():
    """Returns the distribution of `keras.distribution.set_distribution`, or `None`."""
    return getattr(global_state.GLOBAL_STATE_TRACKER, "distribution", None)


def distribute_batch(distribution, batch):
    """Returns a batch of this process as a global batch."""

    def leaf(x):
        if not isinstance(x, (np.ndarray, Tensor)) or not x.ndim:
            return x
        layout = distribution.get_data_layout(tuple(x.shape)).backend_layout
        if distribution.num_processes == 1 and not _divides(layout, x.shape):
            # Every device computes all rows of an uneven batch.
            layout = _jax().sharding.NamedSharding(layout.mesh, _jax().sharding.PartitionSpec())
        return distribute_data_input(x, layout, distribution.batch_dim_name)

    return tree.map_structure(leaf, batch)


def _divides(sharding, shape):
    try:
        sharding.shard_shape(tuple(shape))
    except ValueError:
        return False
    return True


def distribute_dataset(distribution, dataset):
    """Returns the dataset of this process: its rows of each global batch.

    Processes that hold parts of the same copy of the model read the same rows.
    """
    shards = min(distribution.num_model_replicas, distribution.num_processes)
    size = _batch_size(dataset)
    if size is None:
        raise ValueError(
            "The batch size of the input dataset is unknown. Please config the batch size for the "
            "input dataset, e.g via `dataset.batch(batch_size)`"
        )
    if size % shards:
        raise ValueError(
            "Global batch size must be divisible by the number of processes. "
            f"`global_batch_size`={size} and `num_processes`={shards}"
        )
    if shards == 1:
        return dataset
    return dataset.rebatch(size // shards).shard(shards, distribution.data_shard_id)


def _batch_size(dataset):
    """Returns the number of rows of the first element; `None` if an element has no rows."""
    specs = tree.flatten(dataset.element_spec)
    if not all(spec.shape.rank for spec in specs):
        return None
    sizes = [spec.shape[0] for spec in specs]
    if sizes[0] is None:
        sizes = [leaf.shape[0] for element in dataset.take(1) for leaf in tree.flatten(element)]
    return sizes[0] if sizes else None


def variable_layout(variable):
    """Returns the `Sharding` of a new Keras variable, or `None` if nothing is distributed."""
    distribution = current_distribution()
    if variable._layout is None and distribution is not None:
        variable._layout = distribution.get_variable_layout(variable)
    return getattr(variable._layout, "backend_layout", variable._layout)


def _to_backend_device(device_name):
    jax = _jax()
    if isinstance(device_name, jax.Device):
        return device_name
    kind, _, number = str(device_name).partition(":")
    for device in jax.devices(kind):
        if device.id == int(number or 0):
            return device
    raise ValueError(f"Device not found: {device_name}")


def _to_backend_mesh(device_mesh):
    devices = [_to_backend_device(name) for name in device_mesh.devices.flatten()]
    shaped = np.array(devices).reshape(device_mesh.devices.shape)
    return _jax().sharding.Mesh(shaped, device_mesh.axis_names)


def _to_backend_layout(tensor_layout):
    if tensor_layout.device_mesh is None:
        raise ValueError("Cannot create sharding when device mesh is not set for TensorLayout.")
    sharding = _jax().sharding
    mesh = tensor_layout.device_mesh.backend_mesh
    return sharding.NamedSharding(mesh, sharding.PartitionSpec(*tensor_layout.axes))


def _to_backend_tensor(tensor):
    """Returns the JAX array of a tensor."""
    device = tensor._device
    return _jax().numpy.asarray(tensor._array) if device is None else device
