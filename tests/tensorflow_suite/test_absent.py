"""Names that stand for absent ones, and the translation of test files."""

import unittest

import pytest

from tensorflow_suite.absent import Absent, MissingPublic, NotApplicable, loading


def test_absent_names_raise_when_a_test_uses_them():
    internal, public = Absent("ops.handle"), Absent("tf.queue", "public")

    with loading():
        assert internal.attribute is not None
    with pytest.raises(NotApplicable, match="handle is internal"):
        internal()
    with pytest.raises(MissingPublic, match="queue"):
        public()


def test_absent_decorators_skip_tests():
    with loading():

        @Absent("ops.decorator")
        def test():
            raise AssertionError

        @Absent("ops.decorator")
        class Case(unittest.TestCase):
            pass

    with pytest.raises(NotApplicable):
        test()
    assert Case.__unittest_skip__
