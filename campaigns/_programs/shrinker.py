"""Shrinks a failing program while it still fails."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator


def shrink(source: str, fails: Callable[[str], bool], seconds: float) -> str:
    """Returns a shorter program that `fails`, within about `seconds`.

    It leaves out lines with the block below them, takes blocks out of their first line, and
    replaces the right side of assignments with a name that was assigned before.
    """
    end = time.monotonic() + seconds
    shorter = True
    while shorter:
        shorter = False
        for candidate in _candidates(source):
            if time.monotonic() > end:
                return source
            if _compiles(candidate) and fails(candidate):
                source, shorter = candidate, True
                break
    return source


def _candidates(source: str) -> Iterator[str]:
    lines = source.rstrip("\n").split("\n")
    for i in reversed(range(len(lines))):
        stop = _end_of_block(lines, i)
        yield _join_lines(lines[:i] + lines[stop:])
    for i in reversed(range(len(lines))):
        stop = _end_of_block(lines, i)
        if stop > i + 1 and not lines[i].lstrip().startswith("def "):
            yield _join_lines(lines[:i] + [line[4:] for line in lines[i + 1 : stop]] + lines[stop:])
        for line in _simpler(lines[i]):
            yield _join_lines([*lines[:i], line, *lines[i + 1 :]])


def _end_of_block(lines: list[str], i: int) -> int:
    if lines[i].startswith("@"):
        return _end_of_block(lines, i + 1) if i + 1 < len(lines) else i + 1
    depth = _depth(lines[i])
    stop = i + 1
    while stop < len(lines) and _depth(lines[stop]) > depth:
        stop += 1
    return stop


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _simpler(line: str) -> Iterator[str]:
    """Yields the line with smaller expressions."""
    match = re.match(r"( *(?:\w+ = |return |keep\('[a-z ]*', ))(.*)", line)
    if match is None:
        return
    begin, right = match.groups()
    names = list(dict.fromkeys(re.findall(r"\b[axvc]\d+\b", right)))
    close = ")" if begin.lstrip().startswith("keep") else ""
    if right.rstrip(")") not in names:
        for name in names:
            yield f"{begin}{name}{close}"
    for inner in re.findall(r"tf\.[\w.]+\(([axvc]\d+)\)", right):
        yield begin + re.sub(rf"tf\.[\w.]+\({inner}\)", inner, right, count=1)


def _join_lines(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _compiles(source: str) -> bool:
    try:
        compile(source, "<program>", "exec")
    except SyntaxError:
        return False
    return True
