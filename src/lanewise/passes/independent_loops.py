"""One loop over independent data becomes several loops of one kernel (Carrillo, Siegel and Li,
2009, figure 1).

    for k: load a[k], b[k]; x += a * b; load c[k], d[k]; y += c / d
->  for k: load a[k], b[k]; x += a * b            then
    for k: load c[k], d[k]; y += c / d
Only what one loop needs is kept in registers while it runs: its pointers, its sums, its values.
Rounds are counted twice; nothing is loaded twice, and every sum is added in its order. Parts that
read one array stay together, as both would load it; integers made of the index of the loop are
computed in each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions, map_functions
from lanewise.ir.traverse import (
    blocks,
    ends_early,
    expressions,
    flat_map,
    loads,
    reads,
    statements,
    stores,
    writes,
)
from lanewise.passes.base import refuse

NO_LOOP = "it has no loop"


@dataclass(frozen=True, slots=True)
class _Part:
    """A statement of a loop's body, with all that is in it: the variables that it reads and
    changes, and the arrays.
    """

    place: int
    reads: frozenset[str]
    writes: frozenset[str]
    loaded: frozenset[str]
    stored: frozenset[str]


def legal(kernel: ir.Kernel) -> str | None:
    """Why the pass does not apply, or None."""
    bodies = (kernel.body, *(f.body for f in functions(kernel.body)))
    loops = [s for b in bodies for s in statements(b) if isinstance(s, ir.For)]
    if not loops:
        return NO_LOOP
    found = [_groups(s) for s in loops]
    if any(not isinstance(g, str) for g in found):
        return None
    return next(g for g in found if isinstance(g, str))


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its loops divided; inner loops first, so that loops around them may be
    divided as well. Raises `PlanError` for a kernel without such a loop.
    """
    if reason := legal(kernel):
        raise refuse("loop splitting", kernel, reason)
    divided = map_functions(kernel, lambda f: replace(f, body=flat_map(f.body, _divided)))
    return replace(divided, body=flat_map(divided.body, _divided))


def _divided(s: ir.Statement) -> ir.Block:
    """A loop as several, or a statement as it is."""
    if not isinstance(s, ir.For) or isinstance(groups := _groups(s), str):
        return (s,)
    return tuple(replace(s, body=tuple(s.body[n] for n in places)) for places in groups)


def _groups(loop: ir.For) -> list[list[int]] | str:
    """The places in a loop's body of the statements of each loop that it becomes, or why it stays
    whole.
    """
    if ends_early(loop.body) or any(isinstance(s, ir.While) for s in loop.body):
        return "its loop may end before its last round"
    own = _rounds(loop)
    parts = [_part(n, s, own) for n, s in enumerate(loop.body)]
    changed = frozenset[str]().union(*(p.writes for p in parts))
    if not changed.isdisjoint(_read((loop.start, loop.stop, loop.step))):
        return "the rounds of its loop depend on what it computes"
    copied = _copied(loop, parts)
    groups: list[list[_Part]] = []
    for part in (p for p in parts if p.place not in copied):
        near = [g for g in groups if any(_why(part, other) for other in g)]
        groups = [g for g in groups if g not in near] + [[*(p for g in near for p in g), part]]
    if len(groups) < 2:
        return _reason(parts, copied)
    ordered = sorted(sorted(p.place for p in g) for g in groups)
    whole = [{*g, *_needed(g, parts, copied)} for g in ordered]
    rest = copied.difference(*whole)  # of values that are read after the loop
    whole[0] |= rest | _needed([*rest], parts, copied)
    return [sorted(g) for g in whole]


def _rounds(loop: ir.For) -> frozenset[str]:
    """The variables of a loop and of those in it that count rounds and serve nothing else."""
    inner = [s for s in statements(loop.body) if isinstance(s, ir.For)]
    counting = {s.variable for s in inner}
    others = (s for s in statements(loop.body) if not isinstance(s, ir.For))
    counting -= {n for s in others for n in writes(s)}
    return frozenset((counting - _free(loop.body, counting)) | {loop.variable})


def _free(block: ir.Block, names: set[str]) -> set[str]:
    """Those of the names that a block reads outside of the loops that count by them."""
    found: set[str] = set()
    for s in block:
        found |= _read(expressions(s)) & names
        bound = {s.variable} if isinstance(s, ir.For) else set[str]()
        for inner in blocks(s):
            found |= _free(inner, names - bound)
    return found


def _part(place: int, s: ir.Statement, own: frozenset[str]) -> _Part:
    """own: variables that count rounds, which no statement has from another one."""
    inside = tuple(statements((s,)))
    return _Part(
        place,
        _read(e for x in inside for e in expressions(x)) - own,
        frozenset(n for x in inside for n in writes(x)) - own,
        frozenset(n for x in inside for n in loads(x)),
        frozenset(n for x in inside for n in stores(x)),
    )


def _read(several: Iterable[ir.Expression]) -> frozenset[str]:
    return frozenset(n for e in several for n in reads(e))


def _why(one: _Part, other: _Part) -> str:
    """Why two statements stay in one loop, or nothing."""
    if one.writes & (other.reads | other.writes) or other.writes & one.reads:
        return "depend on each other"
    if shared := one.loaded & other.loaded:
        return f"both read {min(shared)}, which would be loaded twice"
    if one.stored & (other.loaded | other.stored) or other.stored & one.loaded:
        return "touch one array that is written"
    return ""


def _copied(loop: ir.For, parts: list[_Part]) -> set[int]:
    """Assignments that every loop may have for itself: of values that depend on the round alone."""
    every = [n for p in parts for n in p.writes]
    changed, copied, known = set(every), set[int](), set[str]()
    for part in parts:
        s = loop.body[part.place]
        before = {n for p in parts if p.place <= part.place for n in p.reads}
        if (
            isinstance(s, ir.Assign)
            and s.value.type.is_integer
            and every.count(s.name) == 1
            and s.name not in before
            and part.reads.isdisjoint(changed - known)
        ):
            copied.add(part.place)
            known.add(s.name)
    return copied


def _needed(group: list[int], parts: list[_Part], copied: set[int]) -> set[int]:
    """The copied assignments that a group needs."""
    wanted = frozenset[str]().union(*(parts[n].reads for n in group))
    needed: set[int] = set()
    for n in sorted(copied, reverse=True):
        if parts[n].writes & wanted:
            needed.add(n)
            wanted |= parts[n].reads
    return needed


def _reason(parts: list[_Part], copied: set[int]) -> str:
    """Why the statements of a loop that gather or write something belong together."""
    ends = [p for p in parts if p.place not in copied and (p.stored or p.writes & p.reads)]
    if len(ends) < 2:
        return "one statement of its loop gathers or writes"
    pairs = ((a, b) for n, a in enumerate(ends) for b in ends[n + 1 :])
    told = next((why for a, b in pairs if (why := _why(a, b))), "")
    if told:
        return f"the parts of its loop {told}"
    arrays = [n for n, p in enumerate(parts) if p.loaded]
    shared = next(
        (
            min(common)
            for n in arrays
            for m in arrays
            if n < m and (common := parts[n].loaded & parts[m].loaded)
        ),
        None,
    )
    if shared is not None:
        return f"the parts of its loop both read {shared}, which would be loaded twice"
    return "the parts of its loop depend on values that both need"
