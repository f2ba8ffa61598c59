"""Loops that read in each round what they have gathered so far: running sums, products, extremes.

    for k in range(n): s = s + a[y, k]; r[y, k] = s     early: s = s + a[y, k]   late: r[y, k] = s
A round has two halves. The early one gathers, and needs nothing of the rounds before it; the late
one reads the running value, before its own round was added (`prior`) or afterwards.
"""

from __future__ import annotations

from lanewise.analysis.multiples import definitions
from lanewise.analysis.recurrences import resolved
from lanewise.analysis.reductions import (
    FOLDS,
    Halves,
    Shareable,
    first_access,
    fold_of,
    stores_meet,
)
from lanewise.ir import nodes as ir
from lanewise.ir.folds import Fold
from lanewise.ir.names import MARK, own
from lanewise.ir.traverse import (
    ends_early,
    loads,
    reads,
    rename,
    statements,
    stores,
    used_in,
    writes,
    written_in,
)


def prior(name: str) -> str:
    """The running value of a variable before a round is added."""
    return own(f"{name.removeprefix(MARK)}.prior")


def read_so_far(loop: ir.For) -> list[str]:
    """The variables whose value of the rounds before a round reads, other than to gather."""
    names = dict.fromkeys(n for s in statements(loop.body) for n in writes(s))
    return [
        n for n in names if first_access(loop.body, n) == "read" and fold_of(loop.body, n) is None
    ]


def running(
    kernel: ir.Kernel, body: ir.Block, place: int, indices: tuple[str, ...]
) -> Shareable | str:
    """The loop at a place of the body of a thread, if its rounds have such halves; or why not."""
    loop = body[place]
    if not isinstance(loop, ir.For):
        return "it is no loop over a range"
    numbers = {p.name for p in kernel.counts + kernel.uniforms}
    meant = definitions(body)
    if not numbers.issuperset(
        n for e in (loop.start, loop.stop) for n in reads(resolved(e, meant))
    ):
        return f"where {loop.variable} begins and ends is not the same for all points"
    found = _running(loop, body[place + 1 :])
    if isinstance(found, str):
        return found
    halves, others = found
    if reason := stores_meet(body, loop, indices):
        return reason
    stores = any(isinstance(s, ir.StoreElement) for s in statements(loop.body))
    return Shareable(loop, loop, others, stores, halves)


def _running(loop: ir.For, after: ir.Block) -> tuple[Halves, tuple[Fold, ...]] | str:
    """The halves of rounds, and the variables that only gather."""
    body = loop.body
    if loop.step != ir.Literal(1, loop.step.type):
        return f"{loop.variable} does not go by steps of 1"
    if ends_early(body) or any(
        isinstance(s, ir.DeclareArray | ir.SetElement) for s in statements(body)
    ):
        return "a round may end early, or declares an array"
    names = dict.fromkeys(n for s in statements(body) for n in writes(s))
    bounds = {n for e in (loop.start, loop.stop, loop.step) for n in reads(e)}
    if bounds & set(names) or first_access(after, loop.variable) == "read":
        return f"{loop.variable} is read elsewhere, or its rounds change where it ends"
    others, read = list[Fold](), read_so_far(loop)
    for name in names:
        if name in read or "read" not in (first_access(body, name), first_access(after, name)):
            continue
        if (fold := fold_of(body, name)) is None:
            return f"{name} is what the last round made it, and is not gathered {FOLDS}"
        others.append(fold)
    if not read:
        return "no round reads what was gathered so far"
    halves = _halves(body, frozenset(read))
    if isinstance(halves, str):
        return halves
    early, late = halves
    folds = [fold_of(early, name) for name in read]
    for name, fold in zip(read, folds, strict=True):
        if fold is None:
            return f"{name} keeps a value from one round to the next, and is not gathered {FOLDS}"
    return Halves(tuple(f for f in folds if f is not None), early, late), tuple(others)


def _halves(body: ir.Block, gathered: frozenset[str]) -> tuple[ir.Block, ir.Block] | str:
    """The statements of a round that need no running value, and the others."""
    known, late = set(gathered), set[int]()
    while True:
        more = {
            n
            for n, s in enumerate(body)
            if n not in late and used_in((s,)) & (known - _own(s, gathered))
        }
        if not more:
            break
        late |= more
        known |= written_in(tuple(body[n] for n in more))
    places = {g: [n for n, s in enumerate(body) if g in _own(s, gathered)] for g in gathered}
    for g, at in places.items():
        if not at or late & set(at):
            return f"what {g} gathers depends on what was gathered so far"
    done: list[ir.Statement] = []
    for n in sorted(late):
        read = used_in((body[n],)) & gathered
        if between := [g for g in read if min(places[g]) < n < max(places[g])]:
            return f"{between[0]} is read between its updates"
        behind = [m for m in range(n + 1, len(body)) if m not in late]
        if any(_meet(body[n], body[m], gathered) for m in behind):
            return "a round writes, behind its running value, what it reads to gather"
        names = {g: prior(g) for g in read if n < min(places[g])}
        done += rename((body[n],), names)
    return tuple(s for n, s in enumerate(body) if n not in late), tuple(done)


def _own(s: ir.Statement, gathered: frozenset[str]) -> set[str]:
    """Of the gathered variables those that a statement writes."""
    return written_in((s,)) & gathered


def _meet(late: ir.Statement, early: ir.Statement, gathered: frozenset[str]) -> bool:
    """Whether a statement may not run after one that stands behind it. Gathered variables are read
    by other names.
    """
    one, other = list(statements((late,))), list(statements((early,)))
    written = written_in((late,)) | {a for s in one for a in stores(s)}
    read = used_in((late,)) | {a for s in one for a in loads(s)}
    changed = written_in((early,)) | {a for s in other for a in stores(s)}
    used = used_in((early,)) | {a for s in other for a in loads(s)}
    return bool(written & (used | changed) or (read & changed) - gathered)
