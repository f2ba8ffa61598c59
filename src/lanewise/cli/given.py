"""What a command gets about the arguments of a kernel: values and sizes, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from lanewise.sims import PRODUCTS
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.cli.target import Explained

Shape = tuple[int, ...]
T = TypeVar("T")


def read_values(texts: list[str]) -> dict[str, float]:
    """`["softening2=1e-4"]` as numbers by name; raises `InputError` for what is no number or comes
    twice.
    """
    numbers = _by_name("--set", texts, "NAME=NUMBER, as in --set softening2=1e-4", float)
    for text, number in zip(texts, numbers.values(), strict=True):
        if not math.isfinite(number):
            raise InputError(f"--set {text}: wanted a finite number")
    return numbers


def read_shapes(texts: list[str]) -> dict[str, Shape]:
    """`["a=512x512"]` as sizes by name; raises `InputError` for what is no sizes or comes twice."""
    shapes = _by_name("--shape", texts, "NAME=SIZES, as in --shape a=512x512", _sizes)
    for text, shape in zip(texts, shapes.values(), strict=True):
        if min(shape) < 1:
            raise InputError(f"--shape {text}: wanted sizes from 1 on")
    return shapes


def with_lists(
    kernel: Explained, lists: str | None, shapes: Mapping[str, Shape]
) -> Mapping[str, Shape]:
    """Sizes by name, with those that `--lists 1000x90` gives the one ragged array of a kernel.

    Raises `InputError` for what is no sizes of lists, and for a kernel without lists.
    """
    from lanewise.explanation.shapes import sample_roles
    from lanewise.patterns.segmentwise.kernel import Segmentwise

    if lists is None:
        return shapes
    if not isinstance(kernel, Segmentwise):
        raise InputError(
            f"--lists {lists} is of kernels of @lw.segmentwise, and {kernel.__name__} runs over no "
            "lists; --shape NAME=SIZES gives an array its sizes"
        )
    try:
        sizes = _sizes(lists)
    except ValueError:
        sizes = ()
    if len(sizes) < 2 or min(sizes) < 1:
        raise InputError(
            f"--lists {lists}: wanted how many lists each level has, and how many items each of "
            "them, from 1 on, as in --lists 1000x90"
        )
    (name,) = sample_roles(kernel).lists
    if name in shapes:
        raise InputError(f"--lists {lists}: --shape also sets the sizes of {name}")
    return {**shapes, name: sizes}


def refuse_of_files(
    name: str, shapes: Mapping[str, Shape], lists: str | None, near: float | None
) -> None:
    """Raises `InputError` where a product is given what belongs to kernels of files."""
    options = {"shape": bool(shapes), "lists": lists is not None, "near": near is not None}
    given = [n for n, there in options.items() if there]
    if given and name in PRODUCTS:
        raise InputError(f"--{given[0]} belongs to kernels of files, and {name} is a product")


def _by_name(option: str, texts: list[str], wanted: str, read: Callable[[str], T]) -> dict[str, T]:
    """What an option says by name, in the order of the texts."""
    found: dict[str, T] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name in found:
            raise InputError(f"{option} {text}: {name} is set twice")
        try:
            found[name] = read(value)
        except ValueError as error:
            raise InputError(f"{option} {text}: wanted {wanted}") from error
    return found


def _sizes(text: str) -> Shape:
    return tuple(int(n) for n in text.split("x"))
