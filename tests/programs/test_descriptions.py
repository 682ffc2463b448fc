"""The patterns and directives of five descriptions of `tf.GradientTape`.

The patterns are run verbatim, as programs that import `tensorflow`. Names that they do not define,
such as a model or its data, are provided.
"""

import gc
import importlib
import textwrap
import weakref

import numpy as np
import pytest

from retrograde.tensorflow_shim.import_hook import retrograde_as_tensorflow


@pytest.fixture(scope="module")
def tf():
    with retrograde_as_tensorflow():
        yield importlib.import_module("tensorflow")


@pytest.fixture
def model(tf):
    return tf.keras.models.Sequential([tf.keras.layers.Dense(3)])


@pytest.fixture
def provided(tf, model):
    """Returns the names that the patterns do not define: data, a model, losses."""
    random = np.random.default_rng(1)
    inputs = tf.constant(random.normal(size=(8, 4)).astype(np.float32))
    targets = tf.constant(random.normal(size=(8, 3)).astype(np.float32))
    model(inputs)

    def mean_square(a, b):
        return tf.reduce_mean((a - b) ** 2)

    return {
        "tf": tf,
        "inputs": inputs,
        "targets": targets,
        "labels": targets,
        "model": model,
        "compute_loss": mean_square,
        "loss_function": mean_square,
        "loss_fn": mean_square,
    }


def run(pattern, provided=None, **more):
    """Runs a pattern and returns its global names."""
    names = {**(provided or {}), **more}
    exec(textwrap.dedent(pattern), names)
    return names


# The first description


