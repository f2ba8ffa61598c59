"""What a value of a plan's field means, in words, on a GPU (`blocks`) or a CPU."""

from __future__ import annotations

from lanewise.support.numerals import counted


def targets(value: int, blocks: bool) -> str:
    """Targets of a thread, or of a loop."""
    if value == 1:
        return f"1 target per {'thread' if blocks else 'loop'}"
    return f"{value} targets per {'thread' if blocks else 'loop'} share every source that is loaded"


def targets_of_points(value: int, blocks: bool) -> str:
    """Points of a thread, or of a lane, along the index of neighbours."""
    owner = "thread" if blocks else "lane"
    return f"{counted(value, 'point', 'points')} per {owner} along the index of neighbours"


def tile(value: int, blocks: bool) -> str:
    """Sources that are staged, or summed together."""
    if not value:
        return "sources are read one by one"
    if blocks:
        return f"{value} sources at a time are staged in shared memory by the whole block"
    return f"sources are summed in tiles of {value}"


def tile_of_points(value: int, blocks: bool) -> str:
    """Rounds that a block stages; on a CPU rounds or points, packed, transposed or kept."""
    if blocks or not value:
        return tile(value, blocks)
    return f"tiles of {value} rounds or points, which are packed, transposed or kept for reuse"


def parts(value: int, blocks: bool) -> str:
    """Who divides the sources; on a CPU what floats are added to in order."""
    if blocks:
        return (
            f"{value} blocks divide the sources of a target; a second kernel adds their sums in "
            "order"
            if value > 1
            else "one block reads all sources of its targets"
        )
    if value == 1:
        return "one thread adds all floats, one after the other"
    return (
        f"{value} parts have their own sums, which threads compute side by side; they are added in "
        "order"
    )


def unroll(value: int, blocks: bool) -> str:
    """How far the inner loop is unrolled."""
    return {0: "the inner loop is unrolled completely", 1: "the inner loop is as written"}.get(
        value, f"the inner loop is unrolled {value} times"
    )


def slices(value: int, blocks: bool) -> str:
    """Who shares the sources of a tile, or the rounds of a loop."""
    if value == 1:
        return "every thread reads every source"
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
        else "loops over points as written"
    )


def cap(value: int, blocks: bool) -> str:
    """Registers of a thread."""
    return (
        f"at most {value} registers per thread"
        if value
        else "as many registers per thread as the compiler chooses"
    )


def min_blocks(value: int, blocks: bool) -> str:
    """Blocks of a multiprocessor."""
    return (
        f"registers are capped so that {counted(value, 'block', 'blocks')} "
        f"{'fits' if value == 1 else 'fit'} on a multiprocessor"
        if value
        else "no cap on registers"
    )


def points(value: int, index: str) -> str:
    """Points of a thread along an index."""
    return (
        f"{value} points per thread along {index}"
        if value > 1
        else f"one point per thread along {index}"
    )


def vector_bits(value: int, blocks: bool) -> str:
    """Width of SIMD registers."""
    return (
        f"SIMD registers of {value} bits"
        if value
        else "SIMD registers as wide as the compiler prefers"
    )
