"""Annotations of threadwise functions: indices of threads, and arrays of one to three
dimensions.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lanewise.language import types as t
from lanewise.language.vectors import type_of_annotation
from lanewise.support.errors import ArgumentTypeError

__all__ = ["Array1", "Array2", "Array3", "ArrayType", "array_of_annotation", "index", "is_index"]

Element = TypeVar("Element")


class IndexName:
    """The annotation of a thread index, an integer."""

    def __repr__(self) -> str:
        return "lanewise.index"

    def __reduce__(self) -> str:
        return "index"


if TYPE_CHECKING:
    index = int  # for a type checker an index is the integer that it behaves like
else:
    index = IndexName()


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Scalars in rows, the last index the fastest."""

    element: t.Scalar
    rank: int

    def __str__(self) -> str:
        return f"Array{self.rank}[{self.element}]"


class _Array:
    """What an annotation of an array has in common with the array that a call brings."""

    def __init__(self) -> None:
        raise ArgumentTypeError(
            f"lw.{type(self).__name__} is an annotation; a call takes arrays of NumPy or CuPy, and "
            "so does kernel.python"
        )

    def __len__(self) -> int:
        raise NotImplementedError


class Array1(_Array, Generic[Element]):
    """An array of one dimension: `a: lw.Array1[lw.f32]` as a parameter of a threadwise function,
    with elements `a[i]`.

    A call passes a contiguous array of NumPy or CuPy with this type of element. `len(a)` and
    `a.shape[0]` are its length.
    """

    if TYPE_CHECKING:
        shape: tuple[int]

        def __getitem__(self, place: int) -> Element: ...
        def __setitem__(self, place: int, value: Element) -> None: ...


class Array2(_Array, Generic[Element]):
    """An array of two dimensions: `a: lw.Array2[lw.f32]`, `a[y, x]`, `a.shape[1]`, `len(a)`; see
    `Array1`.
    """

    if TYPE_CHECKING:
        shape: tuple[int, int]

        def __getitem__(self, place: tuple[int, int]) -> Element: ...
        def __setitem__(self, place: tuple[int, int], value: Element) -> None: ...


class Array3(_Array, Generic[Element]):
    """An array of three dimensions: `a: lw.Array3[lw.f32]`, `a[z, y, x]`, `a.shape[2]`, `len(a)`;
    see `Array1`.
    """

    if TYPE_CHECKING:
        shape: tuple[int, int, int]

        def __getitem__(self, place: tuple[int, int, int]) -> Element: ...
        def __setitem__(self, place: tuple[int, int, int], value: Element) -> None: ...


_RANKS: dict[Any, int] = {Array1: 1, Array2: 2, Array3: 3}


def is_index(annotation: Any) -> bool:
    """Whether an annotation is that of an index."""
    return isinstance(annotation, IndexName)


def is_array(annotation: Any) -> bool:
    """Whether an annotation is that of an array, of whatever it says."""
    return (
        typing.get_origin(annotation) in _RANKS or annotation in _RANKS
        if _hashable(annotation)
        else False
    )


def _hashable(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


def array_of_annotation(annotation: Any) -> ArrayType | None:
    """The type that an annotation of an array names; None where it is none, or has no scalars."""
    rank = _RANKS.get(typing.get_origin(annotation))
    if rank is None:
        return None
    element = type_of_annotation(typing.get_args(annotation)[0])
    return ArrayType(element, rank) if isinstance(element, t.Scalar) else None
