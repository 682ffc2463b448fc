"""Tests the entries of docs/differences.md."""

import gzip
import importlib
import io
import sys
import threading
import zlib

import numpy as np
import pytest
import scipy.special

import retrograde as tf
from retrograde.tensorflow_shim.import_hook import retrograde_as_tensorflow
from retrograde.testing import check_gradients


def gradient(f, *values, dtype=tf.float64):
    xs = [tf.constant(value, dtype) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    gradients = tape.gradient(y, xs)
    return gradients[0].numpy() if len(gradients) == 1 else [g.numpy() for g in gradients]


# Derivatives


@pytest.mark.parametrize(
    "f", [tf.math.log, lambda x: 1 / x, lambda x: x**0.5, lambda x: x * tf.math.log(x)]
)
def test_a_zero_cotangent_stays_zero(f):
    assert gradient(lambda x: tf.where(x > 0, f(x), 0.0), [0.0])[0] == 0.0


def test_a_nonzero_cotangent_can_become_nan():
    assert np.isnan(gradient(tf.norm, [0.0, 0.0])).all()


def test_a_zero_cotangent_of_a_matrix_product_can_become_nan():
    g = gradient(lambda x: tf.where(False, x @ [[np.inf]], 0.0), [[1.0]])
    assert np.isnan(g).all()


def test_cross_entropy_with_labels_that_do_not_sum_to_one():
    labels = tf.constant([[1.0, 1.0]], tf.float64)
    f = lambda x: tf.nn.softmax_cross_entropy_with_logits(labels, x)  # noqa: E731
    np.testing.assert_allclose(gradient(f, [[0.0, 0.0]]), [[0.0, 0.0]], atol=1e-15)
    check_gradients(f, [tf.constant([[0.3, -0.2]], tf.float64)])


def test_a_zero_label_at_a_logit_of_minus_infinity_does_not_contribute():
    y = tf.nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], [[0.0, -np.inf]])
    assert y.numpy().tolist() == [0.0]


def test_cumprod_at_zeros():
    assert gradient(tf.math.cumprod, [2.0, 0.0, 4.0]).tolist() == [1.0, 10.0, 0.0]


SPARSE = {
    "maximum": lambda x: tf.sparse.maximum(x, tf.sparse.eye(2, dtype=tf.float64)).values,
    "minimum": lambda x: tf.sparse.minimum(x, tf.sparse.eye(2, dtype=tf.float64)).values,
    "split": lambda x: tf.sparse.split(x, 2, 0)[0].values,
    "reduce_max": lambda x: tf.sparse.reduce_max(x),
    "reduce_sum": lambda x: tf.sparse.reduce_sum(x, 0, output_is_sparse=True).values,
    "bincount": lambda x: tf.sparse.bincount([0, 1], weights=x.values).values,
}


@pytest.mark.parametrize("f", SPARSE.values(), ids=SPARSE)
def test_sparse_operations_without_a_gradient_in_tensorflow(f):
    indices = [[0, 1], [1, 0]]
    g = gradient(lambda v: f(tf.SparseTensor(indices, v, [2, 2])), [2.0, -3.0])
    assert g.any()


def test_complex_product_of_a_dense_and_a_sparse_matrix():
    sparse = tf.SparseTensor([[0, 1]], tf.constant([1 + 2j]), [2, 2])
    y = tf.sparse.sparse_dense_matmul(tf.constant([[0j, 1 + 1j]]), sparse, adjoint_b=True)
    assert y.numpy().tolist() == [[3 - 1j, 0j]]


@pytest.mark.parametrize(
    "f",
    [
        tf.math.cumprod,
        tf.reduce_prod,
        tf.nn.silu,
        tf.math.reduce_euclidean_norm,
        lambda z: tf.math.squared_difference(z, 1j),
        lambda z: tf.nn.moments(z, [0])[1],
        lambda z: tf.math.segment_prod(z, [0, 0, 1]),
        lambda z: tf.math.xlogy(z, z + 1),
        lambda z: tf.math.xlog1py(z, z),
        lambda z: tf.math.xdivy(z, z + 1),
        lambda z: tf.math.multiply_no_nan(z, z + 1),
    ],
)
def test_products_and_logarithms_of_complex_numbers(f):
    def parts(real, imaginary):
        y = f(tf.complex(real, imaginary))
        return tf.math.real(y), tf.math.imag(y)

    check_gradients(parts, [np.array([0.3, 0.5, 0.7]), np.array([0.4, -0.2, 0.6])])


