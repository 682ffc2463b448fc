"""Sums of products, written with labels for the axes."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.ops import contraction, matrices, reduction
from retrograde.ops.arithmetic import multiply
from retrograde.ops.casting import identity
from retrograde.ops.conversion import same_dtype
from retrograde.ops.shaping import reshape, transpose
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid

_PATHS = {"greedy": "greedy", "auto": "greedy", "optimal": "optimal", True: "greedy"}
_PATHS |= dict.fromkeys(("branch-all", "branch-2", "branch-1"), "optimal")

_TERM = r"[a-zA-Z]*(\.\.\.)?[a-zA-Z]*"
_EQUATION = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """The sum of products of `inputs` that `equation` describes.

    Each axis of an input has a letter. Axes with the same letter go together; those whose letter is
    not behind the arrow are summed over. An ellipsis stands for any number of axes; they broadcast.
    Without an arrow, the letters that appear once are kept, in the order of the alphabet. Three and
    more inputs are multiplied in the order that takes the least work; `optimize` says how hard to
    look for it, "greedy" or "optimal".

    >>> x = [[1.0, 2.0], [3.0, 4.0]]
    >>> tf.einsum("ij,jk->ik", x, x).numpy()
    array([[ 7., 10.],
           [15., 22.]], dtype=float32)
    >>> tf.einsum("ii->", x).numpy()
    np.float32(5.0)
    """
    optimize = kwargs.pop("optimize", "greedy")
    for ignored in ("name", "greedy"):
        kwargs.pop(ignored, None)
    if kwargs:
        raise TypeError(
            f"einsum: unexpected keyword arguments {', '.join(kwargs)}. Expected name or optimize."
        )
    if not isinstance(equation, str):
        raise TypeError(f"einsum: expected a string for the equation. Received: {shown(equation)}.")
    terms, output = _parsed(equation.replace(" ", ""))
    if len(terms) != len(inputs):
        raise ValueError(
            f"einsum: {equation!r} describes {len(terms)} inputs. Received: {len(inputs)}."
        )
    if optimize not in _PATHS:
        raise KeyError(f"einsum: `optimize` must be one of {', '.join(map(repr, _PATHS))}.")
    tensors = same_dtype(*inputs)
    shapes = tuple(x._spec.shape for x in tensors)
    operands = list(tensors)
    for places, step in _program(terms, output, shapes, _PATHS[optimize]):
        parts = [operands.pop(place) for place in places]
        operands.append(step(*parts))
    (y,) = operands
    return apply(identity, (y,)) if y is tensors[0] else y


@functools.lru_cache(maxsize=256)
def _parsed(equation: str) -> tuple[tuple[str, ...], str]:
    """The labels of each input and those of the result."""
    if not _EQUATION.fullmatch(equation):
        raise ValueError(
            f"einsum: {equation!r} is not understood. Expected letters for axes, one ellipsis at "
            "most for each input, commas between inputs, and the result behind '->'."
        )
    before, arrow, output = equation.partition("->")
    terms = tuple(before.split(","))
    letters = before.replace(",", "").replace("...", "")
    if not arrow:
        kept = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        output = "..." * ("..." in before) + "".join(kept)
    named = output.replace("...", "")
    if len(set(named)) < len(named):
        raise ValueError(f"einsum: a label appears twice in the result, {output!r}.")
    missing = sorted(set(named) - set(letters))
    if missing:
        raise ValueError(f"einsum: no input has label {missing[0]!r}, which the result has.")
    return terms, output


# The program: which operands to take off the list, and what to put at its end instead. Labels are
# those of the equation, and negative numbers for axes under an ellipsis, counted from the last.

Step = tuple[tuple[int, ...], Callable]


@functools.lru_cache(maxsize=256)
def _program(terms: tuple[str, ...], output: str, shapes: tuple, path: str) -> list[Step]:
    labels = [
        _labelled(term, shape, i) for i, (term, shape) in enumerate(zip(terms, shapes, strict=True))
    ]
    sizes = _sizes(labels, shapes)
    wanted = _output_labels(output, sizes)
    steps: list[Step] = []
    operands: list[tuple] = []
    for i, (names, shape) in enumerate(zip(labels, shapes, strict=True)):
        others = {n for j, x in enumerate(labels) if j != i for n in x}
        names, alone = _alone(names, shape, sizes, others | set(wanted))
        steps.append(((0,), alone))
        operands.append(names)
    for pair in _order(operands, wanted, sizes, path):
        left, right = (operands.pop(place) for place in pair)
        needed = set(wanted).union(*operands)
        names, product = _pair(left, right, needed, sizes)
        steps.append((pair, product))
        operands.append(names)
    steps.append(((0,), _arranged(operands[0], wanted)))
    return steps


def _labelled(term: str, shape: tuple, place: int) -> tuple:
    """A label for each axis of an input."""
    front, dots, back = term.partition("...")
    free = len(shape) - len(front) - len(back)
    if free < 0 or (free and not dots):
        least = "at least " if dots else ""
        raise invalid(
            f"einsum: input {place} has shape {shape}. Expected {least}"
            f"{len(front) + len(back)} axes, for {term!r}."
        )
    return (*front, *range(-free, 0), *back)


def _sizes(labels: list[tuple], shapes: tuple) -> dict:
    """The size of each label; those under an ellipsis broadcast."""
    sizes: dict = {}
    for names, shape in zip(labels, shapes, strict=True):
        for name, n in zip(names, shape, strict=True):
            known = sizes.setdefault(name, n)
            if known == n:
                continue
            if isinstance(name, str):
                raise invalid(
                    f"einsum: label {name!r} stands for axes of sizes {known} and {n}. Expected "
                    "the same."
                )
            if 1 not in (known, n):
                raise invalid(
                    f"einsum: the axes under the ellipsis do not broadcast. Received: shapes "
                    f"{', '.join(map(str, shapes))}."
                )
            sizes[name] = max(known, n) if known and n else 0
    return sizes


def _output_labels(output: str, sizes: dict) -> tuple:
    front, dots, back = output.partition("...")
    under = sorted(name for name in sizes if not isinstance(name, str))
    if under and not dots:
        raise invalid(
            f"einsum: there are {len(under)} axes under an ellipsis. Expected one in the result, "
            f"too. Received: {output!r}."
        )
    return (*front, *under, *back)


def _alone(names: tuple, shape: tuple, sizes: dict, needed: set) -> tuple[tuple, Callable]:
    """What can be done to an operand before it meets others.

    Axes of size 1 that broadcast are dropped, diagonals are taken where a label is repeated, and
    what nobody else needs is summed over.
    """
    kept = [i for i, (name, n) in enumerate(zip(names, shape, strict=True)) if sizes[name] == n]
    squeezed = tuple(shape[i] for i in kept)
    names = tuple(names[i] for i in kept)
    single = tuple(dict.fromkeys(names))
    lost = tuple(i for i, name in enumerate(single) if name not in needed)

    def run(x: Tensor) -> Tensor:
        if squeezed != shape:
            x = reshape(x, shape=squeezed)
        if single != names:
            x = _diagonals(x, names)
        return reduction.sum(x, axis=lost, keepdims=False) if lost else x

    return tuple(name for name in single if name in needed), run


def _diagonals(x: Tensor, names: tuple) -> Tensor:
    """`x` with one axis for each label, in the order in which they first appear."""
    order = tuple(dict.fromkeys(names))
    names = list(names)
    for name in order:
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            rest = [i for i in range(len(names)) if i not in (first, second)]
            x = matrices.diagonal(transpose(x, perm=(*rest, first, second)))
            names = [*(names[i] for i in rest), name]
    return _arranged(tuple(names), order)(x)


def _arranged(names: tuple, order: tuple) -> Callable:
    if names == order:
        return lambda x: x
    perm = tuple(names.index(name) for name in order)
    return lambda x: transpose(x, perm=perm)


def _order(operands: list[tuple], wanted: tuple, sizes: dict, path: str) -> list[tuple[int, ...]]:
    """Which two to multiply, one pair after the other."""
    if len(operands) < 3:
        return [(0, 0)] * (len(operands) - 1)
    numbers = {name: i for i, name in enumerate(sizes)}
    arguments: list = []
    for names in operands:
        stand_in = np.broadcast_to(np.zeros(()), [sizes[name] for name in names])
        arguments += [stand_in, [numbers[name] for name in names]]
    found, _ = np.einsum_path(*arguments, [numbers[name] for name in wanted], optimize=path)
    pairs = []
    for places in found[1:]:
        first, *others = sorted(places)
        for i, other in enumerate(others):
            pairs.append((first, other - 1 - i) if not i else (-1, other - 1 - i))
    return pairs


def _pair(left: tuple, right: tuple, needed: set, sizes: dict) -> tuple[tuple, Callable]:
    """The product of two operands: one matrix product over all that is summed, if there is any.

    Labels that only one of them has are needed later: others were summed over before.
    """
    shared = [name for name in left if name in right]
    batch = tuple(name for name in shared if name in needed)
    summed = tuple(name for name in shared if name not in needed)
    of_left = tuple(name for name in left if name not in shared)
    of_right = tuple(name for name in right if name not in shared)
    names = (*batch, *of_left, *of_right)
    shape = tuple(sizes[name] for name in names)
    if not summed:
        first = _spread(left, names, sizes)
        second = _spread(right, names, sizes)
        return names, lambda a, b: apply(multiply, (first(a), second(b)))
    flip_a, first = _as_matrices(left, batch, of_left, summed, sizes)
    flip_b, second = _as_matrices(right, batch, of_right, summed, sizes)
    flags = {"transpose_a": flip_a, "transpose_b": not flip_b}

    def run(a: Tensor, b: Tensor) -> Tensor:
        y = apply(contraction.matmul, (first(a), second(b)), flags)
        return y if y._spec.shape == shape else reshape(y, shape=shape)

    return names, run


def _spread(names: tuple, whole: tuple, sizes: dict) -> Callable:
    """The axes of an operand in their places among those of the result, where it broadcasts."""
    order = tuple(name for name in whole if name in names)
    shape = tuple(sizes[name] if name in names else 1 for name in whole)
    arrange = _arranged(names, order)

    def run(x: Tensor) -> Tensor:
        x = arrange(x)
        return x if x._spec.shape == shape else reshape(x, shape=shape)

    return run


def _as_matrices(
    names: tuple, batch: tuple, rows: tuple, columns: tuple, sizes: dict
) -> tuple[bool, Callable]:
    """An operand as matrices, and whether they are to be transposed: so, nothing may have to move.

    `columns` stand in the same order for both operands.
    """
    flip = names == (*batch, *columns, *rows) and bool(rows)
    order = (*batch, *columns, *rows) if flip else (*batch, *rows, *columns)
    arrange = _arranged(names, order)
    height, width = (math.prod(sizes[name] for name in part) for part in (rows, columns))
    shape = (*(sizes[name] for name in batch), *((width, height) if flip else (height, width)))

    def run(x: Tensor) -> Tensor:
        x = arrange(x)
        return x if x._spec.shape == shape else reshape(x, shape=shape)

    return flip, run
