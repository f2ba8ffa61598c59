"""The arguments of a threadwise call: arrays as they lie in memory, an extent for each index,
uniform values.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from lanewise.frontend.function import Signature
from lanewise.frontend.scattered import scattered_arrays
from lanewise.ir.names import WORK, extent_of, length_of
from lanewise.language.target import CPU, PYTHON, is_gpu
from lanewise.launch.arguments import Arguments, classify_arguments
from lanewise.launch.shaped_arrays import NARROW, check_shaped, writable_checks
from lanewise.launch.sized import Repeats
from lanewise.patterns.tables.names import POINTS
from lanewise.patterns.words import add_words, moved
from lanewise.runtime.devices import default_device
from lanewise.runtime.memory import device_of, overlap
from lanewise.support.errors import ArgumentError

MOST = 2**62  # points
WIDEST = 16  # bytes of an access


def written_arrays(signature: Signature) -> tuple[str, ...]:
    """The arrays that a function assigns to, or scatters to."""
    tree = signature.source.tree
    stores = (
        n.value
        for n in ast.walk(tree)
        if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)
    )
    names = {n.id for n in stores if isinstance(n, ast.Name)} | scattered_arrays(signature.source)
    return tuple(n for n in signature.arrays if n in names)


def call_arguments(signature: Signature, values: Mapping[str, Any]) -> Arguments:
    """What a call brings, checked; raises `ArgumentError`."""
    kernel, written = signature.source.name, written_arrays(signature)
    arrays = {n: values[n] for n in signature.arrays}
    for name, array in arrays.items():
        check_shaped(f"{kernel}: {name!r}", array, signature.arrays[name], name in written)
    result = classify_arguments(signature, values, arrays_allowed=False)
    result.device = _device(kernel, arrays)
    for name in written:
        result.asked += writable_checks(f"{kernel}: {name!r}", arrays[name])
    _check_apart(kernel, arrays, written)
    extents = grid_extents(kernel, signature.indices, values["grid"])
    result.totals |= {extent_of(i): n for i, n in zip(signature.indices, extents, strict=True)}
    for name, array in arrays.items():
        result.totals |= {length_of(name, d): n for d, n in enumerate(array.shape)}
        result.added[name] = (array.reshape(-1), signature.arrays[name].element)
    add_words(signature, arrays, result)
    wide = any(n > NARROW for n in result.totals.values())
    # a sum has a loop over rows of rows
    wide = wide or (bool(signature.results) and math.prod(extents) > NARROW)
    narrow = all(a.size <= NARROW for a in arrays.values())
    result.variant = _variant(wide, narrow, tuple(_multiple(a) for a in arrays.values()))
    result.totals[WORK] = _work(signature, extents, arrays)
    return result


def _variant(wide: Hashable, narrow: Hashable, multiples: tuple[int, ...]) -> tuple[Hashable, ...]:
    return (wide, narrow, multiples) if max(multiples, default=1) > 1 else (wide, narrow)


def elsewhere(signature: Signature, arguments: Arguments, device: str) -> Arguments:
    """What arguments on the host would be on another device, each array at the beginning of an
    allocation.
    """
    there = moved(signature, arguments, device)
    if not is_gpu(device):
        return there
    wide, narrow, *_ = arguments.variant
    multiples = tuple(
        _rows_of(arguments.totals[length_of(n, kind.rank - 1)], kind.element.size)
        for n, kind in signature.arrays.items()
    )
    return replace(there, variant=_variant(wide, narrow, multiples))


def counts(name: str, arguments: Arguments) -> Mapping[str, int]:
    """The points of the index space, the extents and the lengths of arrays."""
    extents = [n for key, n in arguments.totals.items() if key.endswith(".extent")]
    return {POINTS: math.prod(extents), **arguments.totals}


def repeats(signature: Signature, arguments: Arguments) -> Repeats:
    """Where calls like this one run, and which of their arrays share no memory."""
    written, names = written_arrays(signature), list(signature.arrays)
    device = arguments.device
    now = _host_device if device in (CPU.name, PYTHON.name) else lambda: device
    apart = tuple((a, b) for a in written for b in names if a != b and (b not in written or a < b))
    return Repeats(now, apart, whole=tuple(names))


def _work(signature: Signature, extents: tuple[int, ...], arrays: Mapping[str, Any]) -> int:
    """About how many turns of inner loops a value of the slowest index takes: a user's loop is
    taken for as long as an array.
    """
    loops = any(isinstance(n, ast.For | ast.While) for n in ast.walk(signature.source.tree))
    longest = max((n for a in arrays.values() for n in a.shape), default=1) if loops else 1
    return math.prod(extents[1:]) * longest


def _multiple(array: Any) -> int:
    """How many elements a GPU may read at once from the beginning of each row of an array: 16 bytes
    at most.
    """
    if isinstance(array, np.ndarray) or not array.size:
        return 1
    return _rows_of(array.shape[-1], array.itemsize, int(array.data.ptr))


def _rows_of(length: int, size: int, start: int = 0) -> int:
    """The same for rows of so many elements of this size that begin at an address."""
    widths = (w for w in (4, 2) if w * size <= WIDEST)
    return next((w for w in widths if length % w == 0 and start % (w * size) == 0), 1)


# ------------------------------------------------------------ arrays


def _device(kernel: str, arrays: Mapping[str, Any]) -> str:
    """Where the arrays lie; they have to lie together."""
    places = {n: device_of(a) for n, a in arrays.items()}
    kinds = set(places.values())
    if len(kinds) > 1:
        lie = ", ".join(
            f"{n} on {'the host' if p == CPU.name else repr(p)}" for n, p in places.items()
        )
        raise ArgumentError(
            f"{kernel}: the arrays lie on different devices ({lie}); bring them to one"
        )
    device = kinds.pop()
    return _host_device() if device == CPU.name else device


def _host_device() -> str:
    """Arrays of NumPy are for the CPU, or for the interpreter where that is requested."""
    return PYTHON.name if default_device() == PYTHON.name else CPU.name


def _check_apart(kernel: str, arrays: Mapping[str, Any], written: tuple[str, ...]) -> None:
    """Threads write while others read, in any order: what is written has its own memory."""
    for name in written:
        for other in arrays:
            if other != name and overlap(arrays[name], arrays[other]):
                raise ArgumentError(
                    f"{kernel}: {name!r} is written, and shares memory with {other!r}; give it "
                    "its own memory"
                )


# ------------------------------------------------------------ extents


def grid_extents(kernel: str, indices: tuple[str, ...], grid: Any) -> tuple[int, ...]:
    """How many values each index has, by `grid=`: a number for a single index, else a tuple with
    one for each.
    """
    extents: tuple[Any, ...] = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    whole = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in extents)
    if not whole or len(extents) != len(indices) or any(n < 0 for n in extents):
        names = f"{indices[0]}" if len(indices) == 1 else f"({', '.join(indices)})"
        example = (
            "grid=len(a)" if len(indices) == 1 else f"grid=({', '.join('n' for _ in indices)})"
        )
        raise ArgumentError(
            f"{kernel}: grid= says how many values {names} "
            f"{'has' if len(indices) == 1 else 'have'}: wanted {example}, "
            f"{'an integer' if len(indices) == 1 else f'{len(indices)} integers'} from 0 "
            f"on, found {grid!r}"
        )
    lengths = tuple(int(n) for n in extents)
    if (points := math.prod(lengths)) > MOST:
        raise ArgumentError(
            f"{kernel}: grid={grid!r} has {points:,} points; 64 bits count up to {MOST:,}"
        )
    return lengths
