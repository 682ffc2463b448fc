"""function(): what it takes, what it returns, and when it records."""

import dataclasses
import functools
import threading

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises


def counted(f, **options):
    """A function of `f`, and a list that grows each time its Python code runs."""
    runs = []

    @functools.wraps(f)
    def body(*args, **kwargs):
        runs.append(1)
        return f(*args, **kwargs)

    return tf.function(body, **options), runs


class TestRecording:
    def test_python_code_runs_once_for_each_signature(self):
        f, runs = counted(lambda x: x * 2.0)

        results = [f(tf.constant(v)) for v in (1.0, 2.0, [1.0, 2.0], [3.0, 4.0], 5.0)]

        assert len(runs) == 2
        assert [r.numpy().tolist() for r in results] == [2.0, 4.0, [2.0, 4.0], [6.0, 8.0], 10.0]

    @pytest.mark.parametrize(
        ("first", "second"),
        [(1, 2), (1, 1.0), (0.0, -0.0), (True, 1), ("a", "b"), (None, 0), ([1], [1, 1]), ((), [])],
        ids=repr,
    )
    def test_python_values_are_told_apart(self, first, second):
        f, runs = counted(lambda x, _: x)
        x = tf.constant(1.0)

        for value in (first, second, first, second):
            f(x, value)

        assert len(runs) == 2

    def test_nan_is_itself(self):
        f, runs = counted(lambda x, _: x)

        for _ in range(3):
            f(tf.constant(1.0), float("nan"))

        assert len(runs) == 1

    def test_objects_count_as_themselves(self):
        class Thing:
            pass

        f, runs = counted(lambda x, _: x)
        things = [Thing(), Thing()]

        for thing in things * 2:
            f(tf.constant(1.0), thing)

        assert len(runs) == 2

    def test_numpy_arrays_are_tensors(self):
        f, runs = counted(lambda x: x + 1.0)

        assert f(np.float32(1)).numpy() == 2.0
        assert f(np.float32(5)).numpy() == 6.0
        assert len(runs) == 1

    def test_the_same_tensor_twice_is_two_arguments(self):
        f = tf.function(lambda a, b: a - b)
        x = tf.constant(3.0)

        assert f(x, x).numpy() == 0.0
        assert f(x, tf.constant(1.0)).numpy() == 2.0

    def test_an_argument_is_not_the_tensor_of_the_same_name_outside(self):
        x = tf.constant(3.0)
        f = tf.function(lambda y: x * y)

        assert f(x).numpy() == 9.0
        assert f(tf.constant(2.0)).numpy() == 6.0

    def test_variables_as_arguments_share_a_recording(self):
        f, runs = counted(lambda v, x: v.assign_add(x))
        a, b = tf.Variable(1.0), tf.Variable(10.0)

        for variable in (a, b, a):
            f(variable, tf.constant(1.0))

        assert len(runs) == 1
        assert (a.numpy(), b.numpy()) == (3.0, 11.0)

    def test_a_variable_that_is_also_in_the_closure_is_not_mistaken(self):
        a, b = tf.Variable(1.0), tf.Variable(10.0)
        f = tf.function(lambda v: v + a)

        assert [f(v).numpy() for v in (a, b, a, b)] == [2.0, 11.0, 2.0, 11.0]

    def test_the_same_variable_twice_is_told_from_two(self):
        f = tf.function(lambda v, w: v.assign_add(w))
        a, b = tf.Variable(1.0), tf.Variable(10.0)

        f(a, a)
        f(b, a)

        assert (a.numpy(), b.numpy()) == (2.0, 12.0)


