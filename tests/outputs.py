"""What a command prints beside what a document shows: all of it is compared but times, and what follows from them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

CLOCK = frozenset({
    "time", "factor", "model", "pairs/s", "GFLOP/s", "of bound", "MLUPS", "of copy", "GB/s", "cycles", "eq. 1",
})  # fmt: skip
"""Columns of times, of ratios of times, and of what a model of the machine says."""

NUMBER = r"[+-]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?"
BY_THE_CLOCK = re.compile(rf"{NUMBER} (?:ms|us|µs|ns|s|pairs/s|GFLOP/s|MLUPS|GB/s|times)(?!\w)")
FASTEST = re.compile(r"(?<=fastest is )'[^']*'")
WITHIN = 10.0
"""Of rounding: errors and drifts of two machines, whose kernels add in different orders."""


def differences(shown: str, printed: str) -> list[str]:
    """Lines of the document that the command does not print, in their order; `...` stands for any."""
    lines = printed.splitlines()
    heads: list[str] = []
    missed: list[str] = []
    at = 0
    for line in shown.splitlines():
        if not line.strip() or line.strip() == "..." or line[0] in "┏┡└":
            continue
        if line.startswith("┃"):
            heads = cells_of(line)
        found = next((k for k in range(at, len(lines)) if is_same(line, lines[k], heads, heads_at(lines, k))), None)
        if found is None:
            missed.append(line)
        else:
            at = found + 1
    return missed


def heads_at(lines: list[str], at: int) -> list[str]:
    """The heads of the table that a line is in."""
    return next((cells_of(line) for line in reversed(lines[: at + 1]) if line.startswith("┃")), [])


def cells_of(line: str) -> list[str]:
    return [c.strip() for c in line.strip("┃│ ").split("┃" if line.startswith("┃") else "│")]


def is_same(shown: str, printed: str, heads: list[str], others: list[str]) -> bool:
    if shown.startswith("┃"):
        return printed.startswith("┃") and set(heads) - {"of bound"} <= set(cells_of(printed))
    if not shown.startswith("│"):
        return is_same_text(shown, printed)
    if not printed.startswith("│"):
        return False
    mine, theirs = (dict(zip(h, cells_of(r), strict=False)) for h, r in ((heads, shown), (others, printed)))
    return all(is_same_text(cell, theirs.get(head, "")) for head, cell in mine.items() if head not in CLOCK)


def is_same_text(shown: str, printed: str) -> bool:
    wanted, found = (re.sub(FASTEST, "#", re.sub(BY_THE_CLOCK, "#", x.strip())) for x in (shown, printed))
    if wanted.endswith("...}"):  # the first entries of a line of JSON
        wanted = wanted.removesuffix(" ...}")
        found = found[: len(wanted)]
    texts = re.split(NUMBER, wanted), re.split(NUMBER, found)
    if texts[0] != texts[1]:
        return False
    return all(is_near(*pair) for pair in zip(re.findall(NUMBER, wanted), re.findall(NUMBER, found), strict=True))


def is_near(shown: str, printed: str) -> bool:
    """Errors, which have an exponent, by their size; integers exactly; others to two of the last digit."""
    a, b = (float(x.replace(",", "")) for x in (shown, printed))
    if "e-" in shown or "e-" in printed:
        return bool(a and b) and abs(math.log10(abs(a / b))) <= math.log10(WITHIN)
    digits = len(shown.partition(".")[2])
    return abs(a - b) <= 2.001 * 10.0**-digits if digits else a == b


def numbers_of(text: str) -> Iterator[float]:
    yield from (float(x.replace(",", "")) for x in re.findall(NUMBER, text))
