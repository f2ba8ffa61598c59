"""The numbers of blocks along each index, counted up from block to block.

    for block in range(begin, end): x_behind = block // x_blocks; x_round = block - x_behind *
    x_blocks; y_number = x_behind; ...
->  x_behind = begin // x_blocks; x_round = begin - x_behind * x_blocks; y_number = x_behind
    for block in range(begin, end): ...; x_round = x_round + 1; if x_round == x_blocks: x_round = 0;
    y_number = y_number + 1
A division at the start of each row holds up all loads of the row: a stencil with rows of 1.5 KB
takes a twentieth longer, one that tests its edges a seventh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import reads, used_in


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the first block of a range finds, the numbers that are counted up, the fastest first,
    with their counts; the rest of a block.
    """

    first: tuple[ir.Assign, ...]
    counted: tuple[tuple[str, str | None], ...]
    rest: ir.Block

    def next(self, names: Callable[[str], str]) -> list[str]:
        """The lines that continue to the next block."""
        lines, pad = list[str](), ""
        for number, count in self.counted:
            name = names(number)
            lines.append(f"{pad}{name} = {name} + 1")
            if count is not None:
                lines.append(f"{pad}if {name} == {names(count)}:")
                pad += "    "
                lines.append(f"{pad}{name} = 0")
        return lines


def numbers_of(block: ir.Local, body: ir.Block) -> Numbers | None:
    """The numbers that a block begins with; None where nothing is divided."""
    counted, first, at, rest = list[tuple[str, str | None]](), list[ir.Assign](), 0, block
    own = {block.name, *(s.name for s in body if isinstance(s, ir.Assign))}
    while at + 2 < len(body):
        match body[at : at + 3]:
            case (
                ir.Assign() as count,
                ir.Assign(value=ir.Binary("//", left, ir.Local() as by)) as behind,
                ir.Assign() as number,
            ) if left == rest and by.name == count.name and own.isdisjoint(reads(count.value)):
                behinds = ir.Local(behind.name, behind.value.type)
                if number.value != build.subtract(rest, build.multiply(behinds, by)):
                    return None
                first += count, behind, number
                counted.append((number.name, count.name))
                at, rest = at + 3, behinds
            case _:
                break
    if not counted or at >= len(body):
        return None
    last = body[at]
    if not isinstance(last, ir.Assign) or last.value != rest:
        return None
    others = body[at + 1 :]
    within = used_in(others)
    divided = {block.name, *(s.name for s in first)} - {n for pair in counted for n in pair}
    if within & divided:
        return None
    return Numbers((*first, last), (*counted, (last.name, None)), others)
