"""Shows examples that begin with `>>>` as code: Markdown would take them for quotations."""

import re

from markdown import Extension
from markdown.preprocessors import Preprocessor


class _Fence(Preprocessor):
    """Puts a fence around each doctest, from its first `>>>` to the next empty line."""

    def run(self, lines):
        fenced, inside, in_fence = [], False, False
        for line in lines:
            if re.match(r"\s*(```|~~~)", line):
                in_fence = not in_fence
            starts = line.startswith(">>>") and not inside and not in_fence
            if starts:
                fenced.append("```pycon")
                inside = True
            elif inside and not line.strip():
                fenced.append("```")
                inside = False
            fenced.append(line)
        return [*fenced, "```"] if inside else fenced


class Doctests(Extension):
    """The Markdown extension."""

    def extendMarkdown(self, md):
        md.preprocessors.register(_Fence(md), "doctests", 200)


def on_config(config):
    """Called by mkdocs: adds the extension to those of every page and docstring."""
    config.markdown_extensions.append(Doctests())
    return config
