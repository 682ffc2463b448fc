"""Adam in one pass equals the Keras step bit for bit, and commits its three values together."""

import numpy as np
import pytest
from keras.src.optimizers.base_optimizer import BaseOptimizer

import retrograde as tf
from retrograde.keras_backend import adam
from tests.interrupts import CallAtInstruction

keras = tf.keras

SHAPES = [(), (0, 3), (5,), (3, 7), (70_000,), (3, 100_001)]


def variables(shapes=SHAPES, dtype="float32"):
    rng = np.random.default_rng(0)
    return [keras.Variable(rng.standard_normal(shape), dtype=dtype) for shape in shapes]


def gradients(step, shapes=SHAPES, dtype="float32"):
    rng = np.random.default_rng(step)
    return [tf.constant(rng.standard_normal(shape), dtype) for shape in shapes]


def train(optimizer, parameters, steps=3, dtype="float32"):
    """Returns the parameters and the optimizer's variables after a few steps."""
    shapes = [tuple(v.shape) for v in parameters]
    for step in range(steps):
        optimizer.apply(gradients(step, shapes, dtype), parameters)
    return [v.numpy() for v in (*parameters, *optimizer.variables)]


def assert_same_bits(results, expected):
    for result, other in zip(results, expected, strict=True):
        assert result.dtype == other.dtype
        np.testing.assert_array_equal(result, other)


@pytest.fixture
def keras_step(monkeypatch):
    """Returns a function that disables the single pass."""
    return lambda: monkeypatch.setattr(
        adam.Adam, "_backend_update_step", BaseOptimizer._backend_update_step
    )


@pytest.fixture
def fused_updates(monkeypatch):
    """Counts the variables that are updated in one pass."""
    updates, update = [], adam._update

    def count(cells, *args):
        updates.append(cells)
        update(cells, *args)

    monkeypatch.setattr(adam, "_update", count)
    return updates


OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(0.01),
    "schedule": lambda: keras.optimizers.Adam(
        keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5), beta_1=0.8, epsilon=1e-3
    ),
    "adamw": lambda: keras.optimizers.AdamW(0.01, weight_decay=0.1),
    "clipped": lambda: keras.optimizers.Adam(0.01, global_clipnorm=1.0, use_ema=True),
    "accumulated": lambda: keras.optimizers.Adam(0.01, gradient_accumulation_steps=2),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_equals_the_keras_step(name, dtype, keras_step, fused_updates):
    fused = train(OPTIMIZERS[name](), variables(dtype=dtype), dtype=dtype)
    assert fused_updates
    keras_step()

    assert_same_bits(fused, train(OPTIMIZERS[name](), variables(dtype=dtype), dtype=dtype))


def test_equals_a_traced_step(fused_updates):
    eager = train(keras.optimizers.Adam(0.01), variables())
    count = len(fused_updates)
    optimizer, parameters = keras.optimizers.Adam(0.01), variables()
    optimizer.build(parameters)
    apply = tf.function(lambda *grads: optimizer.apply(list(grads), parameters))
    for step in range(3):
        apply(*gradients(step))

    assert len(fused_updates) == count == 3 * len(SHAPES)
    assert_same_bits([v.numpy() for v in (*parameters, *optimizer.variables)], eager)


def test_updates_plain_variables(keras_step):
    def result():
        parameters = [tf.Variable([1.0, -2.0])]
        keras.optimizers.Adam(0.1).apply([tf.constant([0.5, 0.25])], parameters)
        return parameters[0].numpy()

    fused = result()
    keras_step()

    np.testing.assert_array_equal(fused, result())
    np.testing.assert_allclose(fused, [0.9, -2.1], rtol=1e-5)


def test_gradients_with_strides_and_lazy_gradients(keras_step, fused_updates):
    def result():
        parameters = variables([(300, 500)])
        x = tf.constant(np.random.default_rng(1).standard_normal((500, 300)), tf.float32)
        optimizer = keras.optimizers.Adam(0.01)
        optimizer.apply([tf.transpose(x)], parameters)
        optimizer.apply([tf.sin(tf.transpose(x)) * 2.0 + 1.0], parameters)
        return [parameters[0].numpy()]

    fused = result()
    assert len(fused_updates) == 2
    keras_step()

    assert_same_bits(fused, result())


class Doubled(tf.keras.optimizers.Adam):
    """Adam with twice the gradient."""

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(2 * gradient, variable, learning_rate)


@pytest.mark.parametrize(
    "create", [lambda: keras.optimizers.Adam(0.1, amsgrad=True), lambda: Doubled(0.1)]
)
def test_other_rules_run_the_keras_step(create, fused_updates):
    train(create(), variables([(3,)]))

    assert not fused_updates


def test_recorded_and_stateless_steps_run_the_keras_step(fused_updates):
    parameters = variables([(3,)])
    optimizer = keras.optimizers.Adam(0.1)
    optimizer.build(parameters)
    with tf.GradientTape():
        optimizer.apply(gradients(0, [(3,)]), parameters)
    before = parameters[0].numpy()
    optimizer.stateless_apply(
        optimizer.variables, gradients(0, [(3,)]), [v.value for v in parameters]
    )

    assert not fused_updates
    np.testing.assert_array_equal(parameters[0].numpy(), before)


def test_half_precision_runs_the_keras_step(fused_updates):
    results = train(keras.optimizers.Adam(0.1), variables([(3,)], "float16"), dtype="float16")

    assert not fused_updates
    assert results[0].dtype == np.float16


def test_tensors_that_were_read_keep_their_values():
    parameters = variables([(4,)])
    before = parameters[0].value
    copy = before.numpy()
    train(keras.optimizers.Adam(0.1), parameters)

    np.testing.assert_array_equal(before.numpy(), copy)


def state(parameters, optimizer):
    """Returns a variable, its momentum and its velocity."""
    return [v.numpy() for v in (parameters[0], optimizer._momentums[0], optimizer._velocities[0])]


def test_an_interrupt_leaves_either_all_or_none_of_the_three_updated():
    expected = []
    for steps in (0, 1):
        optimizer, parameters = keras.optimizers.Adam(0.1), variables([(9,)])
        optimizer.build(parameters)
        train(optimizer, parameters, steps)
        expected.append(state(parameters, optimizer))

    def interrupt():
        raise KeyboardInterrupt

    outcomes = set()
    for n in range(1, 2000):
        optimizer, parameters = keras.optimizers.Adam(0.1), variables([(9,)])
        optimizer.build(parameters)
        call = CallAtInstruction(n, interrupt, [adam.__file__], realistic=True)
        try:
            with call:
                train(optimizer, parameters, steps=1)
        except KeyboardInterrupt:
            pass
        current = state(parameters, optimizer)
        matches = [all(map(np.array_equal, current, other)) for other in expected]
        assert any(matches)
        outcomes.add(matches.index(True))
        if not call.was_reached:
            break
    assert not call.was_reached
    assert outcomes == {0, 1}


def test_no_assignment_of_another_thread_is_lost():
    """An assignment during the step comes before the update or after it."""
    outcomes = []
    for n in range(1, 2000):
        optimizer, parameters = keras.optimizers.Adam(0.1), [keras.Variable([1.0])]
        optimizer.build(parameters)
        call = CallAtInstruction(n, lambda v=parameters[0]: v.assign([5.0]), [adam.__file__])
        with call:
            optimizer.apply([tf.constant([1.0])], parameters)
        if not call.was_reached:
            break
        outcomes.append(round(float(parameters[0].numpy()[0]), 3))
    assert set(outcomes) == {4.9, 5.0}
