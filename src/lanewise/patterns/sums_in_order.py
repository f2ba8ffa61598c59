"""What default plans make of kernels of a CPU that add floats to elements one after the other:
parts with their own sums, where these are few compared with the additions.

A part has a copy of the arrays, which is cleared before it and added behind it. An element of a
copy takes about half as long as an addition. So the copies of all parts may have a quarter as many
elements as there are additions, and a part has so many additions that it is worth a thread.
Nothing of a machine decides: the sums of a call have the same bits on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from lanewise.ir import nodes as ir
from lanewise.ir.pattern import SumsInOrder, Work
from lanewise.ir.traverse import adds_in_order, statements
from lanewise.language.target import Machine
from lanewise.planning.plan import CompletePlan

MOST = 16  # parts
SHARE = 4  # times as many additions as the parts have elements together
PART = 131_072  # additions: some 70 microseconds of one thread
KEPT = 1 << 26  # bytes of all parts, which caches hold
ROOM = 1 << 30  # and of those that are requested


def described(reference: ir.Kernel, work: Work) -> Work:
    """The work of a kernel, with what it adds in order."""
    adds = [
        s
        for s in statements(reference.body)
        if isinstance(s, ir.ScatterElement) and adds_in_order((s,))
    ]
    kinds = {s.array: s.value.type.size for s in adds}
    shapes = [(reference.array(n).shape, size) for n, size in kinds.items()]
    return replace(work, sums=SumsInOrder(len(adds), _sizes(shapes))) if adds else work


def _sizes(
    shapes: list[tuple[tuple[str | int, ...], int]],
) -> Callable[[Mapping[str, Any]], tuple[int, int]]:
    def of(environment: Mapping[str, Any]) -> tuple[int, int]:
        elements = nbytes = 0
        for shape, size in shapes:
            count = prod(int(environment[n]) if isinstance(n, str) else n for n in shape)
            elements, nbytes = elements + count, nbytes + count * size
        return elements, nbytes

    return of


def parts_of(machine: Machine, work: Work) -> int:
    """How many parts a default plan has."""
    sums = work.sums
    if sums is None or machine.target.has_blocks or not machine.target.compiled:
        return 1
    additions = work.targets * sums.additions
    fewest = max(1, sums.elements)
    most = min(MOST, additions // (SHARE * fewest), additions // PART, KEPT // max(1, sums.nbytes))
    return 1 << max(0, most.bit_length() - 1)


def unfit(machine: Machine, work: Work, plan: CompletePlan) -> str | None:
    """Why parts of a plan would take too much memory, or None."""
    if machine.target.has_blocks or work.sums is None or plan.parts < 2:
        return None
    nbytes = plan.parts * work.sums.nbytes
    if nbytes <= ROOM:
        return None
    return (
        f"Plan(parts={plan.parts}): the sums of all parts may take {nbytes:,} bytes; wanted at "
        f"most {ROOM:,}, which are {ROOM // work.sums.nbytes or 1} parts of these arrays"
    )
