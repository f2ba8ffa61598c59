"""Which values depend on which.

The variables whose values depend on others, through arithmetic, memory, branches and loops.
"""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import expressions, reads, statements, used_by, writes


def spread(
    body: ir.Block, names: set[str], without: tuple[type[ir.Statement], ...] = ()
) -> set[str]:
    """These variables and all whose value depends on them, but through statements of some kinds."""
    names = set(names)
    parts = [
        (control(s), [n for x in statements((s,)) for n in writes(x)])
        for s in statements(body)
        if not isinstance(s, without)
    ]
    while True:
        before = len(names)
        for used, written in parts:
            if not used.isdisjoint(names):
                names.update(written)
        if len(names) == before:
            return names


def spread_in_lanes(body: ir.Block, names: set[str]) -> set[str]:
    """As `spread`, for lanes that run together.

    All of them go round a loop in a branch that only some take, so that its variable is the same in
    all, and so are its bounds: what is assigned for loops alone, wherever it is assigned the same
    expression, of values that are the same in all lanes.
    """
    varying = spread(body, names, without=(ir.Agreed,))  # the least of all lanes
    loops = [s for s in statements(body) if isinstance(s, ir.For)]
    others = [s for s in statements(body) if not isinstance(s, ir.For)]
    assigned = {n for s in others for n in writes(s)}
    read = {n for s in others for e in expressions(s) for n in reads(e)}
    values: dict[str, set[ir.Expression | None]] = {}
    for s in others:
        for n in set(writes(s)) - read:
            values.setdefault(n, set()).add(s.value if isinstance(s, ir.Assign) else None)
    bounds = {n: value for n, (value, *more) in values.items() if value is not None and not more}
    while True:
        differing = {
            s.variable
            for s in loops
            if varying & {n for e in (s.start, s.stop, s.step) for n in reads(e)}
        }
        uniform = {s.variable for s in loops} - assigned - differing
        uniform |= {n for n, value in bounds.items() if varying.isdisjoint(reads(value))}
        if varying.isdisjoint(uniform):
            return varying
        varying -= uniform


def control(s: ir.Statement) -> set[str]:
    """What decides what a statement does: its expressions, and the conditions under which a loop is
    left.
    """
    used = used_by(s)
    if isinstance(s, ir.For | ir.While):
        used |= _leaving(s.body, frozenset())
    return used


def _leaving(block: ir.Block, around: frozenset[str]) -> set[str]:
    used: set[str] = set()
    for s in block:
        match s:
            case ir.Break() | ir.Continue():
                used |= around
            case ir.If():
                inner = around | set(reads(s.condition))
                used |= _leaving(s.then, inner) | _leaving(s.otherwise, inner)
            case _:
                pass
    return used
