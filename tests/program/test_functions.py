"""Tests tf.function: arguments, results, traces, concrete functions and errors."""

import dataclasses
import functools
import threading

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises


def count_traces(f, **options):
    """Returns a tf.function of `f` and a list that grows each time its Python code runs."""
    runs = []

    @functools.wraps(f)
    def body(*args, **kwargs):
        runs.append(1)
        return f(*args, **kwargs)

    return tf.function(body, **options), runs


class TestTracing:
    def test_python_code_runs_once_for_each_signature(self):
        f, runs = count_traces(lambda x: x * 2.0)

        results = [f(tf.constant(v)) for v in (1.0, 2.0, [1.0, 2.0], [3.0, 4.0], 5.0)]

        assert len(runs) == 2
        assert [r.numpy().tolist() for r in results] == [2.0, 4.0, [2.0, 4.0], [6.0, 8.0], 10.0]

    @pytest.mark.parametrize(
        ("first", "second"),
        [(1, 2), (1, 1.0), (0.0, -0.0), (True, 1), ("a", "b"), (None, 0), ([1], [1, 1]), ((), [])],
        ids=repr,
    )
    def test_different_python_values_have_separate_traces(self, first, second):
        f, runs = count_traces(lambda x, _: x)
        x = tf.constant(1.0)

        for value in (first, second, first, second):
            f(x, value)

        assert len(runs) == 2

    def test_nan_arguments_share_a_trace(self):
        f, runs = count_traces(lambda x, _: x)

        for _ in range(3):
            f(tf.constant(1.0), float("nan"))

        assert len(runs) == 1

    def test_objects_are_distinguished_by_identity(self):
        class Settings:
            pass

        f, runs = count_traces(lambda x, _: x)
        objects = [Settings(), Settings()]

        for object_ in objects * 2:
            f(tf.constant(1.0), object_)

        assert len(runs) == 2

    def test_numpy_arguments_are_converted_to_tensors(self):
        f, runs = count_traces(lambda x: x + 1.0)

        assert f(np.float32(1)).numpy() == 2.0
        assert f(np.float32(5)).numpy() == 6.0
        assert len(runs) == 1

    def test_the_same_tensor_can_be_passed_twice(self):
        f = tf.function(lambda a, b: a - b)
        x = tf.constant(3.0)

        assert f(x, x).numpy() == 0.0
        assert f(x, tf.constant(1.0)).numpy() == 2.0

    def test_an_argument_is_distinct_from_a_captured_tensor(self):
        x = tf.constant(3.0)
        f = tf.function(lambda y: x * y)

        assert f(x).numpy() == 9.0
        assert f(tf.constant(2.0)).numpy() == 6.0

    def test_variable_arguments_share_a_trace(self):
        f, runs = count_traces(lambda v, x: v.assign_add(x))
        a, b = tf.Variable(1.0), tf.Variable(10.0)

        for variable in (a, b, a):
            f(variable, tf.constant(1.0))

        assert len(runs) == 1
        assert (a.numpy(), b.numpy()) == (3.0, 11.0)

    def test_a_variable_can_be_both_argument_and_captured(self):
        a, b = tf.Variable(1.0), tf.Variable(10.0)
        f = tf.function(lambda v: v + a)

        assert [f(v).numpy() for v in (a, b, a, b)] == [2.0, 11.0, 2.0, 11.0]

    def test_passing_a_variable_twice_has_a_separate_trace(self):
        f = tf.function(lambda v, w: v.assign_add(w))
        a, b = tf.Variable(1.0), tf.Variable(10.0)

        f(a, a)
        f(b, a)

        assert (a.numpy(), b.numpy()) == (2.0, 12.0)