class TestArguments:
    def test_defaults_and_keywords(self):
        f, runs = counted(lambda x, k=2.0, *, n=1: x * k + float(n))
        x = tf.constant(3.0)

        assert f(x).numpy() == 7.0
        assert f(x, 2.0).numpy() == 7.0
        assert f(k=2.0, x=x).numpy() == 7.0
        assert f(x, n=5).numpy() == 11.0
        assert len(runs) == 2

    def test_structures_keep_their_types(self):
        from collections import namedtuple

        Pair = namedtuple("Pair", "first second")
        f = tf.function(lambda d: {"s": d["a"] + d["b"][0], "t": Pair(d["a"], [d["b"][1], None])})

        for _ in range(2):
            r = f({"a": tf.constant(1.0), "b": [tf.constant(2.0), tf.constant(3.0)]})
            assert r["s"].numpy() == 3.0
            assert type(r["t"]) is Pair
            assert r["t"].second[1] is None

    def test_python_values_come_back_as_tensors(self):
        f = tf.function(lambda: (1, 2.5, True, "a", None))

        for _ in range(2):
            assert [None if r is None else r.dtype.name for r in f()] == [
                "int32",
                "float32",
                "bool",
                "string",
                None,
            ]

    def test_composite_tensors_go_in_and_out(self):
        f = tf.function(lambda s: tf.sparse.map_values(tf.square, s))

        for value in (2.0, 3.0):
            s = tf.SparseTensor([[0, 1]], [value], [2, 2])
            assert tf.sparse.to_dense(f(s)).numpy()[0, 1] == value**2

    def test_bound_methods_have_recordings_of_their_own(self):
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

    def test_objects_that_cannot_be_keys_have_methods_too(self):
        @dataclasses.dataclass  # compares by value, and so has no hash
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

    def test_input_signature_and_arguments_by_name(self):
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

    def test_input_signature_of_a_function_that_takes_any_number(self):
        specs = [tf.TensorSpec([]), tf.TensorSpec([]), tf.TensorSpec([])]
        f = tf.function(lambda x, *others: x + 10.0 * sum(others), input_signature=specs)

        assert f(1.0, 2.0, 3.0).numpy() == 51.0
        with pytest.raises(TypeError, match="Argument 'others' is not compatible with"):
            f(1.0, 2.0, [3.0])

    @pytest.mark.parametrize("size", [None, 2])
    def test_concrete_functions_of_an_input_signature_by_name(self, size):
        specs = [tf.TensorSpec([None]), tf.TensorSpec([])]
        f = tf.function(lambda x, y, z=3.0: x * y * z, input_signature=specs)
        x, y = tf.constant([1.0, 2.0]), tf.constant(2.0)
        given = tf.TensorSpec([size]), tf.TensorSpec([])

        for concrete in (
            f.get_concrete_function(x=given[0], y=given[1]),
            f.get_concrete_function(given[0], y=given[1]),
        ):
            assert concrete.structured_input_signature == (given, {})
            assert concrete(x, y).numpy().tolist() == [6.0, 12.0]
            assert concrete(y=y, x=x).numpy().tolist() == [6.0, 12.0]
        assert f.get_concrete_function().structured_input_signature == (tuple(specs), {})
        with pytest.raises(TypeError, match="Received: 0 of them and 'y'"):
            f.get_concrete_function(y=given[1])

    def test_concrete_functions(self):
        power = tf.function(lambda x, n: x**n)

        cube = power.get_concrete_function(tf.TensorSpec([None]), 3.0)

        assert cube(tf.constant([2.0])).numpy().tolist() == [8.0]
        assert cube.structured_input_signature == ((tf.TensorSpec([None]), 3.0), {})
        with pytest.raises(TypeError, match="expected TensorSpec"):
            cube(tf.constant([[2.0]]))
        with pytest.raises(TypeError, match="an argument is missing"):
            cube()

    def test_arguments_of_a_concrete_function_by_name(self):
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

    def test_ragged_and_sparse_arguments_are_described_by_their_specs(self):
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

    def test_sizes_are_open_where_they_follow_from_open_ones(self):
        f = tf.function(lambda x: [tf.reshape(x, [-1]), x[::2], tf.reduce_sum(x, 0)])

        concrete = f.get_concrete_function(tf.TensorSpec([None, 3]))

        assert concrete.output_shapes == list(map(tf.TensorShape, ([None], [None, 3], [3])))
        assert concrete.output_dtypes == [tf.float32] * 3

    def test_sizes_are_made_up_that_fit_the_weights(self):
        w = tf.Variable(tf.ones([6, 2]))
        f = tf.function(lambda x: x @ w)

        concrete = f.get_concrete_function(tf.TensorSpec([None, None]))

        assert concrete.output_shapes == tf.TensorShape([None, 2])
        assert concrete(tf.ones([4, 6])).shape == (4, 2)
        with pytest.raises(ValueError, match="add"):
            tf.function(lambda x: x + tf.ones([0, 5])).get_concrete_function(
                tf.TensorSpec([None, 4])
            )

    def test_strings_that_are_constants_are_joined(self):
        f = tf.function(lambda: tf.math.add_n("abc") + tf.constant(["x", "y"]))
        for _ in range(3):
            assert f().numpy().tolist() == [b"abcx", b"abcy"]

    def test_strings_stay_arrays_in_every_replay(self):
        f = tf.function(lambda a, b: a + b)

        for _ in range(4):
            assert f(tf.constant("a"), tf.constant("b")).numpy() == b"ab"
        concrete = f.get_concrete_function(tf.TensorSpec([], tf.string), tf.constant("c"))
        assert concrete(tf.constant("b"), tf.constant("c")).numpy() == b"bc"


