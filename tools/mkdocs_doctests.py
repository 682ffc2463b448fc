"""Renders doctests as code. Without it, Markdown reads the lines with `>>>` as quotations.

Lines that stand for empty lines of output are shown as empty lines.
"""

import re

from markdown import Extension
from markdown.preprocessors import Preprocessor


def following(lines, number):
    """Returns the line after a line, or an empty one."""
    return lines[number + 1] if number + 1 < len(lines) else ""


class _Fence(Preprocessor):
    """Adds a fence around each doctest, from its first `>>>` to the next empty line."""

    def run(self, lines):
        fenced, inside, in_fence = [], False, False
        for number, line in enumerate(lines):
            if re.match(r"\s*(```|~~~)", line):
                in_fence = not in_fence
            if line.strip() == "```python" and following(lines, number).startswith(">>>"):
                line = line.replace("python", "pycon")  # colors prompts and outputs
            starts = line.startswith(">>>") and not inside and not in_fence
            if starts:
                fenced.append("```pycon")
                inside = True
            elif inside and not line.strip():
                fenced.append("```")
                inside = False
            fenced.append("" if line.strip() == "<BLANKLINE>" else line)
        return [*fenced, "```"] if inside else fenced


class Doctests(Extension):
    """Registers the preprocessor with Markdown."""

    def extendMarkdown(self, md):
        md.preprocessors.register(_Fence(md), "doctests", 200)


def on_config(config):
    """Enables the extension on every page and in docstrings. mkdocs calls this function."""
    config.markdown_extensions.append(Doctests())
    return config
