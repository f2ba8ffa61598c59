"""What a value of a plan's field means, in words, on a GPU (`blocks`) or a CPU."""

from __future__ import annotations


def targets(value: int, blocks: bool) -> str:
    """Targets of a thread, or of a loop."""
    if value == 1:
        return f"1 target a {'thread' if blocks else 'loop'}"
    if blocks:
        return f"{value} targets a thread share every source that is loaded"
    return (
        f"{value} targets a loop share every source that is loaded (for points whose lanes write: "
        "one behind the other)"
    )


def tile(value: int, blocks: bool) -> str:
    """Sources that are staged, or summed together."""
    if not value:
        return "sources are read one by one"
    if blocks:
        return f"{value} sources at a time are staged in shared memory by the whole block"
    return (
        f"sources are summed in tiles of {value} (for points: packed, turned, with loops around so "
        "many of them, or values kept)"
    )


def parts(value: int, blocks: bool) -> str:
    """Who divides the sources; on a CPU what floats are added to in order."""
    if blocks:
        return (
            f"{value} blocks divide the sources of a target; a second kernel adds their sums in "
            "order"
            if value > 1
            else "one block meets all sources of its targets"
        )
    if value == 1:
        return "one thread adds all floats, one after the other"
    return (
        f"{value} parts have their own sums, which threads make side by side and which are added "
        "in order"
    )


def unroll(value: int, blocks: bool) -> str:
    """How often the inner loop is written out."""
    return {0: "the inner loop is written out completely", 1: "the inner loop is as written"}.get(
        value, f"the inner loop is written out {value} times"
    )


def slices(value: int, blocks: bool) -> str:
    """Who shares the sources of a tile, or the rounds of a loop."""
    if value == 1:
        return "every thread meets every source"
    if blocks:
        return f"{value} groups of threads divide the sources of a tile"
    return f"{value} lanes of SIMD registers share the rounds of loops"


def across(value: int, blocks: bool) -> str:
    """What lies along neighbours."""
    if blocks:
        return (
            f"{value} threads of a block along the index of neighbours"
            if value
            else "blocks of 16 or 32 neighbours"
        )
    return (
        f"{value} neighbouring points are lanes of SIMD registers"
        if value
        else "points are loops as they are written"
    )


def cap(value: int, blocks: bool) -> str:
    """Registers of a thread."""
    return (
        f"a thread gets at most {value} registers"
        if value
        else "a thread gets as many registers as it likes"
    )


def min_blocks(value: int, blocks: bool) -> str:
    """Blocks of a multiprocessor."""
    return (
        f"registers are capped so that {value} blocks fit a multiprocessor"
        if value
        else "no cap on registers"
    )


def points(value: int, index: str) -> str:
    """Points of a thread along an index."""
    return (
        f"{value} points of a thread along {index}"
        if value > 1
        else f"one point of a thread along {index}"
    )


def vector_bits(value: int, blocks: bool) -> str:
    """Width of SIMD registers."""
    return (
        f"SIMD registers of {value} bits"
        if value
        else "SIMD registers as wide as the compiler prefers"
    )