def test_a_concrete_function_takes_its_fixed_arguments_by_place_too():
    v, w = tf.Variable([2.0, 3.0]), tf.Variable([2.0, 3.0])
    f = tf.function(lambda x, v, n: x * v * n)
    concrete = f.get_concrete_function(tf.TensorSpec([2], tf.float32), v, 3)
    x = tf.constant([1.0, 10.0])

    for found in (concrete(x), concrete(x, v, 3), concrete(x, v=v, n=3)):
        np.testing.assert_array_equal(found, [6.0, 90.0])
    for other in [(x, v, 4), (x, w, 3)]:
        with pytest.raises(TypeError, match="in this ConcreteFunction"):
            concrete(*other)
    for wrong in [(x, v), (x, v, 3, 4)]:
        with pytest.raises(TypeError, match="too many arguments for"):
            concrete(*wrong)


class TestSignaturesInWords:
    """The texts are TensorFlow's."""

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

    def test_a_concrete_function_shows_its_own(self):
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

    def test_a_function_without_recordings_has_none_to_show(self):
        f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([])])

        assert f.pretty_printed_concrete_signatures() == ""
        assert f.input_signature == (tf.TensorSpec([]),)
        assert f.name == "<lambda>"


class TestObjectsThatSayWhatIsAlike:
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

    def test_one_recording_serves_all_that_are_alike(self):
        kind = self.Kind

        class Fruit:
            def __init__(self, taste):
                self.taste = taste

            def __tf_tracing_type__(self, context):
                return kind(self.taste)

        f = tf.function(lambda fruit, x: fruit.taste * x)

        found = [float(f(Fruit(taste), tf.constant(2.0))) for taste in (1.0, 1.0, 3.0, 1.0)]

        assert found == [2.0, 2.0, 6.0, 2.0]
        assert f.experimental_get_tracing_count() == 2

    def test_what_belongs_to_graphs_says_so(self):
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

    def test_a_concrete_function_leaves_variables_as_they_are(self):
        v = tf.Variable(1.0)
        f = tf.function(lambda x: v.assign_add(x))

        concrete = f.get_concrete_function(tf.TensorSpec([]))

        assert v.numpy() == 1.0
        assert [variable is v for variable in concrete.variables] == [True]
        assert concrete(tf.constant(2.0)).numpy() == 3.0

    def test_stablehlo_for_other_programs(self):
        v = tf.Variable([2.0, 3.0])
        f = tf.function(lambda x: (v * x, tf.reduce_sum(x)))
        concrete = f.get_concrete_function(tf.TensorSpec([2]))

        program = concrete.export()

        assert "stablehlo.multiply" in program.mlir_module()
        y, total = program.call(np.array([1.0, 2.0], np.float32))
        assert np.asarray(y).tolist() == [2.0, 6.0]
        assert float(total) == 3.0


