"""Configures pytest: doctests in Markdown pages, with `tf` and `np` in scope."""

import doctest
import os
import pathlib
import re

import hypothesis
import numpy as np
import pytest

import retrograde

# Keras reads and writes its settings here instead of in the user's home directory.
os.environ["KERAS_HOME"] = str(pathlib.Path(__file__).parent / ".pytest_cache" / "keras")

# A slow machine must not fail tests.
hypothesis.settings.register_profile("without_deadline", deadline=None)
hypothesis.settings.load_profile("without_deadline")

FENCE = re.compile(r"^```.*$", re.MULTILINE)


class FencedParser(doctest.DocTestParser):
    """Parses doctests in Markdown. Without it, a closing fence would be part of the output."""

    def parse(self, string, name="<string>"):
        return super().parse(FENCE.sub("", string), name)


# pytest uses this name for text files and has no option for another parser.
doctest.DocTestParser = FencedParser


@pytest.fixture(autouse=True, scope="session")
def names_in_examples(doctest_namespace):
    doctest_namespace["tf"] = retrograde
    doctest_namespace["np"] = np
