"""tf.distribute: programs written for many devices run on one."""

import threading

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

STRATEGIES = {
    "mirrored": tf.distribute.MirroredStrategy,
    "mirrored on one": lambda: tf.distribute.MirroredStrategy(
        ["/gpu:0"], cross_device_ops=tf.distribute.HierarchicalCopyAllReduce(num_packs=2)
    ),
    "one device": lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
    "default": tf.distribute.get_strategy,
}


@pytest.fixture(params=STRATEGIES)
def strategy(request):
    return STRATEGIES[request.param]()


def where():
    """Returns the current strategy and the strategy of the replica context."""
    context = tf.distribute.get_replica_context()
    return tf.distribute.get_strategy(), context and context.strategy


def test_outside_of_all_scopes_a_program_is_in_the_only_replica():
    default = tf.distribute.get_strategy()

    assert where() == (default, default)
    assert not tf.distribute.has_strategy()
    assert not tf.distribute.in_cross_replica_context()


def test_a_scope_is_across_replicas_and_a_run_is_in_one(strategy):
    outside = where()
    with strategy.scope() as entered, strategy.scope():
        assert entered is strategy
        assert where() == (strategy, None)
        assert tf.distribute.in_cross_replica_context()
        assert tf.distribute.has_strategy() == (strategy is not outside[0])
        assert strategy.run(where) == (strategy, strategy)
        assert where() == (strategy, None)
    assert where() == outside
    assert strategy.run(tf.distribute.in_cross_replica_context) is False


def test_a_scope_ends_with_an_error_too_and_belongs_to_one_thread(strategy):
    outside, elsewhere = where(), []
    with pytest.raises(KeyError), strategy.scope():
        thread = threading.Thread(target=lambda: elsewhere.append(where()))
        thread.start()
        thread.join()
        raise KeyError
    assert where() == outside
    assert elsewhere == [outside]


def test_a_training_step_matches_one_without_a_strategy(strategy):
    with strategy.scope():
        w = tf.Variable([1.0, 2.0])
    data = tf.data.Dataset.from_tensor_slices(np.eye(4, 2, dtype=np.float32)).batch(2)

    def step(x, scale):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(scale * tf.linalg.matvec(x, w) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    @tf.function
    def distributed_step(x):
        losses = strategy.run(step, args=(x,), kwargs={"scale": 3.0})
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    losses = [float(distributed_step(x)) for x in strategy.experimental_distribute_dataset(data)]

    np.testing.assert_allclose(losses, [7.5, 0.0])
    np.testing.assert_allclose(w, [0.7, 1.4])


@pytest.mark.parametrize(("op", "expected"), [("SUM", 9.0), ("mean", 4.5)])
def test_values_are_reduced_along_an_axis_if_there_is_one(strategy, op, expected):
    x = tf.constant([3.0, 6.0])

    assert strategy.reduce(op, x, None) is x
    assert strategy.reduce(tf.distribute.ReduceOp(op.upper()), x, axis=0).numpy() == expected
    assert strategy.experimental_local_results(x) == (x,)
    np.testing.assert_array_equal(strategy.gather([1, 2], axis=0), [1, 2])


def test_a_single_replica_has_id_zero_of_one(strategy):
    def replica(x):
        context = tf.distribute.get_replica_context()
        assert (context.num_replicas_in_sync, context.replica_id_in_sync_group) == (1, 0)
        assert context.all_reduce("SUM", [x]) == [x]
        assert context.all_gather(x, axis=0) is x
        return context.merge_call(
            lambda merging, y, scale: (merging, where(), y * scale), args=(x,), kwargs={"scale": 2}
        )

    assert strategy.run(replica, (3,)) == (strategy, (strategy, None), 6)
    context = strategy.experimental_distribute_values_from_function(lambda context: context)
    assert (context.replica_id_in_sync_group, context.num_replicas_in_sync) == (0, 1)


def test_datasets_are_created_for_one_input_pipeline(strategy):
    def make(context):
        assert (context.num_input_pipelines, context.input_pipeline_id) == (1, 0)
        return tf.data.Dataset.range(6).batch(context.get_per_replica_batch_size(2))

    dataset = strategy.distribute_datasets_from_function(make)

    assert [list(x.numpy()) for x in dataset] == [[0, 1], [2, 3], [4, 5]]


def test_distributed_datasets_have_iterators_with_optionals(strategy):
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(3).batch(2))
    iterator = iter(dataset)

    assert isinstance(dataset, tf.distribute.DistributedDataset)
    assert isinstance(iterator, tf.distribute.DistributedIterator)
    assert dataset.element_spec.shape.as_list() == [None]
    optionals = [iterator.get_next_as_optional() for _ in range(3)]
    assert [bool(x.has_value()) for x in optionals] == [True, True, False]


@pytest.mark.parametrize(
    "make",
    [
        tf.distribute.CrossDeviceOps,
        tf.distribute.ReductionToOneDevice,
        tf.distribute.NcclAllReduce,
        tf.distribute.HierarchicalCopyAllReduce,
    ],
)
def test_cross_device_ops_reduce_values_of_replicas(make):
    ops = make()
    value = tf.distribute.PerReplica([tf.constant(1.0), tf.constant(3.0)])

    assert ops.reduce("SUM", value, destinations=value).numpy() == 4.0
    assert [x.numpy() for x in ops.batch_reduce("MEAN", [(value, value)] * 2)] == [2.0, 2.0]
    assert ops.broadcast(3.0, destinations=value) == 3.0


def test_older_names_of_strategies():
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy(
        tf.distribute.experimental.CollectiveCommunication.RING
    )
    dataset = strategy.experimental_distribute_datasets_from_function(
        lambda context: tf.data.Dataset.range(context.num_input_pipelines)
    )

    assert strategy.num_replicas_in_sync == 1
    assert [x.numpy() for x in dataset] == [0]
    assert not strategy.extended.experimental_require_static_shapes
    with pytest.raises(ValueError, match="TPUStrategy: JAX finds no TPU"):
        tf.distribute.experimental.TPUStrategy()


def test_unsupported_features_raise():
    one, other = tf.distribute.MirroredStrategy(), tf.distribute.OneDeviceStrategy("/cpu:0")

    assert_raises(
        lambda: tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"]),
        ValueError,
        "MirroredStrategy: this process has the devices ['/device:CPU:0']. Received: "
        "devices=['/gpu:0', '/gpu:1']. Divide the CPU with "
        "tf.config.set_logical_device_configuration before JAX starts.",
    )
    with one.scope():
        assert_raises(
            other.scope,
            RuntimeError,
            f"Mixing different tf.distribute.Strategy objects: {one!r} is not {other!r}. Leave the "
            "scope of the one before the scope of the other.",
        )
    assert_raises(
        lambda: tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local"),
        ValueError,
        "TPUClusterResolver: JAX finds no TPU. Received: tpu='local'. Use the strategy that "
        "tf.distribute.get_strategy() returns, or tf.distribute.MirroredStrategy().",
    )
    assert_raises(
        tf.distribute.TPUStrategy,
        ValueError,
        "TPUStrategy: JAX finds no TPU. Use tf.distribute.MirroredStrategy() for the GPUs or the "
        "CPU of this machine.",
    )
    assert_raises(lambda: one.reduce("MAX", 1.0, None), ValueError, "'MAX' is not a valid ReduceOp")
    assert_raises(
        lambda: tf.distribute.InputContext(num_replicas_in_sync=2).get_per_replica_batch_size(3),
        ValueError,
        "get_per_replica_batch_size: global_batch_size must be divisible by the number of replicas "
        "(2). Received: 3.",
    )