class TestArguments:
    def test_defaults_and_keywords(self):
        f, runs = count_traces(lambda x, k=2.0, *, n=1: x * k + float(n))
        x = tf.constant(3.0)

        assert f(x).numpy() == 7.0
        assert f(x, 2.0).numpy() == 7.0
        assert f(k=2.0, x=x).numpy() == 7.0
        assert f(x, n=5).numpy() == 11.0
        assert len(runs) == 2

    def test_nested_results_keep_their_types(self):
        from collections import namedtuple

        Pair = namedtuple("Pair", "first second")
        f = tf.function(lambda d: {"s": d["a"] + d["b"][0], "t": Pair(d["a"], [d["b"][1], None])})

        for _ in range(2):
            outputs = f({"a": tf.constant(1.0), "b": [tf.constant(2.0), tf.constant(3.0)]})
            assert outputs["s"].numpy() == 3.0
            assert type(outputs["t"]) is Pair
            assert outputs["t"].second[1] is None

    def test_python_results_become_tensors(self):
        f = tf.function(lambda: (1, 2.5, True, "a", None))

        for _ in range(2):
            assert [None if r is None else r.dtype.name for r in f()] == [
                "int32",
                "float32",
                "bool",
                "string",
                None,
            ]

    def test_sparse_arguments_and_results(self):
        f = tf.function(lambda s: tf.sparse.map_values(tf.square, s))

        for value in (2.0, 3.0):
            s = tf.SparseTensor([[0, 1]], [value], [2, 2])
            assert tf.sparse.to_dense(f(s)).numpy()[0, 1] == value**2

    def test_each_instance_has_its_own_traces(self):
        class Scale:
            def __init__(self, k):
                self.k = k
                self.runs = 0

            @tf.function
            def __call__(self, x):
                self.runs += 1
                return self.k * x

        a, b = Scale(2.0), Scale(3.0)

        results = [scale(tf.constant(v)).numpy() for scale in (a, b) for v in (1.0, 2.0)]

        assert results == [2.0, 4.0, 3.0, 6.0]
        assert (a.runs, b.runs) == (1, 1)

    def test_methods_of_unhashable_objects(self):
        @dataclasses.dataclass  # defines __eq__, so it is not hashable
        class Scale:
            k: float
            runs: int = 0

            @tf.function
            def __call__(self, x):
                self.runs += 1
                return self.k * x

        a, b = Scale(2.0), Scale(2.0)

        assert [scale(tf.constant(1.0)).numpy() for scale in (a, b, a, b)] == [2.0] * 4
        assert (a.runs, b.runs) == (1, 1)

    def test_input_signature(self):
        f = tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec([None], tf.float32)])

        assert f([1.0, 2.0]).numpy().tolist() == [2.0, 4.0]
        assert f(tf.constant([1.0])).numpy().tolist() == [2.0]
        assert_raises(
            lambda: f(tf.constant([[1.0]])),
            TypeError,
            "Argument 'x' is not compatible with the input_signature. Received: "
            "TensorSpec(shape=(1, 1), dtype=tf.float32, name=None). Expected: "
            "TensorSpec(shape=(None,), dtype=tf.float32, name=None).",
        )
        assert_raises(
            lambda: f(tf.constant([1.0]), tf.constant([1.0])),
            TypeError,
            "The function has an input_signature of 1 arguments. Received: 2.",
        )

    def test_input_signature_with_keyword_arguments(self):
        specs = [tf.TensorSpec([None]), tf.TensorSpec([])]
        f = tf.function(lambda x, y, z=3.0: x * y * z, input_signature=specs)
        x, y = tf.constant([1.0, 2.0]), tf.constant(2.0)

        assert f(y=y, x=x).numpy().tolist() == [6.0, 12.0]
        assert f(x, y=y).numpy().tolist() == [6.0, 12.0]
        assert_raises(
            lambda: f(x, z=y),
            TypeError,
            "An input_signature lists the first parameters, in order. Received: 1 of them and 'z'. "
            "Parameters: (x, y, z=3.0).",
        )
        with pytest.raises(TypeError, match="multiple values for argument 'y'"):
            f(x, y, y=y)
        with pytest.raises(TypeError, match="got an unexpected keyword argument 'q'"):
            f(x, y, q=y)

    def test_input_signature_with_varargs(self):
        specs = [tf.TensorSpec([]), tf.TensorSpec([]), tf.TensorSpec([])]
        f = tf.function(lambda x, *others: x + 10.0 * sum(others), input_signature=specs)

        assert f(1.0, 2.0, 3.0).numpy() == 51.0
        with pytest.raises(TypeError, match="Argument 'others' is not compatible with"):
            f(1.0, 2.0, [3.0])

    @pytest.mark.parametrize("size", [None, 2])
    def test_concrete_functions_of_an_input_signature(self, size):
        specs = [tf.TensorSpec([None]), tf.TensorSpec([])]
        f = tf.function(lambda x, y, z=3.0: x * y * z, input_signature=specs)
        x, y = tf.constant([1.0, 2.0]), tf.constant(2.0)
        specs_of_call = tf.TensorSpec([size]), tf.TensorSpec([])

        for concrete in (
            f.get_concrete_function(x=specs_of_call[0], y=specs_of_call[1]),
            f.get_concrete_function(specs_of_call[0], y=specs_of_call[1]),
        ):
            assert concrete.structured_input_signature == (specs_of_call, {})
            assert concrete(x, y).numpy().tolist() == [6.0, 12.0]
            assert concrete(y=y, x=x).numpy().tolist() == [6.0, 12.0]
        assert f.get_concrete_function().structured_input_signature == (tuple(specs), {})
        with pytest.raises(TypeError, match="Received: 0 of them and 'y'"):
            f.get_concrete_function(y=specs_of_call[1])

    def test_concrete_functions(self):
        power = tf.function(lambda x, n: x**n)

        cube = power.get_concrete_function(tf.TensorSpec([None]), 3.0)

        assert cube(tf.constant([2.0])).numpy().tolist() == [8.0]
        assert cube.structured_input_signature == ((tf.TensorSpec([None]), 3.0), {})
        with pytest.raises(TypeError, match="expected TensorSpec"):
            cube(tf.constant([[2.0]]))
        with pytest.raises(TypeError, match="an argument is missing"):
            cube()

    def test_keyword_arguments_of_a_concrete_function(self):
        power = tf.function(lambda x, n: x**n)

        cube = power.get_concrete_function(x=tf.TensorSpec(None), n=3)

        assert cube(x=tf.constant(2.0)).numpy() == 8.0
        assert cube(tf.constant([2.0]), n=3).numpy().tolist() == [8.0]
        assert_raises(
            lambda: cube(tf.constant(2.0), n=2),
            TypeError,
            "<lambda>: the argument 'n' is 3 in this ConcreteFunction. Received: 2. Leave it out, "
            "or call the tf.function itself.",
        )
        with pytest.raises(TypeError, match="too many arguments for"):
            cube(tf.constant(2.0), m=1)

    def test_specs_of_ragged_and_sparse_arguments(self):
        x, y = tf.ragged.constant([[1], [2, 3]]), tf.sparse.from_dense([1, 0])
        f = tf.function(lambda x, options, n: x * n * len(options))
        f(x, {"y": y}, 2)

        assert f.pretty_printed_concrete_signatures().startswith(
            "Input Parameters:\n"
            "  x (POSITIONAL_OR_KEYWORD): RaggedTensorSpec(TensorShape([2, None]), tf.int32, 1, "
            "tf.int64)\n"
            "  options (POSITIONAL_OR_KEYWORD): Dict[['y', SparseTensorSpec(TensorShape([2]), "
            "tf.int32)]]\n"
        )

        concrete = f.get_concrete_function(x, {"y": y}, 2)

        specs = tf.RaggedTensorSpec([2, None], tf.int32), {"y": tf.SparseTensorSpec([2], tf.int32)}
        assert concrete.structured_input_signature == ((*specs, 2), {})
        assert concrete(x + 1, y).to_list() == [[4], [6, 8]]
        assert concrete(x=x, options={"y": y}).to_list() == [[2], [4, 6]]
        with pytest.raises(TypeError, match="expected RaggedTensorSpec"):
            concrete(tf.ragged.constant([[1.0], [2.0]]), y)
        with pytest.raises(TypeError, match="Expected: SparseTensorSpec"):
            concrete(x)

    def test_unknown_dimensions_propagate_to_outputs(self):
        f = tf.function(lambda x: [tf.reshape(x, [-1]), x[::2], tf.reduce_sum(x, 0)])

        concrete = f.get_concrete_function(tf.TensorSpec([None, 3]))

        assert concrete.output_shapes == list(map(tf.TensorShape, ([None], [None, 3], [3])))
        assert concrete.output_dtypes == [tf.float32] * 3

    def test_unknown_dimensions_are_inferred_from_weights(self):
        w = tf.Variable(tf.ones([6, 2]))
        f = tf.function(lambda x: x @ w)

        concrete = f.get_concrete_function(tf.TensorSpec([None, None]))

        assert concrete.output_shapes == tf.TensorShape([None, 2])
        assert concrete(tf.ones([4, 6])).shape == (4, 2)
        with pytest.raises(ValueError, match="add"):
            tf.function(lambda x: x + tf.ones([0, 5])).get_concrete_function(
                tf.TensorSpec([None, 4])
            )

    def test_constant_strings_can_be_added(self):
        f = tf.function(lambda: tf.math.add_n("abc") + tf.constant(["x", "y"]))
        for _ in range(3):
            assert f().numpy().tolist() == [b"abcx", b"abcy"]

    def test_string_arguments(self):
        f = tf.function(lambda a, b: a + b)

        for _ in range(4):
            assert f(tf.constant("a"), tf.constant("b")).numpy() == b"ab"
        concrete = f.get_concrete_function(tf.TensorSpec([], tf.string), tf.constant("c"))
        assert concrete(tf.constant("b"), tf.constant("c")).numpy() == b"bc"


