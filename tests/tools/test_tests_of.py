"""`make test OF=...` finds the tests of one public function."""

import pathlib
import subprocess
import sys
import types

import pytest

import retrograde as tf
from tools import tests_of

ROOT = pathlib.Path(tests_of.__file__).parent.parent


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("tf.nn.conv2d", "y = tf.nn.conv2d(x, w)", True),
        ("tf.nn.conv2d", "y = nn.conv2d(x, w)", True),
        ("tf.nn.conv2d", "y = tf.nn.conv2d_transpose(x, w)", False),
        ("tf.nn.conv2d", "y = conv2d(x)", False),
        ("tf.cast", "tf.cast(x, int)", True),
        ("tf.cast", "cast(x, int)", False),
        ("tf.cast", "np.tf.cast(x)", False),
    ],
)
def test_pattern_matches_full_names(name, text, expected):
    assert bool(tests_of.pattern([name]).search(text)) == expected


def test_other_names_of_the_same_function_count():
    assert tests_of.names_of("tf.reduce_sum") == ["tf.reduce_sum", "tf.math.reduce_sum"]


@pytest.mark.parametrize(
    ("function", "primitive"),
    [(tf.nn.conv2d, "convolve"), (tf.math.special.dawsn, "dawsn"), (tf.exp, "exp")],
)
def test_primitives_that_a_function_applies_are_found(function, primitive):
    assert primitive in tests_of.primitives_of(function)


def test_files_are_found_by_their_text_and_by_their_tables():
    files = tests_of.files_for(["tf.math.special.dawsn"], {"dawsn"})
    names = [path.relative_to(ROOT).as_posix() for path in files]

    assert "tests/ops/test_rules.py" in names  # by the primitive
    assert "tests/namespaces/test_math_special.py" in names  # by a data file
    assert "tests/core/test_variable.py" not in names


def test_a_test_is_selected_by_its_source_its_parameters_or_its_case():
    selection = tests_of.Selection(["tf.nn.conv2d"], {"convolve"})

    def item(function, label="", **parameters):
        spec = types.SimpleNamespace(params=parameters)
        return types.SimpleNamespace(function=function, nodeid=f"test{label}", callspec=spec)

    def other():
        return tf.nn.relu

    case = types.SimpleNamespace(primitive=types.SimpleNamespace(name="convolve"))
    assert selection.selects(item(lambda: tf.nn.conv2d))
    assert selection.selects(item(other, "[tf.nn.conv2d-SAME]"))
    assert selection.selects(item(other, case=case))
    assert not selection.selects(item(other, "[tf.nn.conv3d]"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("conv2d", "Expected a public name, such as tf.nn.conv2d. Received: 'conv2d'."),
        ("tf.nn.conv2", "has no attribute 'conv2'"),
    ],
)
def test_a_name_that_is_not_public_is_refused(name, message):
    result = subprocess.run(
        [sys.executable, "tools/tests_of.py", name], cwd=ROOT, capture_output=True, text=True
    )

    assert result.returncode == 2
    assert message in result.stderr