def test_the_second_derivative_of_spence_at_one():
    x = tf.constant(1.0, tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.math.special.spence(x)
        first = inner.gradient(y, x)
    np.testing.assert_allclose(outer.gradient(first, x), 0.5)


def test_rgb_to_hsv_in_half_precision():
    color = [[[0.3, 0.5, 0.7]]]
    float16_gradient, float64_gradient = (
        gradient(tf.image.rgb_to_hsv, color, dtype=d) for d in ("float16", "float64")
    )
    np.testing.assert_allclose(float16_gradient, float64_gradient, rtol=1e-2, atol=1e-2)


def test_weighted_cross_entropy_at_a_logit_of_zero():
    f = lambda x: tf.nn.weighted_cross_entropy_with_logits([0.3], x, 2.0)  # noqa: E731
    expected = (1 - 0.3) * 0.5 - 2.0 * 0.3 * 0.5
    np.testing.assert_allclose(gradient(f, [0.0], dtype=tf.float32), [expected], rtol=1e-6)


def test_the_second_derivative_of_moments():
    x = tf.constant([1.0, 2.0, 6.0], tf.float64)
    check_gradients(lambda x: tf.nn.moments(x, [0])[1], [x], order=2)


def test_additional_derivatives():
    x = tf.constant([2.5], tf.float64)
    check_gradients(tf.recompute_grad(lambda x: x**3), [x], order=2)
    check_gradients(tf.nn.softsign, [x], order=2)
    assert gradient(lambda x: tf.truncatemod(x, 2.0), [2.5]).tolist() == [1.0]


def test_ignored_indices_do_not_affect_the_gradient():
    gathered = lambda x: tf.gather_nd(-x, [[0], [5]], bad_indices_policy="IGNORE")  # noqa: E731
    scattered = lambda x: tf.scatter_nd(  # noqa: E731
        [[0], [5]], x, [3], bad_indices_policy="IGNORE"
    )
    assert gradient(gathered, [1.0, 2.0]).tolist() == [-1.0, 0.0]
    assert gradient(scattered, [1.0, 2.0]).tolist() == [1.0, 0.0]


def test_forward_mode_uses_custom_gradients():
    @tf.custom_gradient
    def f(x):
        return x * x, lambda upstream: upstream * 7.0

    x = tf.constant(2.0)
    with tf.autodiff.ForwardAccumulator(x, 3.0) as forward:
        y, z = f(x), tf.recompute_grad(tf.sin)(x)

    assert float(forward.jvp(y)) == 21.0
    np.testing.assert_allclose(forward.jvp(z), 3 * np.cos(2.0), rtol=1e-6)


def test_gamma_samples_have_second_derivatives():
    draw = lambda a: tf.random.stateless_gamma([3], [1, 2], a, dtype=tf.float64)  # noqa: E731
    second = gradient(lambda a: _first(draw, a), 2.5)
    u = scipy.special.gammainc(2.5, draw(tf.constant(2.5, tf.float64)).numpy())
    sums = [scipy.special.gammaincinv(2.5 + h, u).sum() for h in (1e-3, 0, -1e-3)]
    np.testing.assert_allclose(gradient(draw, 2.5), (sums[0] - sums[2]) / 2e-3, rtol=1e-6)
    np.testing.assert_allclose(second, (sums[0] - 2 * sums[1] + sums[2]) / 1e-6, rtol=1e-3)


def _first(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def test_truncated_normal_samples_keep_their_quantile_between_fixed_bounds():
    draw = tf.random.stateless_parameterized_truncated_normal
    dy_dmean = gradient(lambda m: draw([4], [1, 2], m, 10.0, -1e-3, 1e-3), 0.0, dtype=tf.float32)
    assert abs(dy_dmean) < 1e-3


def test_ctc_loss():
    x = tf.constant(np.linspace(-1, 1, 30).reshape(5, 2, 3))
    sparse = tf.sparse.from_dense([[1, 2], [2, 0]])
    check_gradients(lambda x: tf.nn.ctc_loss(sparse, x, None, [5, 4], blank_index=0), [x], order=2)
    y = tf.nn.ctc_loss([[1, 2], [2, 2]], x, [2, 2], [1, 2])
    assert y.numpy().tolist() == [np.inf, np.inf]
    blanks = -tf.reduce_sum(tf.nn.log_softmax(x)[:, :, 0], 0)
    y = tf.nn.ctc_loss(tf.zeros([2, 0], tf.int32), x, [0, 0], [5, 5])
    np.testing.assert_allclose(y, blanks, rtol=1e-12)


def test_isotonic_regression_of_a_vector():
    f = lambda x: tf.nn.isotonic_regression(x)[0]  # noqa: E731
    assert gradient(f, [1.0, 2.0, 0.0]).tolist() == [1.0, 1.0, 1.0]


def test_shuffled_rows_have_a_gradient():
    f = lambda x: tf.random.experimental.stateless_shuffle(x, [1, 2]) * 2.0  # noqa: E731
    x = tf.constant([1.0, 2.0, 3.0])
    assert tf.convert_to_tensor(_first(f, x)).numpy().tolist() == [2.0, 2.0, 2.0]


def test_learned_unigrams_are_remembered_for_each_seed():
    def expected_counts(seed):
        sampler = tf.random.learned_unigram_candidate_sampler
        return sampler([[1]], 1, 2, False, 2, seed=seed).true_expected_count.numpy().item()

    assert [
        expected_counts(None),
        expected_counts(None),
        expected_counts(991),
        expected_counts(992),
    ] == [1.0] * 4
    assert expected_counts(991) > 1.0


def test_accidental_hits_of_candidates_drawn_twice():
    candidates = tf.constant([2, 5, 2], tf.int64)
    assert tf.nn.compute_accidental_hits([[2]], candidates, 1)[1].numpy().tolist() == [0, 2]


@pytest.mark.parametrize("loss", [tf.nn.nce_loss, tf.nn.sampled_softmax_loss])
def test_sampled_losses_in_float64(loss):
    rng = np.random.default_rng(1)
    w, b, x = rng.normal(size=(4, 2)), rng.normal(size=4), rng.normal(size=(1, 2))
    assert loss(w, b, [[1]], x, 2, 4).dtype == tf.float64


def test_py_function_is_transparent_and_checks_the_number_of_results():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.py_function(lambda x: x * v, [3.0], tf.float32)
    assert float(tape.gradient(y, v)) == 3.0
    cube = lambda x: tf.py_function(lambda q: q**3, [x], tf.float64)  # noqa: E731
    check_gradients(cube, [tf.constant(2.0, tf.float64)], order=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="returned 2 values"):
        tf.py_function(lambda: (1.0, 2.0), [], tf.float32)


def test_image_adjustments_have_derivatives():
    colors = [[[0.2, 0.5, 0.9], [0.8, 0.3, 0.4]]]
    functions = {
        "adjust_contrast": lambda x: tf.image.adjust_contrast(x, 2.0),
        "adjust_hue": lambda x: tf.image.adjust_hue(x, 0.2),
        "adjust_saturation": lambda x: tf.image.adjust_saturation(x, 0.5),
        "hsv_to_rgb": tf.image.hsv_to_rgb,
        "area": lambda x: tf.image.resize(x, [2, 1], "area"),
        "bicubic": lambda x: tf.image.resize(tf.cast(x, tf.float16), [2, 1], "bicubic"),
        "glimpse": lambda x: tf.image.extract_glimpse(x[None], [1, 2], [[0.0, 0.0]]),
    }
    for name, f in functions.items():
        g = gradient(lambda x, f=f: f(x)[..., 0], colors, dtype=tf.float32)
        assert np.any(g != 0), name


def test_crops_have_second_derivatives_with_respect_to_boxes():
    image = tf.reshape(tf.range(16.0) ** 2, [1, 4, 4, 1])

    def gradient_of_boxes(boxes):
        with tf.GradientTape() as tape:
            tape.watch(boxes)
            y = tf.image.crop_and_resize(image, boxes, [0], [2, 2])
        return tape.gradient(y, boxes)

    assert np.all(gradient(gradient_of_boxes, [[0.1, 0.2, 0.7, 0.9]], dtype=tf.float32) != 0)


def test_derivatives_of_bessel_functions_at_zero():
    assert gradient(tf.math.bessel_i1, [0.0]).tolist() == [0.5]
    for f in (tf.math.bessel_i1, tf.math.special.bessel_j1):
        check_gradients(f, [tf.constant([0.0], tf.float64)], order=2)


def test_bincount_has_a_gradient_with_respect_to_weights():
    assert gradient(lambda w: tf.math.bincount([1, 1], weights=w), [2.0, 3.0]).tolist() == [1, 1]


def test_igamma_has_second_derivatives_with_respect_to_its_first_argument():
    x = tf.constant([1.5], tf.float64)
    check_gradients(lambda a: tf.math.igamma(a, x), [tf.constant([2.0], tf.float64)], order=2)


COMPLEX = np.array([[3.0 + 1j, 0.4], [0.2 - 0.5j, 2.0]])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tf.math.real(tf.linalg.det(x) * (1 - 2j)),
        lambda x: tf.math.real(tf.linalg.sqrtm(x)),
        lambda x: tf.math.imag(tf.linalg.tridiagonal_solve(x, x, diagonals_format="matrix")),
        lambda x: tf.math.imag(tf.linalg.slogdet(x).sign),
        lambda x: tf.math.real(tf.linalg.logm(x)),
        lambda x: tf.math.real(tf.linalg.lstsq(x, x[:, :1])),
    ],
)
def test_derivatives_of_complex_linear_algebra(f):
    def from_parts(x, y):
        return f(tf.complex(x, y))

    check_gradients(from_parts, [tf.constant(COMPLEX.real), tf.constant(COMPLEX.imag)])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tf.linalg.eigh_tridiagonal(x[0], x[1, 1:]),
        lambda x: tf.linalg.lu(x).lu,
        lambda x: tf.linalg.svd(x[:, :1], full_matrices=True)[1][:, :1] ** 2,
        lambda x: tf.linalg.qr(x[:, :1], full_matrices=True).q[:, :1],
        lambda x: tf.linalg.lstsq(x, x[:, :1], fast=False),
    ],
)
def test_derivatives_of_real_linear_algebra(f):
    check_gradients(
        f, [tf.constant([[3.0, 0.4, 1.0], [0.2, 2.0, 0.5], [0.1, 0.7, 1.0]], tf.float64)]
    )


