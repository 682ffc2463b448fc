"""Finds British spellings and retired vocabulary in code and docs.

    python tools/check_vocabulary.py            the whole repository
    python tools/check_vocabulary.py src/retrograde/core docs/guide.md

Prints `file:line: phrase -> replacement` for each hit. Exits with 1 if there are any.

A space in a pattern matches a space, a line break or an underscore, so phrases are found across
line breaks, in comments and in identifiers. Words are delimited by anything but letters. Case does
not matter. To quote a listed word on purpose, add its file to `EXEMPT`.

Docstrings of functions that start with an article or a question word are found, too. Properties,
fixtures and tests may start with a noun phrase or with "Whether". Parameters and local variables
with vague names, such as `found`, are found as well.
"""

from __future__ import annotations

import argparse
import ast
import bisect
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
SUFFIXES = {".py", ".pyi", ".md", ".toml", ".yml"}
SKIPPED_FOLDERS = {"site", "build", "dist", "demo", "__pycache__"}
HIDDEN_FOLDERS = {".github"}  # other hidden folders are skipped
# These quote the words that they check for.
EXEMPT = {"tools/check_vocabulary.py", "tests/tools/test_check_vocabulary.py"}
# These still contain vague names.
WITH_VAGUE_NAMES = (
    "src/retrograde/core/",
    "src/retrograde/program/",
    "tests/docs/test_site.py",
)

# Verbs with -ize in American English, without the ending.
_IZE = (
    "apolog|canonical|capital|categor|central|character|custom|digital|discret|emphas|"
    "equal|factor|familiar|final|formal|general|harmon|hypothes|ideal|individual|"
    "initial|internal|item|linear|local|material|maxim|memor|minim|modern|modular|"
    "neutral|normal|optim|organ|parallel|parameter|parametr|penal|polar|popular|"
    "priorit|quant|random|real|recogn|regular|sanit|scrutin|serial|special|stabil|"
    "standard|summar|symbol|symmetr|synchron|synthes|token|util|vector|visual"
)

SPELLINGS = [
    (f"(?:de|un|re|pre)?(?:{_IZE})is(?:e|ed|es|er|ers|ing|ation|ations)", "-ize"),
    ("(?:mis)?behaviours?", "behavior"),
    ("colou(?:r|rs|red|ring|rful|rless)", "color"),
    ("neighbour(?:s|ing|hood|hoods)?", "neighbor"),
    ("favou(?:r|rs|red|ring|rite|rable)", "favor"),
    ("honou(?:r|rs|red|ring)", "honor"),
    ("centr(?:e|es|ed|ing)", "center"),
    ("licen[c]es?", "license"),
    ("grey(?:s|scale|ish)?", "gray"),
    ("analys(?:e|ed|er|ers|ing)", "analyze"),
    ("(?:un)?label(?:led|ling)", "labeled, labeling"),
    ("model(?:led|ling)", "modeled, modeling"),
    ("travel(?:led|ling)", "traveled, traveling"),
    ("signal(?:led|ling)", "signaled, signaling"),
    ("cancelling", "canceling"),
    ("catalogue[sd]?", "catalog"),
    ("artefacts?", "artifact"),
    ("fulfils?", "fulfill"),
    ("judgements?", "judgment"),
    ("programmes?", "program"),
    ("(?:milli|centi|kilo)?metres?", "meter"),
    ("defence|offence|pretence", "-ense"),
    ("whilst|amongst", "while, among"),
    ("learnt|spelt|burnt", "learned, spelled, burned"),
    ("maths", "math"),
]

