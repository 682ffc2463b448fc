"""Runs the program at the top of the README and of the home page."""

import pathlib
import re

import pytest

from retrograde.tensorflow_shim import command_line

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_first_program_prints_the_output_below_it(page, tmp_path, monkeypatch, capsys):
    (language, code), (kind, output) = blocks(page)[:2]
    assert (language, kind) == ("python", "text")
    monkeypatch.chdir(tmp_path)
    pathlib.Path("your_script.py").write_text(code)

    assert command_line.main(["run", "your_script.py"]) in (None, 0)
    assert capsys.readouterr().out == output


def test_both_pages_begin_with_the_same_blocks():
    readme, home = (blocks(page)[:4] for page in PAGES)

    assert readme == home
    assert readme[3] == ("", "pip install '.[keras,xla]'\n")