def test_fixed_arguments_of_a_concrete_function():
    v, w = tf.Variable([2.0, 3.0]), tf.Variable([2.0, 3.0])
    f = tf.function(lambda x, v, n: x * v * n)
    concrete = f.get_concrete_function(tf.TensorSpec([2], tf.float32), v, 3)
    x = tf.constant([1.0, 10.0])

    for y in (concrete(x), concrete(x, v, 3), concrete(x, v=v, n=3)):
        np.testing.assert_array_equal(y, [6.0, 90.0])
    for args in [(x, v, 4), (x, w, 3)]:
        with pytest.raises(TypeError, match="in this ConcreteFunction"):
            concrete(*args)
    for args in [(x, v), (x, v, 3, 4)]:
        with pytest.raises(TypeError, match="too many arguments for"):
            concrete(*args)


class TestPrettyPrintedSignatures:
    """The texts are the same as in TensorFlow."""

    def test_all_kinds_of_arguments(self):
        @tf.function
        def f(a, b=2, *c, d, **more):  # noqa: ARG001
            return a, {"x": b}

        f(tf.ones([2]), d=[tf.constant(1.0), 3], e={"q": None})
        f(1, "s", tf.constant(True), d=None)

        assert f.pretty_printed_concrete_signatures() == (
            "Input Parameters:\n"
            "  a (POSITIONAL_ONLY): TensorSpec(shape=(2,), dtype=tf.float32, name=None)\n"
            "  b (POSITIONAL_ONLY): Literal[2]\n"
            "  d (KEYWORD_ONLY): List[TensorSpec(shape=(), dtype=tf.float32, name=None), "
            "Literal[3]]\n"
            "  e (KEYWORD_ONLY): Dict[['q', Literal[None]]]\n"
            "Output Type:\n"
            "  Tuple[TensorSpec(shape=(2,), dtype=tf.float32, name=None), "
            "Dict[['x', TensorSpec(shape=(), dtype=tf.int32, name=None)]]]\n"
            "Captures:\n"
            "  None\n"
            "\n"
            "Input Parameters:\n"
            "  a (POSITIONAL_ONLY): Literal[1]\n"
            "  b (POSITIONAL_ONLY): Literal['s']\n"
            "  c_0 (POSITIONAL_ONLY): TensorSpec(shape=(), dtype=tf.bool, name=None)\n"
            "  d (KEYWORD_ONLY): Literal[None]\n"
            "Output Type:\n"
            "  Tuple[TensorSpec(shape=(), dtype=tf.int32, name=None), "
            "Dict[['x', TensorSpec(shape=(), dtype=tf.string, name=None)]]]\n"
            "Captures:\n"
            "  None"
        )

    def test_variables_objects_and_ragged_tensors(self):
        v = tf.Variable([1.0])

        @tf.function
        def f(x, kind):  # noqa: ARG001
            return x * v, tf.RaggedTensor.from_row_lengths([1.0, 2.0], [1, 1])

        f(tf.Variable(2.0), object)
        f(tf.constant(2.0), f)

        first, second = f.pretty_printed_concrete_signatures().split("\n\n")
        assert "  x (POSITIONAL_OR_KEYWORD): VariableSpec(shape=(), dtype=tf.float32, " in first
        assert "  kind (POSITIONAL_OR_KEYWORD): type\n" in first
        assert "  kind (POSITIONAL_OR_KEYWORD): Function\n" in second
        assert "RaggedTensorSpec(TensorShape([2, None]), tf.float32, 1, tf.int64)]\n" in second
        assert second.endswith(": TensorSpec(shape=(), dtype=tf.resource, name=None)")

    def test_str_of_a_concrete_function(self):
        concrete = tf.function(lambda x: x).get_concrete_function(tf.TensorSpec([None, 3]))

        assert str(concrete) == (
            "ConcreteFunction Input Parameters:\n"
            "  x (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(None, 3), dtype=tf.float32, "
            "name=None)\n"
            "Output Type:\n"
            "  TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)\n"
            "Captures:\n"
            "  None"
        )

    def test_a_function_without_traces(self):
        f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([])])

        assert f.pretty_printed_concrete_signatures() == ""
        assert f.input_signature == (tf.TensorSpec([]),)
        assert f.name == "<lambda>"


