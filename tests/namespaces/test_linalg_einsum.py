"""tf.einsum: values, the order of contraction and errors."""

import itertools

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.tape import GradientTape
from retrograde.errors import InvalidArgumentError
from retrograde.linalg._einsum import _contraction_order
from tests.namespaces.helpers import NUMERIC, assert_gradients, assert_raises, of_dtype

SIZES = {"a": 2, "b": 3, "c": 1, "d": 4, "e": 2}


def random_equation(seed):
    """Returns a random equation with one to four inputs, with repeated labels, and its inputs."""
    rng = np.random.default_rng(seed)
    terms = [
        "".join(rng.choice(list(SIZES), rng.integers(0, 4))) for _ in range(rng.integers(1, 5))
    ]
    labels = sorted(set("".join(terms)))
    kept = rng.permutation([label for label in labels if rng.random() < 0.5])
    arrays = [rng.normal(size=[SIZES[label] for label in term]) for term in terms]
    return f"{','.join(terms)}->{''.join(kept)}", arrays


@pytest.mark.parametrize("seed", range(60))
def test_random_equations_agree_with_numpy(seed):
    equation, arrays = random_equation(seed)

    actual = tf.einsum(equation, *arrays).numpy()

    np.testing.assert_allclose(actual, np.einsum(equation, *arrays), rtol=1e-12, atol=1e-13)
    if seed < 25:
        assert_gradients(lambda *xs: tf.einsum(equation, *xs), *arrays, rtol=1e-6)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("...ij,...jk->...ik", ((3, 1, 2, 2), (4, 2, 3))),
        ("...ij,jk->...ik", ((3, 2, 2), (2, 3))),
        ("i...,j...->ij...", ((2, 3, 1), (2, 1, 4))),
        ("...,...->...", ((2, 1), (3,))),
        ("i...i->...", ((2, 3, 2),)),
        ("...i->i...", ((2, 3, 4),)),
        ("...i,...i", ((1, 3), (2, 3))),
        ("b...,b->b...", ((2,), (2,))),
        ("...i,...j,...->...ij", ((2, 1, 2), (3, 3), (2, 1))),
        ("ij,jk", ((2, 3), (3, 2))),
        ("ba", ((2, 3),)),
        ("ij,jk,kl,lm->im", ((5, 2), (2, 6), (6, 1), (1, 4))),
        ("ij,ji->", ((0, 3), (3, 0))),
    ],
)
def test_ellipses_and_implicit_results_agree_with_numpy(equation, shapes):
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=shape) for shape in shapes]

    np.testing.assert_allclose(
        tf.einsum(equation, *arrays).numpy(), np.einsum(equation, *arrays), rtol=1e-12, atol=1e-14
    )
    assert_gradients(lambda *xs: tf.einsum(equation, *xs), *arrays)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_dtypes_are_preserved(dtype):
    x = of_dtype([[1, 2], [3, 4]], dtype)

    y = tf.einsum("ij,jk->ik", x, x)

    assert y.dtype == dtype
    np.testing.assert_array_equal(y.numpy().astype(complex), [[7, 10], [15, 22]])


def test_numbers_and_lists_are_cast_to_the_dtype_of_tensors():
    x = tf.constant([1.0, 2.0], tf.float64)

    assert tf.einsum("i,i->", [3, 4], x).numpy() == 11.0
    assert tf.einsum(",i->i", 2, x).dtype == tf.float64


def test_a_trivial_equation_returns_a_new_tensor():
    x = tf.Variable([[1.0, 2.0]])

    y = tf.einsum("ij->ij", x)
    x.assign([[0.0, 0.0]])

    assert y.numpy().tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("equation", "shapes", "expected"),
    [
        ("ij,jk->ik", ((2, 3), (3, 4)), ["matmul"]),
        ("bid,bjd->bij", ((2, 3, 4), (2, 5, 4)), ["matmul"]),
        ("bji,bjk->bik", ((2, 3, 4), (2, 3, 5)), ["matmul"]),
        ("abc,cd->abd", ((2, 3, 4), (4, 5)), ["reshape", "matmul", "reshape"]),
        ("abcd,cde->abe", ((2, 3, 4, 5), (4, 5, 6)), ["reshape", "reshape", "matmul", "reshape"]),
        ("ij,ij->ij", ((2, 3), (2, 3)), ["multiply"]),
    ],
)
def test_a_contraction_is_one_matrix_product(equation, shapes, expected):
    """Checks that no needless transposes are made; reshapes do not copy."""
    names = []

    class Observer(GradientTape):
        def record(self, primitive, inputs, attrs, y):
            names.append(primitive.name)
            super().record(primitive, inputs, attrs, y)

    with Observer():
        tf.einsum(equation, *(tf.ones(shape) for shape in shapes))

    assert names == expected


