"""What the examples in the documentation and in docstrings find in scope: `tf` and `np`."""

import doctest
import re

import numpy as np
import pytest

import retrograde

FENCE = re.compile(r"^```.*$", re.MULTILINE)


class FencedParser(doctest.DocTestParser):
    """Reads the examples of a Markdown page; the fence that closes a block is not output."""

    def parse(self, string, name="<string>"):
        return super().parse(FENCE.sub("", string), name)


# pytest looks this name up for text files and offers no other way to hand it a parser.
doctest.DocTestParser = FencedParser


@pytest.fixture(autouse=True, scope="session")
def names_in_examples(doctest_namespace):
    doctest_namespace["tf"] = retrograde
    doctest_namespace["np"] = np