class TestTraceTypes:
    class Kind(tf.types.experimental.TraceType):
        def __init__(self, kind):
            self.kind = kind

        def is_subtype_of(self, other):
            return self == other

        def most_specific_common_supertype(self, others):
            return self if all(self == other for other in others) else None

        def __eq__(self, other):
            return type(other) is type(self) and self.kind == other.kind

        def __hash__(self):
            return hash(self.kind)

    def test_objects_with_equal_trace_types_share_a_trace(self):
        kind = self.Kind

        class Scale:
            def __init__(self, factor):
                self.factor = factor

            def __tf_tracing_type__(self, context):
                return kind(self.factor)

        f = tf.function(lambda scale, x: scale.factor * x)

        results = [float(f(Scale(k), tf.constant(2.0))) for k in (1.0, 1.0, 3.0, 1.0)]

        assert results == [2.0, 2.0, 6.0, 2.0]
        assert f.experimental_get_tracing_count() == 2

    def test_graph_attributes_raise(self):
        concrete = tf.function(lambda x: x).get_concrete_function(tf.TensorSpec([]))

        assert_raises(
            lambda: concrete.graph,
            AttributeError,
            "'ConcreteFunction' object has no attribute 'graph'. retrograde does not build "
            "graphs. Use source() or program() of the tf.function to see its operations.",
        )
        assert_raises(
            lambda: concrete.nothing,
            AttributeError,
            "'ConcreteFunction' object has no attribute 'nothing'",
        )

    def test_creating_a_concrete_function_does_not_change_variables(self):
        v = tf.Variable(1.0)
        f = tf.function(lambda x: v.assign_add(x))

        concrete = f.get_concrete_function(tf.TensorSpec([]))

        assert v.numpy() == 1.0
        assert [variable is v for variable in concrete.variables] == [True]
        assert concrete(tf.constant(2.0)).numpy() == 3.0

    def test_export_to_stablehlo(self):
        v = tf.Variable([2.0, 3.0])
        f = tf.function(lambda x: (v * x, tf.reduce_sum(x)))
        concrete = f.get_concrete_function(tf.TensorSpec([2]))

        program = concrete.export()

        assert "stablehlo.multiply" in program.mlir_module()
        y, total = program.call(np.array([1.0, 2.0], np.float32))
        assert np.asarray(y).tolist() == [2.0, 6.0]
        assert float(total) == 3.0


