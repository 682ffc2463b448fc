"""Runs the program with a missing gradient in the README and on the home page."""

import itertools
import pathlib
import re

import pytest

from retrograde.tensorflow_shim import command_line

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def explained_program(page):
    """Returns the first program that is followed by its output, and the output."""
    for (language, code), (kind, output) in itertools.pairwise(blocks(page)):
        if (language, kind) == ("python", "text"):
            return code, output
    raise AssertionError(f"{page.name} has no program with its output")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_program_prints_the_output_below_it(page, tmp_path, monkeypatch, capsys):
    code, output = explained_program(page)
    monkeypatch.chdir(tmp_path)
    pathlib.Path("your_script.py").write_text(code)

    assert command_line.main(["run", "your_script.py"]) in (None, 0)
    assert capsys.readouterr().out == output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_shows_how_to_install_and_to_run_a_script(page):
    commands = [text for language, text in blocks(page) if not language]

    assert any("pip install '.[keras,xla]'\n" in block for block in commands)
    assert "retrograde run your_script.py\n" in commands


def test_both_pages_explain_the_same_program():
    readme, home = map(explained_program, PAGES)

    assert readme == home
