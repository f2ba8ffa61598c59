"""What a kernel has around its statements: parameters, arrays and buffers, its own memory, and
how it is launched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

from lanewise.ir.expressions import Expression
from lanewise.language.record import Leaf
from lanewise.language.types import Scalar
from lanewise.layouts.base import Arrangement

__all__ = [
    "ArrayArgument",
    "BufferArgument",
    "Grid",
    "Parameter",
    "Scratch",
    "Series",
]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A scalar parameter. A mutable one is read and given back changed."""

    name: str
    type: Scalar
    mutable: bool = False


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array of records that a kernel reads or writes.

    `length` is set for arrays in shared memory.

    constant: the number of elements copied into a GPU's constant memory before each launch; 0 for
    none. shape: of an array of plain values in rows, which `LoadElement` and its kin index: for
    each dimension, the slowest first, the count or uniform that is its length, or the length itself
    (shared memory). narrow: it has so few elements that a place in it fits into 32 bits.
    multiple: its rows begin at multiples of that many elements, which can then be read at once.
    once: a kernel touches no element of it
    twice, so that caches need not keep it. ordered: each point writes the element at its own
    indices and nothing else does, so that points that follow each other write elements that do.
    apart: it shares no memory with what the kernel writes.
    """

    name: str
    leaves: tuple[Leaf, ...]
    arrangement: Arrangement
    written: bool = False
    space: Choice["global", "shared"] = "global"
    length: int = 0
    constant: int = 0
    shape: tuple[str | int, ...] = ()
    narrow: bool = False
    multiple: int = 1
    once: bool = False
    ordered: bool = False
    apart: bool = False


@dataclass(frozen=True, slots=True)
class BufferArgument:
    """After layout lowering: a pointer to scalars or short vectors within an array's allocation."""

    name: str
    array: str
    buffer: int
    type: Scalar
    lanes: int
    written: bool
    space: Choice["global", "shared"] = "global"
    length: int = 0
    constant: int = 0
    once: bool = False
    ordered: bool = False
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """How elements become threads: `lanes` elements per block of `threads` threads, the sources cut
    into `parts` along the second axis.

    `registers` and `min_blocks` cap the registers of a thread, where they are not 0.
    """

    extent: Expression
    lanes: int
    threads: int
    parts: int = 1
    min_blocks: int = 0
    registers: int = 0


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that a kernel needs besides its arguments: `length` elements of an array, all zero at
    first if `zeroed`.
    """

    array: str
    length: Expression
    zeroed: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """Launches one after the other, each for some neighbouring rounds of a loop.

    first, rounds: the counts that say with which value of the loop's variable a launch begins, and
    how many rounds it has. start, stop: of the loop, by counts and uniforms; step: from one launch
    to the next, below zero for loops that count down.
    """

    first: str
    rounds: str
    start: Expression
    stop: Expression
    step: int
