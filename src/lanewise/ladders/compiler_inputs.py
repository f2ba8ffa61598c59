"""The arrays of the benchmarks of the ladder `compiler`, and the names of libraries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lanewise as lw
from lanewise.ladders import compiler_kernels as kernels
from lanewise.ladders.compiler_answers import SMALL, Arrays, batch


@dataclass(frozen=True, slots=True)
class LibraryNames:
    """What a library has for a benchmark: its names on a GPU and on a CPU, and a call of (NumPy or
    CuPy, the arrays).

    A call writes the result array, or returns another one.
    """

    on_gpu: str
    on_cpu: str
    call: Callable[[Any, Arrays], Any]


def by_whole_arrays(call: Callable[[Any, Arrays], Any]) -> tuple[LibraryNames, ...]:
    """Expressions of whole arrays, where a library has no call for them."""
    return (LibraryNames("CuPy", "NumPy", call),)


def blas(call: Callable[[Any, Arrays], Any]) -> tuple[LibraryNames, ...]:
    """A routine of BLAS, under both of its names."""
    return (LibraryNames("cuBLAS", "BLAS", call),)


def halving(xp: Any, g: Arrays, plan: lw.Plan) -> tuple[list[lw.Call], Any]:
    """A launch a level, between two arrays in turn; the last one leaves the sum."""
    calls: list[lw.Call] = []
    source, turn = g["a"].reshape(-1), 0
    spare = [
        xp.empty((source.size + 1) // 2, xp.float32),
        xp.empty((source.size + 3) // 4, xp.float32),
    ]
    while source.size > 1 or not calls:
        target = spare[turn][: (source.size + 1) // 2]
        calls.append(kernels.halve.bind(a=source, c=target, grid=target.size, plan=plan))
        source, turn = target, 1 - turn
    return calls, source


def well_posed_triangle(xp: Any, name: str, array: Any) -> Any:
    """A triangle whose solutions are no larger than what they are solved for."""
    if name != "a":
        return array - xp.float32(0.5)
    n = array.shape[0]
    return xp.tril((array - xp.float32(0.5)) / xp.float32(n**0.5)) + xp.float32(2) * xp.eye(
        n, dtype=xp.float32
    )


def positive(xp: Any, name: str, array: Any) -> Any:
    """Random numbers as they are."""
    return array


def bins_of_numbers(numbers: int) -> int:
    """Of a histogram in which each number occurs about a hundred times."""
    return max(1, numbers // 96)


def binned(xp: Any, name: str, array: Any) -> Any:
    """Numbers of bins, evenly spread; and no counts."""
    return (array * xp.float32(bins_of_numbers(array.size) if name == "a" else 0)).astype(xp.int32)


def of_a(g: Arrays) -> tuple[int, ...]:
    """The shape of the array `a`."""
    return tuple(g["a"].shape)


def square(*names: str, times: int = 1) -> Callable[[int], dict[str, tuple[int, ...]]]:
    """Square matrices of these names."""
    return lambda n: dict.fromkeys(names, (times * n, times * n))


def vectors(n: int) -> dict[str, tuple[int, ...]]:
    """A matrix and two vectors."""
    return {"a": (4 * n, 4 * n), "x": (4 * n,), "c": (4 * n,)}


def picture(name: str, result: str) -> Callable[[int], dict[str, tuple[int, ...]]]:
    """A picture with an edge of one pixel, and its result."""
    return lambda n: {name: (n + 2, n + 2), result: (n, n)}


def small_matrices(n: int) -> dict[str, tuple[int, ...]]:
    """A batch of small matrices."""
    return dict.fromkeys("abc", (batch(n), SMALL, SMALL))


def edge(n: int) -> int:
    """Of a cube with eight times as many elements as a matrix."""
    return max(2, round((8 * n * n) ** (1 / 3)))