class TestFirstDescription:
    def test_pattern_basic_gradient_calculation(self, provided):
        names = run(
            """\
            x = tf.constant(3.0)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x * x
            dy_dx = tape.gradient(y, x)
            """,
            provided,
        )

        assert float(names["dy_dx"]) == 6.0

    def test_pattern_training_a_neural_network(self, provided):
        pattern = """\
            model = tf.keras.models.Sequential([...])
            optimizer = tf.keras.optimizers.SGD()
            with tf.GradientTape() as tape:
                predictions = model(inputs)
                loss = compute_loss(predictions, targets)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            """.replace("[...]", "[tf.keras.layers.Dense(5, 'tanh'), tf.keras.layers.Dense(3)]")
        names = run(pattern, provided)

        assert len(names["gradients"]) == 4
        after = names["compute_loss"](names["model"](names["inputs"]), names["targets"])
        assert float(after) < float(names["loss"])

    def test_pattern_custom_training_loop(self, tf, provided):
        dataset = tf.data.Dataset.from_tensor_slices((provided["inputs"], provided["targets"]))
        more = {
            "num_epochs": 20,
            "dataset": dataset.batch(4),
            "optimizer": tf.keras.optimizers.Adam(0.05),
        }
        before = provided["loss_fn"](provided["targets"], provided["model"](provided["inputs"]))
        names = run(
            """\
            for epoch in range(num_epochs):
                for inputs, targets in dataset:
                    with tf.GradientTape() as tape:
                        predictions = model(inputs)
                        loss = loss_fn(targets, predictions)
                    gradients = tape.gradient(loss, model.trainable_variables)
                    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            """,
            provided,
            **more,
        )

        after = provided["loss_fn"](provided["targets"], names["model"](provided["inputs"]))
        assert float(after) < 0.8 * float(before)
        assert int(more["optimizer"].iterations) == 40

    def test_pattern_higher_order_gradients(self, provided):
        names = run(
            """\
            x = tf.Variable(1.0)
            with tf.GradientTape(persistent=True) as tape1:
                with tf.GradientTape() as tape2:
                    y = x * x
                dy_dx = tape2.gradient(y, x)
            d2y_dx2 = tape1.gradient(dy_dx, x)
            """,
            provided,
        )

        assert (float(names["dy_dx"]), float(names["d2y_dx2"])) == (2.0, 2.0)

    def test_directive_resource_management(self, tf):
        """`del` of a persistent tape frees its memory at once."""
        x = tf.constant(np.ones(1000))
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            squares = x * x
            y = tf.reduce_sum(tf.sqrt(squares))
        tape.gradient(y, x)
        reference = weakref.ref(squares)
        gc.disable()
        try:
            del squares, tape
            assert reference() is None
        finally:
            gc.enable()

    def test_directive_use_proper_scope(self, tf):
        """`with` ends the recording, even after an exception."""
        x = tf.Variable(2.0)
        tape = tf.GradientTape()
        with pytest.raises(ZeroDivisionError), tape:
            y = x * x
            1 / 0  # noqa: B018
        z = x * y

        assert float(tape.gradient(y, x)) == 4.0
        assert tf.GradientTape().gradient(z, x) is None

    def test_directive_gradient_stop(self, tf):
        x = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = x * tf.stop_gradient(x * x)

        assert float(tape.gradient(y, x)) == 9.0

    def test_directive_variable_watching(self, tf):
        v, c = tf.Variable(2.0), tf.constant(3.0)
        with tf.GradientTape() as tape:
            y = v * c
        assert [float(g) if g is not None else None for g in tape.gradient(y, [v, c])] == [
            3.0,
            None,
        ]
        with tf.GradientTape() as tape:
            tape.watch(c)
            y = v * c
        assert [float(g) for g in tape.gradient(y, [v, c])] == [3.0, 2.0]

    def test_directive_reusing_tapes(self, tf):
        x = tf.Variable(2.0)
        with tf.GradientTape() as tape:
            y = x * x
        tape.gradient(y, x)

        with pytest.raises(RuntimeError, match="can only be used to compute one set of gradients"):
            tape.gradient(y, x)

    def test_alternative_function(self, tf):
        @tf.function
        def gradient(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x**3
            return tape.gradient(y, x)

        assert [float(gradient(tf.constant(value))) for value in (1.0, 2.0)] == [3.0, 12.0]

    def test_alternative_compile_and_fit(self, provided, model):
        model.compile(optimizer="sgd", loss="mse")
        history = model.fit(provided["inputs"], provided["targets"], epochs=5, verbose=0).history

        assert history["loss"][-1] < history["loss"][0]


# The second description


class TestSecondDescription:
    def test_pattern_example_1_basic_gradient_calculation(self, tf, capsys):
        names = run("""\
            import tensorflow as tf

            x = tf.Variable(3.0)
            with tf.GradientTape() as tape:
                y = x ** 2
            dy_dx = tape.gradient(y, x)
            print(dy_dx)  # Output: 6.0
            """)

        assert names["tf"] is tf
        assert capsys.readouterr().out == "tf.Tensor(6.0, shape=(), dtype=float32)\n"

    def test_pattern_example_2_gradient_calculation_with_manual_watch(self, tf, capsys):
        names = run("""\
            import tensorflow as tf

            x = tf.constant(3.0)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x ** 2
            dy_dx = tape.gradient(y, x)
            print(dy_dx)  # Output: 6.0
            """)

        assert names["tf"] is tf
        assert capsys.readouterr().out == "tf.Tensor(6.0, shape=(), dtype=float32)\n"

    def test_pattern_use_gradient_tape_for_implementing_custom_training_loops(self, provided):
        before = [v.numpy() for v in provided["model"].trainable_variables]
        names = run(
            """\
            optimizer = tf.optimizers.SGD(learning_rate=0.01)
            with tf.GradientTape() as tape:
                predictions = model(inputs)
                loss = loss_function(labels, predictions)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            """,
            provided,
        )

        for v, old, g in zip(
            provided["model"].trainable_variables, before, names["gradients"], strict=True
        ):
            np.testing.assert_allclose(v.numpy(), old - 0.01 * g.numpy(), rtol=1e-6)

    def test_directive_use_the_tape_in_a_context(self, tf):
        x = tf.Variable(2.0)
        tape = tf.GradientTape()
        y = x * x  # not recorded

        assert tape.gradient(y, x) is None

    def test_directive_persistent_for_several_calls(self, tf):
        x = tf.Variable(2.0)
        with tf.GradientTape(persistent=True) as tape:
            y = x * x
            z = y * y

        assert [float(tape.gradient(t, x)) for t in (z, y, z)] == [32.0, 4.0, 32.0]

    def test_directive_watch_variables_that_are_not_trainable(self, tf):
        fixed = tf.Variable(3.0, trainable=False)
        with tf.GradientTape() as tape:
            y = fixed * fixed
        assert tape.gradient(y, fixed) is None
        with tf.GradientTape() as tape:
            tape.watch(fixed)
            y = fixed * fixed
        assert float(tape.gradient(y, fixed)) == 6.0

    def test_directive_release_resources_by_leaving_the_context(self, tf):
        """After the block nothing is recorded, and `gradient` frees the memory."""
        x = tf.Variable(np.ones(3))
        with tf.GradientTape() as tape:
            squares = x * x
            y = tf.reduce_sum(tf.exp(squares))
        later = y * y
        reference = weakref.ref(squares)
        del squares
        tape.gradient(y, x)

        assert reference() is None
        with tf.GradientTape() as tape:
            pass
        assert tape.gradient(later, x) is None

    def test_directive_nondifferentiable_operations_contribute_no_gradient(self, tf):
        x = tf.Variable(2.5)
        with tf.GradientTape(persistent=True) as tape:
            rounded = tf.cast(tf.argmax(tf.stack([x, 0.0])), tf.float32)
            y = x * x + rounded

        assert tape.gradient(rounded, x) is None
        assert float(tape.gradient(y, x)) == 5.0

    def test_performance_watch_accessed_variables(self, tf):
        a, b = tf.Variable(2.0), tf.Variable(3.0)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(a)
            y = a * b
        assert tape.watched_variables() == (a,)
        gradients = tape.gradient(y, [a, b])

        assert float(gradients[0]) == 3.0
        assert gradients[1] is None

    def test_alternative_gradients_need_a_function(self, tf):
        x = tf.constant(3.0)
        with pytest.raises(RuntimeError, match=r"tf\.gradients is not supported"):
            tf.gradients(x * x, x)


# The third description


class TestThirdDescription:
    def test_directive_gradient_and_jacobian_outside_the_context(self, tf):
        x = tf.Variable([1.0, 2.0])
        with tf.GradientTape(persistent=True) as tape:
            y = x * x

        assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]
        assert tape.jacobian(y, x).numpy().tolist() == [[2.0, 0.0], [0.0, 4.0]]

    def test_directive_operations_within_the_context(self, tf):
        x = tf.Variable(2.0)
        before = x * x
        with tf.GradientTape() as tape:
            y = 3.0 * before + x

        assert float(tape.gradient(y, x)) == 1.0

    def test_directive_use_call_and_not_predict(self, tf, provided, model):
        with tf.GradientTape() as tape:
            predictions = model.predict(provided["inputs"], verbose=0)
            loss = provided["loss_fn"](predictions, provided["targets"])
        assert all(g is None for g in tape.gradient(loss, model.trainable_variables))
        with tf.GradientTape() as tape:
            loss = provided["loss_fn"](model(provided["inputs"]), provided["targets"])
        assert all(g is not None for g in tape.gradient(loss, model.trainable_variables))

    def test_directive_nested_tapes_for_higher_order(self, tf):
        x = tf.Variable(2.0)
        with tf.GradientTape() as third, tf.GradientTape() as second, tf.GradientTape() as first:
            y = x**4
            d1 = first.gradient(y, x)
            d2 = second.gradient(d1, x)

        assert [float(d1), float(d2), float(third.gradient(d2, x))] == [32.0, 48.0, 48.0]

    def test_directive_transform_gradients_before_they_are_applied(self, tf, provided, model):
        optimizer = tf.keras.optimizers.SGD(learning_rate=1.0)
        variables = model.trainable_variables
        with tf.GradientTape() as tape:
            loss = 100.0 * provided["loss_fn"](model(provided["inputs"]), provided["targets"])
        gradients = tape.gradient(loss, variables)
        clipped, norm = tf.clip_by_global_norm(gradients, 1.0)
        bounded = [tf.clip_by_value(g, -0.01, 0.01) for g in clipped]
        normal = [g / (tf.norm(g) + 1e-8) for g in bounded]
        before = [v.numpy() for v in variables]
        optimizer.apply_gradients(zip(normal, variables, strict=True))

        assert float(norm) > 1.0
        np.testing.assert_allclose(float(tf.linalg.global_norm(clipped)), 1.0, rtol=1e-5)
        for v, old in zip(variables, before, strict=True):
            np.testing.assert_allclose(np.linalg.norm(v.numpy() - old), 1.0, rtol=1e-4)

    def test_directive_persistent_for_several_gradients(self, tf):
        x = tf.Variable(3.0)
        with tf.GradientTape(persistent=True) as tape:
            y = x * x
            z = tf.sin(x)
        np.testing.assert_allclose(
            [tape.gradient(y, x), tape.gradient(z, x)], [6.0, np.cos(3.0)], rtol=1e-6
        )

    def test_pattern_jacobian_of_the_output_with_respect_to_the_weights(self, tf, provided, model):
        optimizer = tf.keras.optimizers.SGD(0.1)
        jacobians = {}
        for epoch in range(4):
            with tf.GradientTape(persistent=True) as tape:
                outputs = model(provided["inputs"])
                loss = provided["loss_fn"](outputs, provided["targets"])
            if epoch % 2 == 0:
                jacobians[epoch] = tape.jacobian(outputs, model.trainable_variables)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

        assert sorted(jacobians) == [0, 2]
        kernel, bias = jacobians[2]
        assert tuple(kernel.shape) == (8, 3, 4, 3)
        inputs = provided["inputs"].numpy()
        np.testing.assert_allclose(
            kernel, np.einsum("bi,oj->boij", inputs, np.eye(3)), rtol=1e-6, atol=1e-7
        )
        np.testing.assert_allclose(bias, np.broadcast_to(np.eye(3), (8, 3, 3)), atol=1e-7)

    def test_pattern_custom_training_step(self, tf, provided):
        class Model(tf.keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = tf.keras.layers.Dense(3)

            def call(self, x):
                return self.dense(x)

            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = self.compute_loss(y=y, y_pred=self(x, training=True))
                gradients = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply_gradients(
                    zip(gradients, self.trainable_variables, strict=True)
                )
                return {"error": loss}

        model = Model()
        model.compile(optimizer=tf.keras.optimizers.Adam(0.05), loss="mse")
        history = model.fit(provided["inputs"], provided["targets"], epochs=10, verbose=0).history

        assert history["error"][-1] < 0.9 * history["error"][0]

    def test_pattern_linear_regression_with_adam(self, tf):
        x = np.linspace(-1, 1, 50, dtype=np.float32)[:, None]
        y = 3.0 * x + 2.0
        w, b = tf.Variable([[0.0]]), tf.Variable([0.0])
        optimizer = tf.keras.optimizers.Adam(learning_rate=0.1)
        for _ in range(200):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ w + b - y) ** 2)
            gradients = tape.gradient(loss, [w, b])
            optimizer.apply_gradients(zip(gradients, [w, b], strict=True))

        np.testing.assert_allclose([w.numpy()[0, 0], b.numpy()[0]], [3.0, 2.0], atol=0.02)

    def test_pattern_higher_order_gradients_by_nesting(self, tf):
        x = tf.Variable(1.0)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = x * x * x
            first = inner.gradient(y, x)
        second = outer.gradient(first, x)

        assert (float(first), float(second)) == (3.0, 6.0)


