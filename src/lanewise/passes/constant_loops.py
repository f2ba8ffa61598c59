"""Write out the loops whose rounds the text counts, so that each access has its own place.

for v in range(3): load a[y + v, x]: a_1; s = s + a_1   ->   load a[y, x]: a_1.0; s = s + a_1.0
                                                             load a[y + 1, x]: a_1.1; ...
A window in loops is a stencil then: passes see which elements neighbouring threads share, tests of
edges are conditions of each, and local arrays with literal places are registers. The order of
the arithmetic stays, and so does every bit.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.reductions import first_access
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import (
    blocks,
    ends_early,
    expressions,
    reads,
    rename,
    rewrite_block,
    rewrite_statement,
    statements,
    writes,
    written_in,
)
from lanewise.passes.constant_folding import fold_block

ROUNDS, NEST, LONGEST = 32, 128, 600
"""Rounds of a loop that is written out, rounds of a nest of them, and statements afterwards."""


def legal(kernel: ir.Kernel) -> str | None:
    """Why the pass does not apply, or None."""
    if any(_values(s) is not None for s in statements(kernel.body)):
        return None
    return f"it has no loop of at most {ROUNDS} rounds whose bounds are numbers of its text"


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its short constant loops written out."""
    if legal(kernel) is not None:
        return kernel
    body, _ = _Writer(_read_in(kernel.body)).block(kernel.body)
    return kernel if body == kernel.body else replace(kernel, body=body)


class _Writer:
    """Goes through a body. `read`: how often each variable is read, in the whole of the kernel."""

    def __init__(self, read: dict[str, int]) -> None:
        self.read = read

    def block(self, block: ir.Block) -> tuple[ir.Block, int]:
        """A block, and the rounds of the longest nest in it that was written out."""
        done: list[ir.Statement] = []
        longest = 1
        for s in block:
            new, rounds = self.statement(s)
            done += new
            longest = max(longest, rounds)
        return tuple(done), longest

    def statement(self, s: ir.Statement) -> tuple[ir.Block, int]:
        if not blocks(s):
            return (s,), 1
        # what is surely too long is not written out to be dropped
        if (values := _values(s)) is not None and _least_rounds(s) <= NEST:
            assert isinstance(s, ir.For)
            new, rounds = self.written_out(s, values)
            # a loop that stays in another one stays one loop, whose rounds others may share
            if rounds <= NEST and _length(new) <= LONGEST and not _loops(new):
                return new, rounds
        longest = 1

        def inside(block: ir.Block) -> ir.Block:
            nonlocal longest
            new, rounds = self.block(block)
            longest = max(longest, rounds)
            return new

        return (rewrite_statement(s, lambda e: e, inside),), longest

    def written_out(self, s: ir.For, values: range) -> tuple[ir.Block, int]:
        """Every round, with its own names for what belongs to it, and how many rounds those of
        inner loops come to.
        """
        inside = _read_in(s.body)
        left = {n for n, count in self.read.items() if count > inside.get(n, 0)}
        given = {n for n in written_in(s.body) if first_access(s.body, n) != "read"} - left
        body: list[ir.Statement] = []
        count = 0
        for n, value in enumerate(values):
            copy = rename(s.body, {name: f"{name}.{n}" for name in given})
            self.read |= {f"{name}.{n}": inside.get(name, 0) for name in given}
            known = {s.variable: ir.Literal(value, s.start.type)}
            copy = _with_numbers(copy, known, {f"{name}.{n}" for name in given})
            new, rounds = self.block(copy)  # bounds of inner loops are numbers now
            body += new
            count += rounds
        return tuple(body), count


def _with_numbers(
    body: ir.Block, known: dict[str, ir.Literal], own: set[str]
) -> tuple[ir.Statement, ...]:
    """The statements of a round, in which variables whose numbers are known are these numbers.

    known: at the beginning. own: variables of the round, of which those that are given a number
    once become known.
    """
    given = [n for s in statements(body) for n in writes(s)]

    def number(e: ir.Expression) -> ir.Expression:
        return known.get(e.name, e) if isinstance(e, ir.Local) else e

    done: list[ir.Statement] = []
    for s in body:
        new = fold_block(rewrite_block((s,), number))
        match new:
            case (ir.Assign(name=name, value=ir.Literal() as value),) if (
                name in own and given.count(name) == 1
            ):
                known[name] = value
            case _:
                done += new
    return tuple(done)


def _values(s: ir.Statement) -> range | None:
    """The values of the variable of a loop whose text has so few, each of which runs to the end."""
    match s:
        case ir.For(
            start=ir.Literal(value=start), stop=ir.Literal(value=stop), step=ir.Literal(value=step)
        ) if int(step):
            values = range(int(start), int(stop), int(step))
        case _:
            return None
    if len(values) > ROUNDS or ends_early(s.body) or s.variable in written_in(s.body):
        return None
    return values


def _least_rounds(s: ir.Statement) -> int:
    """The rounds of the longest nest that a statement surely comes to."""
    inside = max((_least_rounds(x) for b in blocks(s) for x in b), default=1)
    values = _values(s)
    return inside if values is None else inside * len(values)


def _loops(body: ir.Block) -> bool:
    return any(isinstance(x, ir.For | ir.While) for x in statements(body))


def _length(body: ir.Block) -> int:
    return sum(1 for _ in statements(body))


def _read_in(block: ir.Block) -> dict[str, int]:
    """How often each variable and local array is read."""
    found: dict[str, int] = {}
    for s in statements(block):
        names = [n for e in expressions(s) for n in reads(e)]
        if isinstance(s, ir.SetElement):
            names.append(s.array)  # whose other elements stay
        for name in names:
            found[name] = found.get(name, 0) + 1
    return found
