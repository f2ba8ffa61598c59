"""Several neighbouring rounds of a loop at once, so that what lies side by side is one access.

    for k in range(n): load a[y, k]: v; s += v
->  for k in range(0, n, 4): load a[y, k]: v#0, v#1, v#2, v#3; s += v#0; s += v#1; s += v#2; s +=
v#3 Rows have to begin at multiples (`ArrayArgument.multiple`); what is no multiple of a range runs
round by round, behind it.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.affine import Affine, AffineAccess, accesses
from lanewise.analysis.multiples import Definitions, is_multiple
from lanewise.analysis.reductions import is_steady
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered
from lanewise.ir.traverse import reads, rename, rewrite_block, statements, writes, written_in

MOST = 4  # elements of one access


def width(
    kernel: ir.Kernel, body: ir.Block, indices: tuple[str, ...], loops: tuple[ir.For, ...]
) -> int:
    """How many rounds of these loops should go together: as many as the accesses along them can
    bring at once, or 1.
    """
    plain = all(x.step == ir.Literal(1, x.step.type) for x in loops)
    if not plain or any(isinstance(s, ir.Continue) for x in loops for s in statements(x.body)):
        return 1
    multiples = {a.name: a.multiple for a in kernel.arrays}
    along = [
        a
        for a in accesses(body, indices)
        for x in loops
        if _is_direct(a, x) and a.stride(x.variable) == 1
    ]
    return max((multiples[a.array] for a in along if multiples[a.array] <= MOST), default=1)


def _is_direct(a: AffineAccess, loop: ir.For) -> bool:
    """Whether an access stands in a loop and in nothing inside of it."""
    return any(a.statement is s for s in loop.body)


def wide_accesses(
    kernel: ir.Kernel, body: ir.Block, indices: tuple[str, ...], loop: ir.For, across: int,
    sure: frozenset[str], meant: Definitions,
) -> tuple[ir.LoadElement | ir.StoreElement, ...]:  # fmt: skip
    """The accesses of a loop that `across` neighbouring rounds make at once."""
    multiples = {a.name: a.multiple for a in kernel.arrays}
    changed = frozenset(written_in(loop.body))
    candidates: list[ir.LoadElement | ir.StoreElement] = []
    for a in accesses(body, indices):
        s, last = a.statement, a.indices[-1]
        if (
            isinstance(s, ir.ScatterElement)
            or not _is_direct(a, loop)
            or multiples[a.array] % across
        ):
            continue
        if last is None or s.more:
            continue
        even = a.stride(loop.variable) == 1 and _even(last, loop.variable, across, sure, meant)
        if even and all(is_steady(i, changed) for i in s.indices):
            candidates.append(s)
    stored = [s.array for s in candidates if isinstance(s, ir.StoreElement)]
    order = [s for s in statements(loop.body) if isinstance(s, ir.LoadElement | ir.StoreElement)]
    late = {
        s.array
        for n, s in enumerate(order)
        if isinstance(s, ir.LoadElement)
        and any(isinstance(x, ir.StoreElement) and x.array == s.array for x in order[:n])
    }
    return tuple(s for s in candidates if s.array not in late and stored.count(s.array) <= 1)


def _even(
    last: Affine, variable: str, across: int, sure: frozenset[str], meant: Definitions
) -> bool:
    """Whether an index is a multiple in each round whose number is one."""
    if last.scaled or last.constant % across:
        return False
    if any(c % across for n, c in last.coefficients if n != variable):
        return False
    return all(c % across == 0 or is_multiple(e, across, sure, meant) for e, c in last.terms)


def several(
    loop: ir.For,
    across: int,
    wide: tuple[ir.LoadElement | ir.StoreElement, ...],
    kept: frozenset[str],
    also: frozenset[str] = frozenset(),
) -> ir.Block:
    """The body of `across` neighbouring rounds.

    `kept` are the variables that all rounds have in common; `also` those that each has from before.
    """
    wide = tuple(s for s in wide if isinstance(s, ir.LoadElement) or _may_wait(s, loop.body))
    local = [*also, *(n for s in statements(loop.body) for n in writes(s) if n not in kept)]
    loads: list[ir.Statement] = []
    stores: list[ir.Statement] = []
    rest = tuple(s for s in loop.body if not any(s is x for x in wide))
    copies: list[ir.Statement] = []
    variable = ir.Local(loop.variable, loop.start.type)
    for n in range(across):
        names = {x: numbered(x, n) for x in local}

        def moved(e: ir.Expression, n: int = n) -> ir.Expression:
            return (
                build.add(variable, n) if isinstance(e, ir.Local) and e.name == variable.name else e
            )

        copies += rewrite_block(rename(rest, names), moved)
    for s in wide:
        if isinstance(s, ir.LoadElement):
            first, *more = (numbered(s.name, n) for n in range(across))
            loads.append(replace(s, name=first, more=tuple(more)))
            continue
        values: list[ir.Expression] = []
        for n in range(across):
            only = ir.Assign("", s.value)
            (one,) = rename((only,), {x: numbered(x, n) for x in local})
            (one,) = rewrite_block(
                (one,),
                lambda e, n=n: (
                    build.add(variable, n)
                    if isinstance(e, ir.Local) and e.name == variable.name
                    else e
                ),
            )
            assert isinstance(one, ir.Assign)
            values.append(one.value)
        stores.append(replace(s, value=values[0], more=tuple(values[1:])))
    return (*loads, *copies, *stores)


def _may_wait(store: ir.StoreElement, body: ir.Block) -> bool:
    """Whether a store may stand behind its round: nothing behind it there changes what it stores,
    or stores in the same array.
    """
    place = next(n for n, s in enumerate(body) if s is store)
    behind = body[place + 1 :]
    again = any(
        isinstance(s, ir.StoreElement) and s.array == store.array for s in statements(behind)
    )
    return not again and not set(reads(store.value)) & written_in(behind)
