"""How many elements a launch can count with their tasks, and with the sums that tasks keep."""

from __future__ import annotations

from lanewise.language.target import WARP
from lanewise.passes.reciprocity.groups import GROUPS
from lanewise.passes.reciprocity.shape import Mode

MOST = 2**31 - 2**16  # a launch counts with 32 bits
MOST_TARGETS = 16  # of a thread, that are worth naming: registers have room for few more
# with any number of targets there are few enough tasks
ALWAYS = WARP * 65_534


def too_many(count: int, targets: int, mode: Mode) -> str | None:
    """Why a launch cannot count the tasks of so many elements, or what they keep, and what is
    wanted; None where it can.
    """
    tiles = -(-count // (WARP * max(targets, 1)))
    tasks, limit = tiles * (tiles + 1) // 2, f"a launch on a GPU counts at most {MOST:,}"
    if tasks > MOST:
        enough = -(-count // ALWAYS)
        more = f"targets={enough} or more, or " if enough <= MOST_TARGETS else ""
        if more and mode == "scratch":  # which keeps too much with any number of targets
            more = f"reciprocity='ordered' with {more}"
        return (
            f"{count:,} elements have {tasks:,} pairs of tiles of {WARP * targets:,}, and {limit}; "
            f"wanted {more}reciprocity='off'"
        )
    copies = {"scratch": tiles, "grouped": min(tiles // 2 + 1, GROUPS)}.get(mode, 1)
    if (sums := count * copies) > MOST:
        other = "ordered" if mode == "scratch" else "off"
        return (
            f"it keeps {sums:,} partial sums of {count:,} elements, and {limit}; "
            f"wanted reciprocity={other!r}"
        )
    return None
