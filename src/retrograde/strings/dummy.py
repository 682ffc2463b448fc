"""Dummy strings, with which datasets infer the specs of elements."""

from __future__ import annotations


class DummyString(bytes):
    """A string in a dummy element: b"0" or b"1".

    An operation that can tell the specs of its results without parsing a string, such as
    `tf.io.parse_example`, recognizes the class. For other operations it is an ordinary string.
    """

    __slots__ = ()