class TestScopes:
    def test_inside_and_outside(self):
        found = []
        f = tf.function(lambda: found.append((tf.executing_eagerly(), tf.inside_function())))

        f()

        assert found == [(False, True)]
        assert (tf.executing_eagerly(), tf.inside_function()) == (True, False)

    def test_run_functions_eagerly(self):
        f, runs = counted(lambda x: x + 1.0)
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

    def test_init_scope_is_not_part_of_the_function(self):
        v = tf.Variable(0.0)

        @tf.function
        def f(x):
            with tf.init_scope():
                v.assign_add(1.0)
            return x

        for _ in range(3):
            f(tf.constant(1.0))

        assert v.numpy() == 1.0

    def test_threads_share_recordings(self):
        v = tf.Variable(0.0)
        f, _ = counted(lambda x: v * 0.0 + tf.reduce_sum(tf.sin(x)))
        arrays = [tf.constant(np.full(100, k, np.float32)) for k in range(8)]
        found = {}

        def work(k):
            for _ in range(20):
                found[k] = f(arrays[k]).numpy()

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        np.testing.assert_allclose(
            [found[k] for k in range(8)], [100 * np.sin(k) for k in range(8)], rtol=1e-5
        )


class TestErrors:
    def test_shapes_and_dtypes_as_in_tensorflows_functions(self):
        f = tf.function(lambda x: x + tf.ones([3]))
        with pytest.raises(ValueError, match="incompatible shapes"):
            f(tf.ones([2]))
        g = tf.function(lambda x: x + tf.constant(1))
        with pytest.raises(TypeError, match="was expected to be a float32 tensor"):
            g(tf.constant(1.0))

    def test_a_failing_replay_says_what_is_wrong(self):
        f = tf.function(lambda x: tf.debugging.check_numerics(x, "x"))
        f(tf.constant([1.0]))
        f(tf.constant([1.0]))

        with pytest.raises(tf.errors.InvalidArgumentError, match="x : Tensor had NaN values"):
            f(tf.constant([np.nan]))

    def test_a_tensor_left_behind_says_so(self):
        left = []

        @tf.function
        def f(x):
            left.append(x * 2.0)
            return x

        f(tf.constant(1.0))

        with pytest.raises(TypeError, match="out of scope"):
            _ = left[0] + 1.0
        with pytest.raises(TypeError, match="out of scope"):
            tf.function(lambda: left[0] + 1.0)()
        with pytest.raises(AttributeError, match="out of scope"):
            left[0].numpy()
        assert repr(left[0]) == "<tf.Tensor: out of scope, created inside a tf.function>"

    def test_variables_are_made_once(self):
        class Once:
            v = None

            @tf.function
            def __call__(self, x):
                if self.v is None:
                    self.v = tf.Variable(5.0)
                return self.v * x

        once = Once()
        assert [once(tf.constant(x)).numpy() for x in (2.0, 3.0, 4.0)] == [10.0, 15.0, 20.0]

        f = tf.function(lambda x: tf.Variable(1.0) + x)
        with pytest.raises(ValueError, match="only supports singleton"):
            f(tf.constant(1.0))

    def test_without_jax_the_error_names_what_to_install(self, monkeypatch):
        import sys

        monkeypatch.setitem(sys.modules, "jax", None)
        f = tf.function(lambda x: x, jit_compile=True)

        assert_raises(
            lambda: f(tf.constant(1.0)),
            ImportError,
            "function(jit_compile=True) compiles with XLA, which requires JAX. Install it with: "
            "pip install 'retrograde[xla]'.",
        )


def test_a_default_may_be_a_variable_or_a_tensor():
    v, c = tf.Variable([1.0, 2.0]), tf.constant([3.0, 4.0])

    @tf.function
    def f(x, v=v, c=c):
        return x * v + c

    for _ in range(3):
        np.testing.assert_array_equal(f(2.0), [5.0, 8.0])
        np.testing.assert_array_equal(f(2.0, c), [9.0, 12.0])
