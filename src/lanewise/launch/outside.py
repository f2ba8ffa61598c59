"""What is said of an index outside of its array: before a call that cannot be right, and of an
element or thread that a test found.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise.analysis.bounds import Reached
from lanewise.ir import nodes as ir
from lanewise.passes.index_tests import MOST, IndexFailure
from lanewise.support.errors import ArgumentError, VerificationError, located


def surely_outside(
    kernel: str, r: Reached, shape: Sequence[int], with_what: str, hint: str
) -> ArgumentError:
    """Of a call that cannot be right. with_what: the numbers of the call that decide it."""
    s, (low, high) = r.statement, r.span
    reach = f"goes from {low} to {high}" if low != high else f"is {low}"
    what = f"index {r.dimension} {reach}" if len(s.indices) > 1 else f"the index {reach}"
    return ArgumentError(
        located(
            f"{kernel}: {s.array!r} is {_verb(s)} outside of its elements",
            s.location,
            found=f"{what} with {with_what}, and {s.array!r} has the shape {tuple(shape)}",
            wanted=_inside(r.length),
            hint=hint,
        )
    )


def was_outside(
    kernel: str, s: ir.ElementAccess, f: IndexFailure, where: str, shape: Sequence[int]
) -> VerificationError:
    """Of the first failure that tests found. where: its element or its thread."""
    index = {MOST: f"{f.index} or more", -MOST - 1: f"{f.index} or less"}.get(f.index, str(f.index))
    what = f"index {f.dimension} is {index}" if len(s.indices) > 1 else f"the index is {index}"
    return VerificationError(
        located(
            f"{kernel}: {s.array!r} is {_verb(s)} outside of its elements",
            s.location,
            found=f"{what} in {where}, and {s.array!r} has the shape {tuple(shape)}",
            wanted=_inside(shape[f.dimension]),
        )
    )


def _verb(s: ir.ElementAccess) -> str:
    return "read" if isinstance(s, ir.LoadElement) else "written"


def _inside(length: int) -> str:
    return f"0 to {length - 1}" if length else "no access: there are no elements"
