"""Checks that the examples of a page import the names they use."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLE = re.compile(r"^(?:>>>|\.\.\.) (.*)$", re.MULTILINE)
IMPORTS = {"tf": "import retrograde as tf", "np": "import numpy as np"}


@pytest.mark.parametrize("name", IMPORTS)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_import_the_names_they_use(page, name):
    lines = EXAMPLE.findall(page.read_text(encoding="utf-8"))
    uses = [i for i, line in enumerate(lines) if re.search(rf"\b{name}\.\w", line)]

    assert not uses or IMPORTS[name] in lines[: uses[0]]