# The fourth description


class TestFourthDescription:
    def test_pattern_higher_order_derivatives(self, tf):
        x = tf.Variable([1.0, 2.0])
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = tf.reduce_sum(x**3)
            gradient = inner.gradient(y, x)
        hessian = outer.jacobian(gradient, x)

        assert hessian.numpy().tolist() == [[6.0, 0.0], [0.0, 12.0]]

    def test_pattern_gradient_processing(self, tf):
        v = tf.Variable([3.0, 4.0])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v)
        gradient = tape.gradient(loss, v)
        v.assign_sub(0.1 * tf.clip_by_norm(gradient, 5.0))

        np.testing.assert_allclose(v.numpy(), [2.7, 3.6], rtol=1e-6)

    def test_pattern_training_multiple_models(self, tf, provided):
        first = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(5, "tanh")])
        second = tf.keras.Sequential([tf.keras.Input((5,)), tf.keras.layers.Dense(3)])
        variables = first.trainable_variables + second.trainable_variables
        optimizer = tf.keras.optimizers.Adam(0.02)
        losses = []
        for _ in range(15):
            with tf.GradientTape() as tape:
                loss = provided["loss_fn"](second(first(provided["inputs"])), provided["targets"])
            gradients = tape.gradient(loss, variables)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
            losses.append(float(loss))

        assert len(variables) == 4
        assert losses[-1] < 0.9 * losses[0]

    def test_performance_lists_of_variables_keep_their_shapes(self, tf):
        variables = [tf.Variable(np.ones(shape)) for shape in ((), (2,), (3, 1), (1, 2, 2))]
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(v * v) for v in variables])
        gradients = tape.gradient(loss, variables)

        assert [g.shape for g in gradients] == [v.shape for v in variables]
        for g, v in zip(gradients, variables, strict=True):
            np.testing.assert_array_equal(g, 2 * v.numpy())

    def test_concept_tapes_work_with_and_without_a_function(self, tf):
        x = tf.Variable(3.0)

        def gradient():
            with tf.GradientTape() as tape:
                y = x * x
            return tape.gradient(y, x)

        assert float(gradient()) == float(tf.function(gradient)()) == 6.0

    def test_directive_variable_setup(self, tf):
        weights = tf.Variable(tf.convert_to_tensor([1.0, 2.0]))
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(weights**2)

        assert weights.trainable
        assert tape.gradient(y, weights).numpy().tolist() == [2.0, 4.0]

    def test_directive_explicit_gradient_paths(self, tf):
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            hidden = x * 2.0
            y = tf.reduce_sum(hidden**2)
        gradients = tape.gradient(y, [x, hidden])

        assert [g.numpy().tolist() for g in gradients] == [[8.0, 16.0], [4.0, 8.0]]