RETIRED = [
    # Gradients
    ("walk(?:s|ed|ing)? back", "backward pass"),
    ("(?:on|of|in) the way back", "in the backward pass"),
    ("way forwards", "in the forward pass"),
    ("(?:no slope|slopes? of (?:a|the) (?:critic|function|root|rule))", "derivative"),
    ("derivatives? by (?:x\\d?|its|the|each|inputs|parameters|sources)", "with respect to"),
    ("gradients? by (?:x\\d?|inputs|parameters|sources)", "with respect to"),
    ("guarded zero", "NaN-safe zero cotangents"),
    ("kink(?:s|ed)?", "non-differentiable point"),
    ("weigh(?:s|ing)? the targets?", "upstream gradients for the targets"),
    ("computed apart", "computed separately"),
    ("spent tapes?", "used tape"),
    ("left for python|integer hop", "converted to Python, cast through an integer dtype"),
    # NaN and Inf
    ("born|births?", "originated, produced"),
    ("spoil(?:s|ed|t)?", "became NaN"),
    ("(?<!signal\\.)alarms?", "floating-point exception flag"),
    ("what is not finite|no longer finite", "non-finite value"),
    ("cure[sd]?", "fix"),
    # Recording
    ("hears?|heard|unheard|overhears?|deaf", "records, observes"),
    ("(?<!event[_])listeners?", "recorder"),  # JAX has event_listener
    ("testif(?:y|ies|ied|ying)|testimony", "inspect, report"),
    ("(?:let|lets|letting) go", "frees"),
    ("lend(?:s|ing)?|lent|loan(?:s|ed)?", "donation"),
    ("cheapest to compute again", "cheapest to rematerialize"),
    ("pil(?:e|es|ed|ing) up", "accumulate, leak"),
    ("dead ends?", "unused operation"),
    ("picture of the way", "computation graph"),
    # Functions
    ("arguments of a new kind", "a new input signature"),
    ("open sizes?", "unknown dimensions"),
    ("rolled up", "re-rolled into a loop"),
    # Values
    ("truth values", "booleans"),
    ("made-up", "dummy"),
    ("(?:tensor|array|number|scalar|value)s? without axes", "scalar"),
    ("stand-ins?|standing in|in the seat of", "replacement, as"),
    ("and not here", "not supported by retrograde"),
    # English
    (
        "(?<!there )(?:is|are|was|were) no (?!longer|more|less|larger|smaller|greater|shorter"
        "|better|worse|faster|slower|op[^a-z])[a-z]+",
        "is not a",
    ),
    ("nobody|somebody|whoever", "name the subject"),
    ("anew", "again"),
    ("beside", "next to, in addition to"),
    ("to the bit", "bit-for-bit identical"),
    (
        "(?:a|an|any|no|each) [a-z]+ of (?:numpy|tensorflow|python|keras|jax|scipy)'s"
        "(?=[.,;:)]| (?:and|are|for|has|in|is|or|that|was|which) )",
        "a NumPy …",
    ),
    ("limits? of memory", "memory limit"),
    ("learning to learn", "meta-learning"),
    ("tested by table", "table-driven tests"),
    ("rules of the house", "conventions"),
    ("judges?", "discriminator"),
    ("damaged", "corrupt"),
    ("undamaged", "intact"),
    ("answers? (?:of|from) tensorflow", "TensorFlow's results"),
    ("calls? of (?:a|the) traced function", "call to a traced function"),
    ("however (?:many|large|long|small)", "regardless of the number, size or length"),
    ("whatever", "regardless of"),
    ("and its like", "and related functions"),
    ("whichever", "regardless of which"),
    ("(?:hand|give)s? (?:back|over)", "return, pass"),
    ("(?:leave|leaves|left) no cycles", "create no reference cycles"),
    ("\\d+ to \\d+ deep", "channels"),
]

# Names that do not say what a parameter or local variable contains.
VAGUE_NAMES = {"found", "held", "whole", "what"}
# The first words of docstrings that do not start with a verb.
_ARTICLES = {"a", "an", "the"}
_QUESTION_WORDS = {"how", "of", "those", "what", "where", "whether", "which", "whose", "why"}


