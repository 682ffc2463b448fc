"""Tests the programs of the page about `None` gradients."""

import contextlib
import io
import linecache
import pathlib
import re

import numpy as np
import pytest

import retrograde as tf
from retrograde.diagnose.missing_gradients import causes

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "why_none.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTIONS = re.split(r"^### (.*)$", PAGE.read_text(), flags=re.MULTILINE)
BY_CAUSE = dict(zip(SECTIONS[1::2], SECTIONS[2::2], strict=True))


def run(code):
    """Runs a program as the file `program.py`. Returns its names and its output."""
    linecache.cache["program.py"] = (len(code), None, code.splitlines(keepends=True), "program.py")
    names = {"tf": tf, "np": np}
    if "keras." in code:
        from retrograde import keras

        names["keras"] = keras
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "program.py", "exec"), names)
    return names, printed.getvalue()


def test_every_cause_has_a_section():
    assert set(BY_CAUSE) == set(causes.ALL) - {causes.CONNECTED}


@pytest.mark.parametrize("section", [SECTIONS[0], *BY_CAUSE.values()], ids=["first", *BY_CAUSE])
def test_programs_print_the_output_on_the_page(section):
    (_, code), (kind, output) = BLOCK.findall(section)[:2]

    assert kind == "text"
    assert run(code)[1] == output


@pytest.mark.parametrize("cause", sorted(set(BY_CAUSE) - {causes.NO_GRADIENT}))
def test_corrected_programs_have_a_gradient(cause):
    _, _, (_, code) = BLOCK.findall(BY_CAUSE[cause])

    assert run(code)[0]["gradient"] is not None


@pytest.mark.parametrize("cause", BY_CAUSE)
def test_sections_show_their_cause(cause):
    (_, _), (_, output), *_ = BLOCK.findall(BY_CAUSE[cause])

    assert re.search(f"is None: (most likely )?{cause}$", output, re.MULTILINE)