# The fifth description


class TestFifthDescription:
    def test_functionality_jacobian_method(self, tf):
        x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(x, axis=1)

        jacobian = tape.jacobian(y, x)
        assert tuple(jacobian.shape) == (2, 2, 2)
        np.testing.assert_array_equal(jacobian, [[[1, 1], [0, 0]], [[0, 0], [1, 1]]])

    def test_functionality_lists_of_variables_of_different_shapes(self, tf, provided, model):
        with tf.GradientTape() as tape:
            loss = provided["loss_fn"](model(provided["inputs"]), provided["targets"])
        gradients = tape.gradient(loss, model.trainable_variables)

        shapes = [tuple(v.shape) for v in model.trainable_variables]
        assert [tuple(g.shape) for g in gradients] == shapes == [(4, 3), (3,)]

    def test_functionality_gradient_frees_the_tape(self, tf):
        x = tf.Variable(2.0)
        with tf.GradientTape() as tape:
            y = x * x
        tape.gradient(y, x)

        with pytest.raises(RuntimeError):
            tape.jacobian(y, x)

    def test_functionality_persistent_tapes_allow_several_calls(self, tf):
        x = tf.Variable([2.0, 3.0])
        with tf.GradientTape(persistent=True) as tape:
            y = x * x
        calls = [tape.gradient(y, x), tape.gradient(y, x), tape.jacobian(y, x)]

        assert [c.numpy().tolist() for c in calls] == [[4, 6], [4, 6], [[4, 0], [0, 6]]]

    def test_concept_the_forward_pass_comes_first(self, tf):
        x = tf.Variable(2.0)
        with tf.GradientTape() as tape:
            pass
        y = x * x

        assert tape.gradient(y, x) is None
