"""Einstein summation."""

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
    """Computes the sum of products of `inputs` that `equation` describes.

    Each axis of an input has a letter. Axes with the same letter are matched, and letters that are
    missing after the arrow are summed over. An ellipsis stands for any number of axes, which
    broadcast. Without an arrow, letters that appear once are kept, in alphabetical order. Three or
    more inputs are multiplied in the cheapest order; `optimize`, "greedy" or "optimal", selects how
    to search for it.

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
    terms, output = _parse(equation.replace(" ", ""))
    if len(terms) != len(inputs):
        raise ValueError(
            f"einsum: {equation!r} describes {len(terms)} inputs. Received: {len(inputs)}."
        )
    if optimize not in _PATHS:
        raise KeyError(f"einsum: `optimize` must be one of {', '.join(map(repr, _PATHS))}.")
    tensors = same_dtype(*inputs)
    shapes = tuple(x._spec.shape for x in tensors)
    operands = list(tensors)
    for positions, step in _program(terms, output, shapes, _PATHS[optimize]):
        parts = [operands.pop(position) for position in positions]
        operands.append(step(*parts))
    (y,) = operands
    return apply(identity, (y,)) if y is tensors[0] else y


@functools.lru_cache(maxsize=256)
def _parse(equation: str) -> tuple[tuple[str, ...], str]:
    """Returns the labels of each input and of the result."""
    if not _EQUATION.fullmatch(equation):
        raise ValueError(
            f"einsum: {equation!r} is not a valid equation. Expected letters for axes, at most one "
            "ellipsis per input, commas between inputs, and the result after '->'."
        )
    before, arrow, output = equation.partition("->")
    terms = tuple(before.split(","))
    letters = before.replace(",", "").replace("...", "")
    if not arrow:
        kept = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        output = "..." * ("..." in before) + "".join(kept)
    named = output.replace("...", "")
    if len(set(named)) < len(named):
        raise ValueError(f"einsum: a label appears more than once in the result {output!r}.")
    missing = sorted(set(named) - set(letters))
    if missing:
        raise ValueError(
            f"einsum: the result has label {missing[0]!r}, which is in none of the inputs."
        )
    return terms, output


# A step of the program removes the operands at some positions of the list and appends their product
# at the end. Labels are letters, or negative numbers for the axes under an ellipsis, counted from
# the last.

Step = tuple[tuple[int, ...], Callable]


@functools.lru_cache(maxsize=256)
def _program(terms: tuple[str, ...], output: str, shapes: tuple, path: str) -> list[Step]:
    labels = [
        _axis_labels(term, shape, i)
        for i, (term, shape) in enumerate(zip(terms, shapes, strict=True))
    ]
    sizes = _sizes(labels, shapes)
    output_labels = _output_labels(output, sizes)
    steps: list[Step] = []
    operands: list[tuple] = []
    for i, (names, shape) in enumerate(zip(labels, shapes, strict=True)):
        others = {n for j, x in enumerate(labels) if j != i for n in x}
        names, simplify = _simplify(names, shape, sizes, others | set(output_labels))
        steps.append(((0,), simplify))
        operands.append(names)
    for pair in _contraction_order(operands, output_labels, sizes, path):
        left, right = (operands.pop(position) for position in pair)
        needed = set(output_labels).union(*operands)
        names, product = _multiply_pair(left, right, needed, sizes)
        steps.append((pair, product))
        operands.append(names)
    steps.append(((0,), _transposed_to(operands[0], output_labels)))
    return steps


def _axis_labels(term: str, shape: tuple, index: int) -> tuple:
    """Returns a label for each axis of an input."""
    front, dots, back = term.partition("...")
    free = len(shape) - len(front) - len(back)
    if free < 0 or (free and not dots):
        bound = "at least " if dots else ""
        raise invalid(
            f"einsum: input {index} has shape {shape}. Expected {bound}{len(front) + len(back)} "
            f"axes, for {term!r}."
        )
    return (*front, *range(-free, 0), *back)


def _sizes(labels: list[tuple], shapes: tuple) -> dict:
    """Returns the size of each label; axes under an ellipsis broadcast."""
    sizes: dict = {}
    for names, shape in zip(labels, shapes, strict=True):
        for name, n in zip(names, shape, strict=True):
            size = sizes.setdefault(name, n)
            if size == n:
                continue
            if isinstance(name, str):
                raise invalid(
                    f"einsum: label {name!r} names axes of sizes {size} and {n}. Expected equal "
                    "sizes."
                )
            if 1 not in (size, n):
                raise invalid(
                    f"einsum: the axes under the ellipsis do not broadcast. Received: shapes "
                    f"{', '.join(map(str, shapes))}."
                )
            sizes[name] = max(size, n) if size and n else 0
    return sizes


def _output_labels(output: str, sizes: dict) -> tuple:
    front, dots, back = output.partition("...")
    ellipsis_axes = sorted(name for name in sizes if not isinstance(name, str))
    if ellipsis_axes and not dots:
        raise invalid(
            f"einsum: there are {len(ellipsis_axes)} axes under an ellipsis. Expected an ellipsis "
            f"in the result. Received: {output!r}."
        )
    return (*front, *ellipsis_axes, *back)


def _simplify(names: tuple, shape: tuple, sizes: dict, needed: set) -> tuple[tuple, Callable]:
    """Simplifies one operand before it is multiplied with others.

    Axes of size 1 that broadcast are dropped, diagonals are taken of repeated labels, and labels
    that no other operand and not the result has are summed over.
    """
    kept = [i for i, (name, n) in enumerate(zip(names, shape, strict=True)) if sizes[name] == n]
    squeezed = tuple(shape[i] for i in kept)
    names = tuple(names[i] for i in kept)
    single = tuple(dict.fromkeys(names))
    summed_axes = tuple(i for i, name in enumerate(single) if name not in needed)

    def run(x: Tensor) -> Tensor:
        if squeezed != shape:
            x = reshape(x, shape=squeezed)
        if single != names:
            x = _diagonals(x, names)
        return reduction.sum(x, axis=summed_axes, keepdims=False) if summed_axes else x

    return tuple(name for name in single if name in needed), run


def _diagonals(x: Tensor, names: tuple) -> Tensor:
    """Takes diagonals of repeated labels, so that each label has one axis."""
    order = tuple(dict.fromkeys(names))
    names = list(names)
    for name in order:
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            rest = [i for i in range(len(names)) if i not in (first, second)]
            x = matrices.diagonal(transpose(x, perm=(*rest, first, second)))
            names = [*(names[i] for i in rest), name]
    return _transposed_to(tuple(names), order)(x)


def _transposed_to(names: tuple, order: tuple) -> Callable:
    if names == order:
        return lambda x: x
    perm = tuple(names.index(name) for name in order)
    return lambda x: transpose(x, perm=perm)


def _contraction_order(
    operands: list[tuple], output_labels: tuple, sizes: dict, path: str
) -> list[tuple[int, ...]]:
    """Returns the pairs of operands to multiply, in order."""
    if len(operands) < 3:
        return [(0, 0)] * (len(operands) - 1)
    numbers = {name: i for i, name in enumerate(sizes)}
    arguments: list = []
    for names in operands:
        dummy = np.broadcast_to(np.zeros(()), [sizes[name] for name in names])
        arguments += [dummy, [numbers[name] for name in names]]
    path, _ = np.einsum_path(*arguments, [numbers[name] for name in output_labels], optimize=path)
    pairs = []
    for positions in path[1:]:
        first, *others = sorted(positions)
        for i, other in enumerate(others):
            pairs.append((first, other - 1 - i) if not i else (-1, other - 1 - i))
    return pairs


def _multiply_pair(left: tuple, right: tuple, needed: set, sizes: dict) -> tuple[tuple, Callable]:
    """Multiplies two operands, as one matrix product if anything is summed.

    Labels that only one operand has are needed later, because the others were summed before.
    """
    shared = [name for name in left if name in right]
    batch = tuple(name for name in shared if name in needed)
    summed = tuple(name for name in shared if name not in needed)
    free_left = tuple(name for name in left if name not in shared)
    free_right = tuple(name for name in right if name not in shared)
    names = (*batch, *free_left, *free_right)
    shape = tuple(sizes[name] for name in names)
    if not summed:
        first = _align(left, names, sizes)
        second = _align(right, names, sizes)
        return names, lambda a, b: apply(multiply, (first(a), second(b)))
    flip_a, first = _as_matrices(left, batch, free_left, summed, sizes)
    flip_b, second = _as_matrices(right, batch, free_right, summed, sizes)
    flags = {"transpose_a": flip_a, "transpose_b": not flip_b}

    def run(a: Tensor, b: Tensor) -> Tensor:
        y = apply(contraction.matmul, (first(a), second(b)), flags)
        return y if y._spec.shape == shape else reshape(y, shape=shape)

    return names, run


def _align(names: tuple, all_names: tuple, sizes: dict) -> Callable:
    """Returns a function that aligns the axes of an operand with the result, to broadcast."""
    order = tuple(name for name in all_names if name in names)
    shape = tuple(sizes[name] if name in names else 1 for name in all_names)
    arrange = _transposed_to(names, order)

    def run(x: Tensor) -> Tensor:
        x = arrange(x)
        return x if x._spec.shape == shape else reshape(x, shape=shape)

    return run


def _as_matrices(
    names: tuple, batch: tuple, rows: tuple, columns: tuple, sizes: dict
) -> tuple[bool, Callable]:
    """Returns whether to transpose an operand, and a function that reshapes it to matrices.

    Transposing in the product can avoid moving data. `columns` have the same order for both
    operands.
    """
    flip = names == (*batch, *columns, *rows) and bool(rows)
    order = (*batch, *columns, *rows) if flip else (*batch, *rows, *columns)
    arrange = _transposed_to(names, order)
    height, width = (math.prod(sizes[name] for name in part) for part in (rows, columns))
    shape = (*(sizes[name] for name in batch), *((width, height) if flip else (height, width)))

    def run(x: Tensor) -> Tensor:
        x = arrange(x)
        return x if x._spec.shape == shape else reshape(x, shape=shape)

    return flip, run