def test_several_inputs_are_contracted_in_the_cheapest_order():
    sizes = {"i": 100, "j": 2, "k": 100, "l": 2}

    first, _ = _contraction_order([("i", "j"), ("j", "k"), ("k", "l")], ("i", "l"), sizes, "greedy")

    assert first == (1, 1)  # j k, k l


@pytest.mark.parametrize("optimize", ["greedy", "optimal", "auto", "branch-2", True])
def test_the_result_does_not_depend_on_optimize(optimize):
    rng = np.random.default_rng(2)
    arrays = [rng.normal(size=(3, 3)) for _ in range(4)]

    y = tf.einsum("ab,bc,cd,de->ae", *arrays, optimize=optimize, name="chain")

    np.testing.assert_allclose(y.numpy(), np.linalg.multi_dot(arrays), rtol=1e-12)


def test_every_order_of_three_inputs_gives_the_same_result():
    rng = np.random.default_rng(3)
    arrays = dict(zip("xyz", (rng.normal(size=s) for s in ((2, 3), (3, 4), (4, 2))), strict=True))
    terms = {"x": "ij", "y": "jk", "z": "kl"}
    expected = np.linalg.multi_dot(list(arrays.values()))

    for order in itertools.permutations("xyz"):
        equation = f"{','.join(terms[name] for name in order)}->il"
        y = tf.einsum(equation, *(arrays[name] for name in order))
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12)


X = np.ones((2, 2), np.float32)
FORM = (
    "einsum: {!r} is not a valid equation. Expected letters for axes, at most one "
    "ellipsis per input, commas between inputs, and the result after '->'."
)


@pytest.mark.parametrize(
    ("equation", "inputs", "error", "message"),
    [
        ("i1->i", [X], ValueError, FORM.format("i1->i")),
        ("..i->i", [X], ValueError, FORM.format("..i->i")),
        ("...i...->i", [X], ValueError, FORM.format("...i...->i")),
        ("ij->i->j", [X], ValueError, FORM.format("ij->i->j")),
        ("ij,jk", [X], ValueError, "einsum: 'ij,jk' describes 2 inputs. Received: 1."),
        ("ij->ii", [X], ValueError, "einsum: a label appears more than once in the result 'ii'."),
        (
            "ij->k",
            [X],
            ValueError,
            "einsum: the result has label 'k', which is in none of the inputs.",
        ),
        (
            "ijk->i",
            [X],
            InvalidArgumentError,
            "einsum: input 0 has shape (2, 2). Expected 3 axes, for 'ijk'.",
        ),
        (
            "ij,...ijk->i",
            [X, X],
            InvalidArgumentError,
            "einsum: input 1 has shape (2, 2). Expected at least 3 axes, for '...ijk'.",
        ),
        (
            "ij,jk->ik",
            [X, np.ones((3, 2), np.float32)],
            InvalidArgumentError,
            "einsum: label 'j' names axes of sizes 2 and 3. Expected equal sizes.",
        ),
        (
            "...i,...i->...",
            [X, np.ones((3, 2), np.float32)],
            InvalidArgumentError,
            "einsum: the axes under the ellipsis do not broadcast. Received: shapes (2, 2), "
            "(3, 2).",
        ),
        (
            "...i->i",
            [X],
            InvalidArgumentError,
            "einsum: there are 1 axes under an ellipsis. Expected an ellipsis in the result. "
            "Received: 'i'.",
        ),
        (
            "ij,jk->ik",
            [tf.constant(X), tf.constant(X, tf.float64)],
            InvalidArgumentError,
            "cannot compute matmul as input #1(zero-based) was expected to be a float32 tensor but "
            "is a float64 tensor. Use tf.cast on one of them.",
        ),
    ],
)
def test_errors(equation, inputs, error, message):
    assert_raises(lambda: tf.einsum(equation, *inputs), error, message)


def test_unknown_options_raise():
    assert_raises(
        lambda: tf.einsum("i->", X[0], force=2, speed=1),
        TypeError,
        "einsum: unexpected keyword arguments force, speed. Expected name or optimize.",
    )
    with pytest.raises(KeyError, match="`optimize` must be one of 'greedy', 'auto', 'optimal', "):
        tf.einsum("i->", X[0], optimize="fast")