def test_the_determinant_of_a_singular_matrix_has_a_gradient():
    np.testing.assert_allclose(
        gradient(tf.linalg.det, [[1.0, 2.0], [2.0, 4.0]]), [[4.0, -2.0], [-2.0, 1.0]]
    )


# The tape


def run_with_tape(f, value):
    x = tf.constant(value)
    tape = tf.GradientTape()
    tape.watch(x)  # TensorFlow does not allow this before the block
    with tape:
        y = f(x)
    return tape, x, y


@pytest.mark.parametrize("f", [tf.negative, tf.grad_pass_through(lambda z: z)])
def test_gradients_are_dense_where_tensorflow_returns_indexed_slices(f):
    v = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape() as tape:
        y = tf.gather(f(v), [1, 1])

    assert isinstance(tape.gradient(y, v), tf.Tensor)


def test_optimizers_sum_repeated_rows_before_squaring():
    v = tf.Variable([1.0, 1.0])
    rows = tf.IndexedSlices(tf.constant([1.0, 3.0]), tf.constant([0, 0]), tf.constant([2]))
    tf.keras.optimizers.RMSprop(0.1, rho=0.0).apply_gradients([(rows, v)])
    np.testing.assert_allclose(v, [0.9, 1.0], rtol=1e-5)  # 0.1 * (1 + 3) / sqrt((1 + 3)**2)


