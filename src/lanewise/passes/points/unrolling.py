"""Write the rounds of a tile out several times, so that passes see what neighbouring rounds read.

for $k.round in range(8): load t[$k.round, r]: u; s = s + u   ->   for $k.round in range(0, 8, 4):
                                                                     load t[$k.round, r]: u#0; s = s
                                                                     + u#0 load t[$k.round + 1, r]:
                                                                     u#1; s = s + u#1; ...
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.rounds import given_in_rounds
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered
from lanewise.ir.traverse import rename, rewrite_block, rewrite_statement, statements
from lanewise.passes.base import is_source_loop, refuse, source_loops

MOST = 8_192  # statements that a loop becomes
FEW = 2  # rounds that blocks at the edges write out
# rounds of a loop around one that is written out completely: what its rounds share falls together
AROUND = 2


def legal(kernel: ir.Kernel, factor: int) -> str | None:
    """Why the pass does not apply, or None."""
    if factor < 0:
        return f"a factor of {factor}"
    return None if source_loops(kernel) else "no loop of it is cut into tiles"


def apply(kernel: ir.Kernel, factor: int, *, joined: bool = True) -> ir.Kernel:
    """Write the innermost loops over the rounds of whole tiles out `factor` times, completely for
    0; raises `PlanError` without one.

    Blocks at the edges are few. Where they have a separate body (not `joined`) its loops are
    written out a few times at most, which spares the compiler half of its time.
    """
    if reason := legal(kernel, factor):
        raise refuse("unrolling", kernel, reason)
    if joined or (0 < factor <= FEW):
        return replace(kernel, body=_block(kernel.body, factor))
    split = kernel.body[-1]
    assert isinstance(split, ir.If)
    split = replace(split, then=_block(split.then, factor), otherwise=_block(split.otherwise, FEW))
    return replace(kernel, body=(*kernel.body[:-1], split))


def _block(block: ir.Block, factor: int) -> ir.Block:
    return tuple(new for s in block for new in _statement(s, factor))


def _statement(s: ir.Statement, factor: int) -> ir.Block:
    inner = rewrite_statement(s, lambda e: e, lambda b: _block(b, factor))
    count, rounds = rounds_of(s, factor)
    if count == 1:
        return (inner,)
    assert isinstance(inner, ir.For)
    if len(list(statements(inner.body))) * count > MOST:
        return (inner,)
    return _written_out(inner, count, whole=count == rounds)


def rounds_of(s: ir.Statement, factor: int) -> tuple[int, int]:
    """How often a statement is written out, once where it is no loop over the rounds of a whole
    tile, and how many rounds it has; longer ones than `MOST` are not.
    """
    if not (
        is_source_loop(s)
        and isinstance(s.stop, ir.Literal)
        and s.start == ir.Literal(0, s.start.type)
    ):
        return 1, 1
    if any(isinstance(x, ir.Break | ir.Continue) for x in s.body):
        return 1, 1
    around = any(is_source_loop(x) for x in statements(s.body))
    rounds = int(s.stop.value)
    count = (AROUND if not factor else 1) if around else factor or rounds
    return (1, rounds) if rounds % count else (count, rounds)


def _written_out(s: ir.Statement, count: int, *, whole: bool) -> ir.Block:
    assert isinstance(s, ir.For)
    own = given_in_rounds(s.body)
    variable = ir.Local(s.variable, s.start.type)
    body: list[ir.Statement] = []
    for n in range(count):
        value = ir.Literal(n, variable.type) if whole else build.add(variable, n)
        copy = rename(s.body, {name: numbered(name, n) for name in own})
        body += rewrite_block(copy, lambda e, value=value: value if e == variable else e)
    if whole:
        return tuple(body)
    return (replace(s, step=ir.Literal(count, s.start.type), body=tuple(body)),)