class TestScopes:
    def test_executing_eagerly_and_inside_function(self):
        states = []
        f = tf.function(lambda: states.append((tf.executing_eagerly(), tf.inside_function())))

        f()

        assert states == [(False, True)]
        assert (tf.executing_eagerly(), tf.inside_function()) == (True, False)

    def test_run_functions_eagerly(self):
        f, runs = count_traces(lambda x: x + 1.0)
        f(tf.constant(1.0))
        f(tf.constant(1.0))
        tf.config.run_functions_eagerly(True)
        try:
            assert f(tf.constant(1.0)).numpy() == 2.0
        finally:
            tf.config.run_functions_eagerly(False)

        assert len(runs) == 2

    def test_nested_and_recursive_functions(self):
        @tf.function
        def factorial(n, total):
            return total if n == 0 else factorial(n - 1, total * tf.cast(n, tf.float32))

        for _ in range(2):
            assert factorial(5, tf.constant(1.0)).numpy() == 120.0
        outer = tf.function(lambda x: factorial(3, x) + 1.0)
        assert [outer(tf.constant(v)).numpy() for v in (1.0, 2.0)] == [7.0, 13.0]

    def test_init_scope_is_not_traced(self):
        v = tf.Variable(0.0)

        @tf.function
        def f(x):
            with tf.init_scope():
                v.assign_add(1.0)
            return x

        for _ in range(3):
            f(tf.constant(1.0))

        assert v.numpy() == 1.0

    def test_threads_share_traces(self):
        v = tf.Variable(0.0)
        f, _ = count_traces(lambda x: v * 0.0 + tf.reduce_sum(tf.sin(x)))
        arrays = [tf.constant(np.full(100, k, np.float32)) for k in range(8)]
        results = {}

        def work(k):
            for _ in range(20):
                results[k] = f(arrays[k]).numpy()

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        np.testing.assert_allclose(
            [results[k] for k in range(8)], [100 * np.sin(k) for k in range(8)], rtol=1e-5
        )


