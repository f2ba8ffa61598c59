"""Limits of the numbers of a plan: those of a field, and of the code that several write out."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from lanewise.support.checks import shown
from lanewise.support.errors import PlanError

MOST_COPIES = 4_096  # of a statement that a plan may write out
MOST_LENGTH = 30_000  # of a kernel: half a minute to a minute of NVRTC or LLVM
# of each of these there is a copy for each of the others
COPYING = ("targets", "rows", "layers", "unroll")


def copies_of(plan: object) -> int:
    """How often a plan writes a statement out, as far as it says so."""
    return prod(max(getattr(plan, n) or 1, 1) for n in COPYING)


def check_limits(plan: object, limits: Mapping[str, tuple[int, int]]) -> None:
    """Raise `PlanError` for integers beyond what is declared of their fields, and for code
    that would be too long.
    """
    for name, (least, most) in limits.items():
        value: Any = getattr(plan, name)
        if value is None:
            continue
        if not least <= value <= most:
            raise PlanError(
                f"Plan({name}={shown(value)}): wanted an integer from {least:,} to {most:,}"
            )
    if (copies := copies_of(plan)) > MOST_COPIES:
        named = {n: v for n in COPYING if (v := getattr(plan, n)) is not None and v > 1}
        shape, product = ", ".join(f"{n}={v}" for n, v in named.items()), " x ".join(named)
        raise PlanError(
            f"Plan({shape}): {product} are {copies:,} copies of a statement; wanted at most "
            f"{MOST_COPIES:,}"
        )
