"""Tests tools/check_vocabulary.py: phrases that it finds, and correct English."""

import re

import pytest

from tools import check_vocabulary
from tools.check_vocabulary import Hit, find, find_docstrings, find_vague_names


@pytest.mark.parametrize(
    ("text", "line", "phrase", "replacement"),
    [
        ("Normalises colors.", 1, "normalises", "-ize"),
        ("x = 1\n_COLOURS = 3", 2, "colours", "color"),
        ("from m import grey_levels", 1, "grey", "gray"),
        ("# in the walk\n# back from y", 1, "walk back", "backward pass"),
        ("def test_the_tape_lets_go_of_it():", 1, "lets_go", "frees"),
        ("`x` is no tensor.", 1, "is no tensor", "is not a"),
        ("values that are\nno integers", 1, "are no integers", "is not a"),
        ("Raises an error of NumPy's.", 1, "an error of numpy's", "a NumPy …"),
        ("a name of TensorFlow's that is missing", 1, "a name of tensorflow's", "a NumPy …"),
        ("the derivative by its exponent", 1, "derivative by its", "with respect to"),
        (
            "in each call of the\ntraced function",
            1,
            "call of the traced function",
            "call to a traced function",
        ),
        ("images, 64 to 64 deep", 1, "64 to 64 deep", "channels"),
        ("The file is damaged.", 1, "damaged", "corrupt"),
        ("the result is exact, whatever `tol` is", 1, "whatever", "regardless of"),
    ],
)
def test_finds(text, line, phrase, replacement):
    assert find(text) == [Hit(line, phrase, replacement)]


@pytest.mark.parametrize(
    "text",
    [
        "There is no gradient, and there\nare no variables.",
        "`w` is no longer a variable. It is no larger than 3. Its body is no-op.",
        "tf.nn.lrn(x), tf.nn.leaky_relu(x, alpha=0.1), negative_slope, signal.alarm(2)",
        "tf.errors.CancelledError, tf.image.rgb_to_grayscale, np.kaiser, scipy.optimize.minimize",
        "Walk the tree and come back. Precise, otherwise elementwise noise may arise; raise it.",
        "The truth value of an array is ambiguous. A centered, labeled analysis of a program.",
        "Divides the gradients by their norm; the learned slope of the line is 3.",
        "Besides, both matrices are side by side. Secure, procured, and obscured.",
        "A list of TensorFlow's functions, and a subset of Keras's tests.",
        "All the same dtype, made up of two parts, on the way to the target.",
    ],
)
def test_accepts_correct_english(text):
    assert find(text) == []


@pytest.mark.parametrize(
    ("source", "line", "word"),
    [
        ('def f():\n    """What it holds."""', 2, "What"),
        ('async def f():\n    """A tensor."""', 2, "A"),
        ('class A:\n    """How it works."""', 2, "How"),
        ('class A:\n    def f():\n        """The value."""', 3, "The"),
        ('@property\ndef f():\n    """How it is read."""', 3, "How"),
        ('def f():\n    """Whether it is open."""', 2, "Whether"),
    ],
)
def test_finds_docstrings_without_a_verb(source, line, word):
    assert find_docstrings(source) == [Hit(line, word, "start with a verb")]


@pytest.mark.parametrize(
    "source",
    [
        '"""How tapes record operations."""\n\nx = 1',
        'def f():\n    """Returns what `g` returned."""',
        'class A:\n    """A tensor."""',
        '@property\ndef f():\n    """The value."""',
        '@property\ndef f():\n    """Whether it is open."""',
        '@pytest.fixture\ndef f():\n    """A model."""',
        'def test_f():\n    """The value is 3."""',
        "def f():\n    return 1",
    ],
)
def test_accepts_docstrings(source):
    assert find_docstrings(source) == []


def test_hits_are_in_the_order_of_their_lines():
    assert [hit.line for hit in find("anew\n\nnormalise, anew\ncolour")] == [1, 3, 3, 4]


def test_no_pattern_matches_the_empty_string():
    for pattern, _ in check_vocabulary.SPELLINGS + check_vocabulary.RETIRED:
        assert re.fullmatch(pattern, "") is None, pattern


def test_folders_are_searched_for_code_and_docs(tmp_path, capsys):
    (tmp_path / "site").mkdir()
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".github").mkdir()
    (tmp_path / "package").mkdir()
    checked = ("a.md", "package/e.pyi", "package/Makefile", ".github/f.yml")
    for name in (*checked, "b.txt", "site/c.md", ".venv/d.py"):
        (tmp_path / name).write_text("The colour.\n")
    assert check_vocabulary.main([str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert output.out.splitlines() == [
        f"{tmp_path}/.github/f.yml:1: colour -> color",
        f"{tmp_path}/a.md:1: colour -> color",
        f"{tmp_path}/package/Makefile:1: colour -> color",
        f"{tmp_path}/package/e.pyi:1: colour -> color",
    ]
    assert output.err == "Found 4 phrases to replace.\n"


def test_clean_files_pass(tmp_path, capsys):
    (tmp_path / "a.md").write_text("The color.\n")
    assert check_vocabulary.main([str(tmp_path / "a.md")]) == 0
    assert capsys.readouterr() == ("", "")


def test_the_list_may_quote_its_words(capsys):
    path = check_vocabulary.ROOT / "tools" / "check_vocabulary.py"
    assert find(path.read_text())
    assert check_vocabulary.main([str(path)]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_missing_path_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        check_vocabulary.main([str(tmp_path / "missing.md")])


@pytest.mark.parametrize(
    ("source", "line", "name"),
    [
        ("def f():\n    found = 1", 2, "found"),
        ("def f(what):\n    pass", 1, "what"),
        ("def f(xs):\n    return [held for held in xs]", 2, "held"),
        ("g = lambda whole: whole", 1, "whole"),
    ],
)
def test_finds_vague_names(source, line, name):
    assert find_vague_names(source) == [Hit(line, name, "name the value")]


def test_accepts_attributes_with_any_name():
    source = "class Memory:\n    held: int\n\ndef f(tape):\n    tape.held = tape.memory().held"
    assert find_vague_names(source) == []