def test_watching_before_the_block():
    tape, x, y = run_with_tape(tf.square, 3.0)
    assert float(tape.gradient(y, x)) == 6.0


def test_output_gradients_as_a_list_for_one_target():
    tape, x, y = run_with_tape(tf.square, [1.0, 2.0])
    assert tape.gradient(y, x, output_gradients=[1.0, 10.0]).numpy().tolist() == [2.0, 40.0]


def test_each_target_needs_an_output_gradient_or_none():
    tape, x, y = run_with_tape(lambda x: (x * x, 5.0 * x), 3.0)
    with pytest.raises(ValueError, match="received 1 output_gradients for 2 targets"):
        tape.gradient(y, x, output_gradients=[1.0])
    assert float(tape.gradient(y, x, output_gradients=[None, 100.0])) == 506.0


def test_a_failing_gradient_function_uses_up_the_tape():
    @tf.custom_gradient
    def f(x):
        def grad(_):
            raise ZeroDivisionError

        return x * 1.0, grad

    tape, x, y = run_with_tape(f, 1.0)
    with pytest.raises(ZeroDivisionError):
        tape.gradient(y, x)
    with pytest.raises(RuntimeError, match=r"was used at .*test_differences\.py"):
        tape.gradient(y, x)


# Datasets


def test_dataset_functions_run_as_python():
    calls = []
    dataset = tf.data.Dataset.range(3).map(lambda x: calls.append(int(x)) or (1 if x > 1 else 0))
    assert calls == []
    assert [int(x) for x in dataset] == [0, 0, 1]
    assert calls == [0, 1, 2]
    assert dataset.element_spec == tf.TensorSpec([], tf.int32)
    assert calls == [0, 1, 2, 0, 1]


