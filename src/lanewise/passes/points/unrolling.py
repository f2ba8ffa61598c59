"""Write the rounds of a tile out several times, so that passes see what neighbouring rounds read.

    for $k.round in range(8): load t[$k.round, r]: u; s = s + u   ->   for $k.round in range(0, 8, 4):
                                                                         load t[$k.round, r]: u#0; s = s + u#0
                                                                         load t[$k.round + 1, r]: u#1; s = s + u#1; ...
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered
from lanewise.ir.traverse import blocks, expressions, flat_map, reads, rename, rewrite_block, statements, writes
from lanewise.passes.base import is_source_loop, refuse, source_loops

MOST = 32_768  # statements that a loop becomes


def legal(kernel: ir.Kernel, factor: int) -> str | None:
    """Why the pass does not apply, or None."""
    if factor < 0:
        return f"a factor of {factor}"
    return None if source_loops(kernel) else "no loop of it is cut into tiles"


def apply(kernel: ir.Kernel, factor: int) -> ir.Kernel:
    """Write the innermost loops over the rounds of whole tiles out `factor` times, completely for 0; raises `PlanError` without one."""
    if reason := legal(kernel, factor):
        raise refuse("unrolling", kernel, reason)
    outside = _read_outside(kernel)

    def change(s: ir.Statement) -> ir.Block:
        return _written_out(s, factor, outside) if _fits(s, factor) else (s,)

    return replace(kernel, body=flat_map(kernel.body, change))


def _fits(s: ir.Statement, factor: int) -> bool:
    if not (is_source_loop(s) and isinstance(s.stop, ir.Literal) and isinstance(s.start, ir.Literal)):
        return False
    rounds, every = int(s.stop.value) - int(s.start.value), list(statements(s.body))
    if any(isinstance(x, ir.For) and x.role == "sources" for x in every) or any(isinstance(x, ir.Break | ir.Continue) for x in s.body):
        return False
    count = factor or rounds
    return rounds % count == 0 and count > 1 and len(every) * count <= MOST


def _read_outside(kernel: ir.Kernel) -> dict[str, int]:
    """How many statements of a kernel read a variable."""
    count: dict[str, int] = {}
    for s in statements(kernel.body):
        for n in {n for e in expressions(s) for n in reads(e)}:
            count[n] = count.get(n, 0) + 1
    return count


def _written_out(s: ir.Statement, factor: int, everywhere: dict[str, int]) -> ir.Block:
    assert isinstance(s, ir.For)
    assert isinstance(s.stop, ir.Literal)
    count = factor or int(s.stop.value)
    whole = count == int(s.stop.value)
    own = _own(s.body)
    variable = ir.Local(s.variable, s.start.type)
    body: list[ir.Statement] = []
    for n in range(count):
        value = ir.Literal(n, variable.type) if whole else build.add(variable, n)
        copy = rename(s.body, {name: numbered(name, n) for name in own})
        body += rewrite_block(copy, lambda e, value=value: value if e == variable else e)
    if whole:
        return tuple(body)
    return (replace(s, step=ir.Literal(count, s.start.type), body=tuple(body)),)


def _own(body: ir.Block) -> set[str]:
    """The variables that every round gives a value before it reads them."""
    seen: set[str] = set()
    lasting: set[str] = set()
    for s in body:
        inside = [s, *(x for b in blocks(s) for x in statements(b))]
        used = {n for x in inside for e in expressions(x) for n in reads(e)}
        given = {n for x in inside for n in writes(x)}
        if isinstance(s, ir.Assign | ir.LoadElement | ir.DeclareArray):
            lasting |= used - seen
            seen |= given - lasting
        else:
            lasting |= (used | given) - seen
    return seen - lasting