def _expression(pattern: str) -> re.Pattern[str]:
    """Compiles `pattern` for whole words, with flexible spaces."""
    return re.compile(f"(?<![a-z])(?:{pattern})(?![a-z])".replace(" ", "[ _]"))


_RULES = [(_expression(pattern), replacement) for pattern, replacement in SPELLINGS + RETIRED]
# One search for all patterns is several times as fast as one for each.
_ANY = _expression("|".join(pattern for pattern, _ in SPELLINGS + RETIRED))


class Hit(NamedTuple):
    """A retired word or a British spelling, and the advice."""

    line: int
    phrase: str
    replacement: str


def find(text: str) -> list[Hit]:
    """Returns the hits in `text`, in order of their lines."""
    words = [m for m in re.finditer(r"\S+", text.lower()) if m[0] != "#"]
    starts, size = [], 0
    for word in words:
        starts.append(size)
        size += len(word[0]) + 1
    line_starts = [m.end() for m in re.finditer("\n", text)]
    joined = " ".join(word[0] for word in words)
    hits = []
    for match in _ANY.finditer(joined):
        word = words[bisect.bisect_right(starts, match.start()) - 1]
        line = bisect.bisect_right(line_starts, word.start()) + 1
        replacement = next(r for p, r in _RULES if p.match(joined, match.start()))
        hits.append(Hit(line, match[0], replacement))
    return hits


def find_docstrings(source: str) -> list[Hit]:
    """Returns the docstrings of Python source that should start with a verb."""
    hits = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        docstring = ast.get_docstring(node, clean=False)
        words = docstring.split() if docstring else []
        allowed = _ARTICLES | {"whether"} if _is_described_by_noun(node) else set()
        if words and words[0].lower() in (_ARTICLES | _QUESTION_WORDS) - allowed:
            hits.append(Hit(node.body[0].lineno, words[0], "start with a verb"))
    return hits


def find_vague_names(source: str) -> list[Hit]:
    """Returns the parameters and local variables of Python source that have vague names."""
    hits = set()
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.arg):
                name = node.arg
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            else:
                continue
            if name in VAGUE_NAMES:
                hits.add(Hit(node.lineno, name, "name the value"))
    return sorted(hits)


def _is_described_by_noun(node: ast.AST) -> bool:
    """Returns whether the docstring of a class, property, fixture or test may start with a noun."""
    if isinstance(node, ast.ClassDef) or node.name.startswith("test_"):
        return True
    decorators = " ".join(map(ast.unparse, node.decorator_list))
    return any(name in decorators for name in ("property", "setter", "fixture"))


def files(paths: Iterable[pathlib.Path]) -> Iterator[pathlib.Path]:
    """Yields the checked files among `paths` and in the folders among them."""
    for path in paths:
        if path.is_dir():
            yield from files(
                child
                for child in sorted(path.iterdir())
                if child.name not in SKIPPED_FOLDERS
                and (not child.name.startswith(".") or child.name in HIDDEN_FOLDERS)
            )
        elif not path.exists():
            raise FileNotFoundError(f"{path} does not exist.")
        elif path.suffix in SUFFIXES or path.name == "Makefile":
            yield path


def _relative(path: pathlib.Path) -> str:
    path = path.resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def main(arguments: list[str] | None = None) -> int:
    """Prints the hits in the given paths and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=pathlib.Path, default=[ROOT])
    count = 0
    for path in files(parser.parse_args(arguments).paths):
        name = _relative(path)
        if name in EXEMPT:
            continue
        text = path.read_text(encoding="utf-8")
        hits = find(text)
        if path.suffix == ".py":
            hits += find_docstrings(text)
            hits += [] if name.startswith(WITH_VAGUE_NAMES) else find_vague_names(text)
        for hit in sorted(hits):
            count += 1
            print(f"{name}:{hit.line}: {hit.phrase} -> {hit.replacement}")
    if count:
        print(f"Found {count} phrases to replace.", file=sys.stderr)
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
