"""What the examples in the documentation and in docstrings find in scope: `tf` and `np`."""

import doctest
import os
import pathlib
import re

import hypothesis
import numpy as np
import pytest

import retrograde

# Keras writes its settings there; the user's own are neither read nor written.
os.environ["KERAS_HOME"] = str(pathlib.Path(__file__).parent / ".pytest_cache" / "keras")

# A slow machine is not a defect.
hypothesis.settings.register_profile("without_deadline", deadline=None)
hypothesis.settings.load_profile("without_deadline")

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