def test_exceptions_in_generators_are_raised_unchanged():
    dataset = tf.data.Dataset.from_generator(lambda: iter([1 // 0]), tf.int32)
    with pytest.raises(ZeroDivisionError):
        next(iter(dataset))


def test_random_numbers_in_a_parallel_map_differ_in_each_epoch():
    dataset = tf.data.Dataset.range(5).map(lambda _: tf.random.uniform([]), 2)
    first, second = ([float(x) for x in dataset] for _ in range(2))
    assert set(first).isdisjoint(second)


def test_an_abandoned_iteration_releases_its_lock(tmp_path):
    cached = tf.data.Dataset.range(3).cache(str(tmp_path / "cache"))
    next(iter(cached))
    assert list(tmp_path.iterdir()) == []
    assert [int(x) for x in cached] == [0, 1, 2]
    assert (tmp_path / "cache").is_dir()


def test_save_does_not_accept_checkpoint_args(tmp_path):
    with pytest.raises(NotImplementedError):
        tf.data.Dataset.range(3).save(tmp_path / "data", checkpoint_args={})


@pytest.mark.parametrize(("step", "expected_calls"), [("map", []), ("filter", [0, 1])])
def test_restoring_an_iterator_recomputes_only_steps_that_depend_on_elements(
    step, expected_calls, tmp_path
):
    calls = []
    record = lambda x: calls.append(int(x)) or (x if step == "map" else x >= 0)  # noqa: E731
    dataset = getattr(tf.data.Dataset.range(9), step)(record)
    iterator = iter(dataset)
    next(iterator), next(iterator)
    checkpoint = tf.train.Checkpoint(iterator=iterator)
    path = checkpoint.write(tmp_path / "a")
    calls.clear()
    checkpoint.read(path)
    assert calls == expected_calls


def test_elements_are_not_tensor_arrays():
    with pytest.raises(ValueError, match="unsupported type"):
        tf.data.Dataset.from_tensor_slices([tf.TensorArray(tf.int32, 1)])


def test_functions_of_datasets_are_called_when_elements_are_produced():
    dataset = tf.data.Dataset.range(2).interleave(lambda x: [x])

    with pytest.raises(TypeError, match="must return a"):
        list(dataset)


def test_numpy_functions_of_datasets_raise_their_own_exceptions():
    def fail(_):
        raise KeyError("missing")

    dataset = tf.data.Dataset.range(2).map(lambda x: tf.numpy_function(fail, [x], tf.int64))

    with pytest.raises(KeyError, match="missing"):
        list(dataset)


def test_rebatch_refuses_sizes_that_never_end():
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least one size"):
        tf.data.Dataset.range(4).batch(2).rebatch([0])


# Checkpoints


def test_a_checkpoint_is_one_file(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    path = checkpoint.save(tmp_path / "ckpt")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint", "ckpt-1.safetensors"]
    checkpoint.restore(path + ".safetensors").assert_consumed()


def test_no_value_is_restored_if_one_does_not_match(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(1.0)).write(tmp_path / "a")
    a = tf.Variable(0.0)
    with pytest.raises(ValueError, match="incompatible"):
        tf.train.Checkpoint(a=a, b=tf.Variable([0.0])).read(path)
    assert float(a) == 0.0


def test_an_edited_checkpoint_file_raises(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    for _ in range(2):
        checkpoint.save(tmp_path / "ckpt")
    record = tmp_path / "checkpoint"
    record.write_text(record.read_text().replace("ckpt-2", "ckpt-1"))
    for call in (
        lambda: tf.train.latest_checkpoint(tmp_path),
        lambda: tf.train.get_checkpoint_state(tmp_path),
        lambda: tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=1),
    ):
        with pytest.raises(tf.errors.DataLossError, match="checksum"):
            call()


def test_a_failed_save_is_not_counted(tmp_path):
    (tmp_path / "file").write_text("")
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    with pytest.raises(tf.errors.FailedPreconditionError, match="file"):
        checkpoint.save(tmp_path / "file" / "ckpt")
    assert int(checkpoint.save_counter) == 0


# Summaries


@pytest.mark.parametrize(
    ("compression", "compress"), [("GZIP", gzip.compress), ("ZLIB", zlib.compress)]
)
def test_truncated_compressed_data_raises_data_loss_error(compression, compress, tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(compress(b"some\nlines\n")[:-1])

    for read in (
        lambda: tf.io.decode_compressed(path.read_bytes(), compression),
        lambda: list(tf.data.TextLineDataset(str(path), compression)),
        lambda: list(tf.data.FixedLengthRecordDataset(str(path), 11, compression_type=compression)),
    ):
        with pytest.raises(tf.errors.DataLossError, match="the compressed data is truncated"):
            read()


def test_trace_export_does_not_write_files(tmp_path):
    with tf.summary.create_file_writer(tmp_path).as_default():
        (file,) = tmp_path.iterdir()
        before = file.stat().st_size
        tf.summary.trace_on(graph=True)
        tf.summary.trace_export("graph", step=1)
    assert file.stat().st_size == before


# Tensors and variables


def test_assignments_return_the_variable_itself():
    v = tf.Variable([1.0])
    assert v.assign([2.0]) is v
    assert v.assign_add([2.0]) is v
    assert v.assign_sub([2.0]) is v
    assert v.scatter_add(tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))) is v


def test_operation_names_are_ignored():
    assert float(tf.add(1.0, 2.0, name="anything")) == 3.0


@pytest.mark.parametrize("f", [lambda x: x * 1.5, lambda x: 1.5 + x, lambda x: x - 0.5])
def test_a_float_combined_with_an_integer_tensor(f):
    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.constant([1, 2]))


def test_constants_that_raise_in_tensorflow():
    assert tf.constant([1, 1j]).numpy().tolist() == [1, 1j]
    assert tf.constant(np.array([1.0, 2.0], object)).numpy().tolist() == [1.0, 2.0]
    assert gradient(lambda x: tf.constant([x, 2.0 * x]), 1.0, dtype=tf.float32) == 3.0
    with pytest.raises(TypeError):
        tf.constant(np.array([1j]), tf.float32)


def test_constants_have_full_precision_in_float64():
    assert tf.nn.leaky_relu(np.float64(-1)).numpy() == -0.2
    half = tf.constant(0.5, tf.float64)
    np.testing.assert_allclose(
        tf.nn.gelu(half, approximate=True),
        0.25 * (1 + np.tanh(np.sqrt(2 / np.pi) * (0.5 + 0.044715 * 0.5**3))),
        rtol=1e-14,
    )


def test_half_precision_sums_accumulate_in_float32():
    x = tf.fill([4096], tf.constant(1.0, tf.float16) / 3)
    np.testing.assert_allclose(float(tf.reduce_sum(x)), 4096 / 3, rtol=1e-3)


def test_tensors_have_no_attributes_of_their_own():
    with pytest.raises(AttributeError):
        tf.constant(1.0).tag = 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python classes have no buffers before 3.12")
def test_tensors_have_a_buffer():
    assert memoryview(tf.constant([1.0, 2.0])).nbytes == 8


# Operations


def test_exclusive_predicates_are_checked():
    pairs = [(tf.constant(True), lambda: 1)] * 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 of 2 predicates are true"):
        tf.case(pairs, exclusive=True)


def test_print_supports_complex_numbers_and_any_stream():
    stream = io.StringIO()
    tf.print(tf.constant([1 + 2j]), output_stream=stream)
    assert stream.getvalue() == "[(1+2j)]\n"


def test_check_numerics_reports_the_name_of_the_primitive():
    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(tf.errors.InvalidArgumentError, match='op "divide"'):
            _ = tf.constant(1.0) / 0.0
    finally:
        tf.debugging.disable_check_numerics()


def test_each_thread_has_its_own_random_stream():
    def draw(with_other_thread):
        tf.random.set_seed(1)
        first = tf.random.uniform([]).numpy()
        if with_other_thread:
            other = threading.Thread(target=lambda: tf.random.uniform([100]))
            other.start()
            other.join()
        return [first, tf.random.uniform([]).numpy()]

    assert draw(with_other_thread=False) == draw(with_other_thread=True)


def test_quantized_dtypes_are_names_only():
    assert tf.qint8 == "qint8"
    with pytest.raises(TypeError):
        tf.constant(1, tf.qint8)


def test_top_k_is_sorted_and_approx_min_k_is_exact():
    assert tf.math.top_k([1.0, 3.0, 2.0], 2, sorted=False).values.numpy().tolist() == [3.0, 2.0]
    y = tf.math.approx_min_k([[1.0, 9.0], [3.0, 7.0]], 1, reduction_dimension=0)
    assert y.values.numpy().tolist() == [[1.0, 7.0]]


def test_confusion_matrix_of_labels_of_rank_2_raises():
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.math.confusion_matrix([[1, 0]], [[1, 1]])


def test_nan_is_sorted_last_and_propagates_through_maxima():
    assert np.isnan(tf.sort([np.nan, 1.0]).numpy()[-1])
    assert np.isnan(tf.tensor_scatter_nd_max([1.0], [[0]], [np.nan]).numpy()[0])
    assert np.isnan(tf.math.segment_max([np.nan, 1.0], [0, 0]).numpy()[0])
    assert tf.math.top_k([1.0, np.nan, 2.0], 2).indices.numpy().tolist() == [1, 2]


def test_eigenvectors_have_lapacks_signs():
    x = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_array_equal(tf.linalg.eigh(x)[1].numpy(), np.linalg.eigh(x)[1])
    np.testing.assert_array_equal(tf.linalg.svd(x)[1].numpy(), np.linalg.svd(x)[0])
    np.testing.assert_array_equal(tf.linalg.eig(x)[0].numpy(), np.linalg.eig(x)[0])


def test_linear_operators_can_be_any_object_with_matvec():
    class Doubled:
        is_self_adjoint = is_positive_definite = True

        def matvec(self, x):
            return 2 * x

    solution = tf.linalg.experimental.conjugate_gradient(Doubled(), tf.constant([2.0, 4.0]))
    np.testing.assert_allclose(solution.x, [1.0, 2.0])
    assert tf.linalg.pinv(COMPLEX).shape == (2, 2)
    with pytest.raises(tf.errors.UnimplementedError):
        tf.linalg.tridiagonal_solve(tf.zeros([3, 3]), tf.ones([3]), perturb_singular=True)


# Signals


def test_3d_transforms_have_gradients():
    f = lambda x: tf.signal.irfft3d(tf.signal.rfft3d(x) ** 2)  # noqa: E731
    check_gradients(f, [tf.constant(np.sin(np.arange(12.0)).reshape(1, 3, 4))])


def test_a_transform_that_truncates_its_input_has_a_gradient():
    f = lambda x: tf.abs(tf.signal.rfft(x, [4]))  # noqa: E731
    check_gradients(f, [tf.constant(np.sin(np.arange(6.0)))])


def test_transforms_along_any_axes():
    x = np.sin(np.arange(12.0)).reshape(3, 4)
    np.testing.assert_allclose(tf.signal.rfftnd(x), np.fft.rfftn(x), atol=1e-5)
    np.testing.assert_allclose(tf.signal.rfftnd(x, axes=[0]), np.fft.rfft(x, axis=0), atol=1e-5)


def test_a_transform_of_length_0_is_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.signal.rfft([1.0], [0])


def test_mismatched_axes_raise_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.gather([[1, 2], [3, 4]], [[0], [1]], axis=0, batch_dims=1)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.tensordot(tf.ones([2, 3]), tf.ones([3, 2]), 2)


def test_saturated_casts_of_infinity():
    low, high = tf.saturate_cast([-np.inf, np.inf], tf.int64).numpy()
    assert low == -(2**63)
    assert high > 2**62


def test_nonzero_numbers_of_ragged_tensors_are_true():
    x = tf.ragged.constant([[2, -2], [0]])
    assert tf.reduce_any(x, axis=1).numpy().tolist() == [True, False]


def test_ragged_tensors():
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    one = tf.ragged.constant([[1.0], [1.0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="equal row lengths"):
        x * one
    with pytest.raises(ValueError, match="to_tensor"):
        tf.shape(x)
    with pytest.raises(ValueError, match="only rows can be gathered"):
        tf.gather(x, [0], axis=1)
    with tf.GradientTape() as tape:
        tape.watch(x)
    zeros = tape.gradient(tf.constant(1.0), x, unconnected_gradients="zero")
    assert zeros.to_list() == [[0.0, 0.0], [0.0]]


def test_the_added_alpha_channel_of_a_png_is_opaque():
    four_bit_grayscale = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000003000000010400000000fb7ba6690000000b494441"
        "54789c63902f000000b10090b457a2150000000049454e44ae426082"
    )
    image = tf.io.decode_png(four_bit_grayscale, channels=4)

    assert image.numpy().tolist() == [[[17, 17, 17, 255], [255] * 4, [119, 119, 119, 255]]]


def test_regular_expressions_are_pythons():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid pattern"):
        tf.strings.regex_replace("a", r"\p{Greek}", "")
    assert tf.strings.regex_replace("ab1", "[[:alpha:]]", "-").numpy() == b"--1"


def test_unicode_script_is_missing():
    assert not hasattr(tf.strings, "unicode_script")


def test_gradient_of_avg_pool_with_windows_larger_than_the_input():
    x = np.array([[[1.0], [2.0], [4.0]]])
    check_gradients(lambda x: tf.nn.avg_pool1d(x, 5, 1, "SAME") ** 2, [x])


def test_generator_states_differ_from_tensorflow():
    assert tf.random.Generator.from_seed(1).state.numpy().tolist() != [1, 0, 0]


def test_only_the_first_maximum_of_a_volume_gets_the_gradient():
    g = gradient(lambda x: tf.nn.max_pool3d(x, 2, 1, "VALID"), np.ones((1, 2, 2, 2, 1)))
    assert g.ravel().tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


def test_convolutions_and_pooling_without_a_tensorflow_kernel():
    x = np.arange(25.0).reshape(1, 1, 5, 5)
    y = tf.nn.conv2d(x, np.ones((2, 2, 1, 1)), 2, "VALID", "NCHW", dilations=2)
    np.testing.assert_array_equal(y, [[[[24, 32], [64, 72]]]])
    assert tf.nn.max_pool3d(x[..., None], 1, 1, "SAME").dtype == tf.float64
    strided = tf.nn.convolution(x[0, 0, None, :, :1], np.ones((2, 1, 1)), 2, "VALID", dilations=2)
    np.testing.assert_array_equal(strided, [[[10], [30]]])


def test_pooling_propagates_nonfinite_values():
    y = tf.nn.max_pool1d([[[np.nan], [1.0], [-np.inf], [-np.inf]]], 2, 2, "VALID")
    np.testing.assert_array_equal(y, [[[np.nan], [-np.inf]]])


def test_truncated_jpeg_files_and_ignored_encoder_options():
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    file = tf.io.encode_jpeg(image)
    assert tf.io.encode_jpeg(image, progressive=True, optimize_size=True).numpy() == file.numpy()
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.decode_jpeg(file.numpy()[:-9], try_recover_truncated=True, acceptable_fraction=0.1)


def test_numpy_functions_accept_numpys_arguments():
    tnp = tf.experimental.numpy
    assert tnp.sin(1).dtype == tnp.angle([-1.0]).dtype == tnp.var([1, 2], dtype=float).dtype
    assert tnp.add(tf.constant(1, tf.bfloat16), 0.5).dtype == tf.bfloat16
    assert tnp.around([125, 15], -1).numpy().tolist() == [120, 20]
    assert tnp.var([1, 3], ddof=1).numpy() == 2.0
    assert tnp.linspace(0, 5, 3, dtype=int).numpy().tolist() == [0, 2, 5]
    assert tnp.isinf([1, 2]).numpy().tolist() == [False, False]
    assert gradient(tnp.logaddexp, [1.0], [1.0])[0].tolist() == [0.5]
    assert gradient(tnp.sinc, [0.0]).tolist() == [0.0]


@pytest.mark.parametrize("mode", ["legacy", "all"])
def test_numpy_behavior_applies_to_operators_and_not_to_functions(mode, numpy_behavior):
    numpy_behavior(dtype_conversion_mode=mode)
    x, y = tf.constant(1), tf.constant(1.5, tf.float64)
    assert (x + y).dtype == tf.float64
    assert bool(x < y)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.add(x, y)


# Functions


def test_tensors_have_values_inside_a_function():
    @tf.function
    def f(n):
        y = 0
        for _ in tf.range(n):
            y = y + 0.5
        return y + n.numpy()

    assert [float(f(tf.constant(n))) for n in (3, 2, 3)] == [4.5, 3.0, 4.5]


def test_shapes_are_concrete_inside_a_function():
    shapes = []

    @tf.function(reduce_retracing=True)
    def f(x):
        shapes.append(x.shape.as_list())
        return x

    for size in (1, 2, 1):
        f(tf.ones([size]))
    assert shapes == [[1], [2]]


def test_a_branch_not_taken_is_not_part_of_the_trace():
    f = tf.function(lambda x, w: tf.cond(x > 0.0, lambda: x * x, lambda: w * w))
    x, w = tf.constant(3.0), tf.constant(5.0)
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = f(x, w)
    g = tape.gradient(y, [x, w])
    assert (g[0].numpy(), g[1]) == (6.0, None)


def test_an_inner_function_is_part_of_the_outer_trace():
    inner = tf.function(lambda x: tf.sin(x), jit_compile=True)
    outer = tf.function(lambda x: inner(x) + 1.0)
    outer(tf.constant(1.0))
    assert not outer.recordings()[0].compiled
    assert "np.sin" in outer.source()


def test_a_format_specification_reads_the_value():
    f = tf.function(lambda x: tf.constant(f"{x:.1f}"))

    assert f(tf.constant(1.25)).numpy() == b"1.2"
    assert f(tf.constant(2.5)).numpy() == b"2.5"


def test_variables_are_created_in_the_first_call_only():
    @tf.function
    def f():
        v = tf.Variable(3, experimental_enable_variable_lifting=False)
        return v.assign_add(5)

    with pytest.raises(ValueError, match="singleton"):
        [f() for _ in range(2)]


# Programs


def test_versions():
    with retrograde_as_tensorflow():
        tensorflow = importlib.import_module("tensorflow")
        assert tensorflow.__version__ == tf.version.VERSION != tf.__version__


def test_autograph_has_no_effect():
    def f(x):
        return x

    assert tf.autograph.experimental.do_not_convert(f) is f
    assert not hasattr(tf.autograph, "to_code")
    assert not hasattr(tf.autograph, "to_graph")


def test_only_local_files_are_supported(tmp_path):
    for name in "cab":
        (tmp_path / name).touch()
    assert tf.io.gfile.get_registered_schemes() == [""]
    assert tf.io.gfile.glob(f"{tmp_path}/*") == [str(tmp_path / name) for name in "abc"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="'ZLIB', 'GZIP' or ''"):
        tf.io.decode_compressed(b"", "ZSTD")


def test_strategies_have_one_replica_for_each_device():
    dataset = tf.data.Dataset.range(2)
    for strategy in [tf.distribute.MirroredStrategy(), tf.distribute.OneDeviceStrategy("/cpu:0")]:
        assert strategy.num_replicas_in_sync == 1
        distributed = strategy.experimental_distribute_dataset(dataset)
        assert [int(x) for x in distributed] == [0, 1]
    with pytest.raises(ValueError, match="this process has the devices"):
        tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])
    for find_tpus in (tf.distribute.cluster_resolver.TPUClusterResolver, tf.distribute.TPUStrategy):
        with pytest.raises(ValueError, match="JAX finds no TPU"):
            find_tpus()