class TestErrors:
    def test_shape_and_dtype_errors_have_the_classes_of_tensorflow(self):
        f = tf.function(lambda x: x + tf.ones([3]))
        with pytest.raises(ValueError, match="incompatible shapes"):
            f(tf.ones([2]))
        g = tf.function(lambda x: x + tf.constant(1))
        with pytest.raises(TypeError, match="was expected to be a float32 tensor"):
            g(tf.constant(1.0))

    def test_a_failing_replay_raises_the_same_error(self):
        f = tf.function(lambda x: tf.debugging.check_numerics(x, "x"))
        f(tf.constant([1.0]))
        f(tf.constant([1.0]))

        with pytest.raises(tf.errors.InvalidArgumentError, match="x : Tensor had NaN values"):
            f(tf.constant([np.nan]))

    def test_tensors_used_out_of_scope_raise(self):
        leaked = []

        @tf.function
        def f(x):
            leaked.append(x * 2.0)
            return x

        f(tf.constant(1.0))

        with pytest.raises(TypeError, match="out of scope"):
            _ = leaked[0] + 1.0
        with pytest.raises(TypeError, match="out of scope"):
            tf.function(lambda: leaked[0] + 1.0)()
        with pytest.raises(AttributeError, match="out of scope"):
            leaked[0].numpy()
        assert repr(leaked[0]) == "<tf.Tensor: out of scope, created inside a tf.function>"

    def test_variables_can_be_created_only_in_the_first_call(self):
        class Model:
            v = None

            @tf.function
            def __call__(self, x):
                if self.v is None:
                    self.v = tf.Variable(5.0)
                return self.v * x

        model = Model()
        assert [model(tf.constant(x)).numpy() for x in (2.0, 3.0, 4.0)] == [10.0, 15.0, 20.0]

        f = tf.function(lambda x: tf.Variable(1.0) + x)
        with pytest.raises(ValueError, match="only supports singleton"):
            f(tf.constant(1.0))

    def test_jit_compile_without_jax_raises(self, monkeypatch):
        import sys

        monkeypatch.setitem(sys.modules, "jax", None)
        f = tf.function(lambda x: x, jit_compile=True)

        assert_raises(
            lambda: f(tf.constant(1.0)),
            ImportError,
            "function(jit_compile=True) compiles with XLA, which requires JAX. Install it with: "
            "pip install 'retrograde[xla]'.",
        )


def test_default_arguments_can_be_variables_or_tensors():
    v, c = tf.Variable([1.0, 2.0]), tf.constant([3.0, 4.0])

    @tf.function
    def f(x, v=v, c=c):
        return x * v + c

    for _ in range(3):
        np.testing.assert_array_equal(f(2.0), [5.0, 8.0])
        np.testing.assert_array_equal(f(2.0, c), [9.0, 12.0])
