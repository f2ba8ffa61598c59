"""Keep some of what a function or a kernel computes, and drop what serves only the rest (a backward slice).

    function f(mutable x, mutable v, a): v = v + a; x = x + v        only x:    function f(mutable x, v, a): v = v + a; x = x + v
                                                                     only v:    function f(mutable v, a): v = v + a
Loops and conditions stay where something in them is kept. `dead_code` alone would not do: a sum that nobody wants reads itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import blocks, expressions, reads, rewrite_statement, statements, writes


def keep_outputs(f: ir.Function, results: list[int], changed: set[str]) -> ir.Function:
    """The function that gives these results (by position) and changes these parameters; others are parameters of its own use."""

    def trim(block: ir.Block) -> ir.Block:
        return tuple(
            replace(s, values=tuple(s.values[n] for n in results)) if isinstance(s, ir.Return) else rewrite_statement(s, lambda e: e, trim)
            for s in block
        )  # fmt: skip

    body = sliced(trim(f.body), changed, lambda s: isinstance(s, ir.Return))
    parameters = tuple(replace(p, mutable=p.mutable and p.name in changed) for p in f.parameters)
    return replace(f, parameters=parameters, results=tuple(f.results[n] for n in results), body=body)


def keep_commits(kernel: ir.Kernel, kept: Callable[[str, str], bool]) -> ir.Kernel:
    """The kernel that writes only the leaves (of an array) that pass the test, with the functions that this takes."""

    def trim(block: ir.Block) -> ir.Block:
        done: list[ir.Statement] = []
        for s in block:
            if not isinstance(s, ir.Commit):
                done.append(rewrite_statement(s, lambda e: e, trim))
            elif some := tuple((leaf, value) for leaf, value in s.writes if kept(s.array, leaf)):
                done.append(replace(s, writes=some))
        return tuple(done)

    body = sliced(trim(kernel.body), set(), lambda s: isinstance(s, ir.Commit))
    needed = {n for s in statements(body) for e in _inputs(s) for n in reads(e)}
    body = _specialised(body, needed)
    used = {s.array for s in statements(body) if isinstance(s, ir.Fetch | ir.Commit)}
    written = {s.array for s in statements(body) if isinstance(s, ir.Commit)}
    own = {
        a.name for a in kernel.arrays if a.name in used or not a.written
    }  # of pairs, an array may serve its count alone
    arrays = tuple(replace(a, written=a.name in written) for a in kernel.arrays if a.name in own)
    return replace(kernel, body=body, arrays=arrays)


def _inputs(s: ir.Statement) -> tuple[ir.Expression, ...]:
    """What a statement needs; a variable that a function only changes counts as its output."""
    if not isinstance(s, ir.Apply):
        return expressions(s)
    pairs = zip(s.function.parameters, s.arguments, strict=True)
    return tuple(a for p, a in pairs if not p.mutable)


def _specialised(block: ir.Block, needed: set[str]) -> ir.Block:
    def visit(s: ir.Statement) -> ir.Statement:
        if not isinstance(s, ir.Apply):
            return rewrite_statement(s, lambda e: e, lambda b: _specialised(b, needed))
        results = [n for n, name in enumerate(s.results) if name in needed]
        pairs = zip(s.function.parameters, s.arguments, strict=True)
        changed = {p.name for p, a in pairs if p.mutable and isinstance(a, ir.Local) and a.name in needed}
        return replace(
            s, function=keep_outputs(s.function, results, changed), results=tuple(s.results[n] for n in results)
        )

    return tuple(map(visit, block))


def sliced(block: ir.Block, outputs: set[str], root: Callable[[ir.Statement], bool]) -> ir.Block:
    """The statements that `outputs` or a statement that passes `root` need."""
    needed = set(outputs)
    while True:
        before = len(needed)
        kept = _kept(block, needed, root, in_loop=False)
        needed |= {n for s in statements(kept) for e in expressions(s) for n in reads(e)}
        if len(needed) == before:
            return kept


def _kept(block: ir.Block, needed: set[str], root: Callable[[ir.Statement], bool], *, in_loop: bool) -> ir.Block:
    done: list[ir.Statement] = []
    for s in block:
        if not (_matters(s, needed, root) or (in_loop and _jumps(s))):
            continue
        loop = (
            in_loop if isinstance(s, ir.If) else True
        )  # what jumps within a loop that is kept decides how often it runs
        done.append(rewrite_statement(s, lambda e: e, lambda b, loop=loop: _kept(b, needed, root, in_loop=loop)))
    return tuple(done)


def _matters(s: ir.Statement, needed: set[str], root: Callable[[ir.Statement], bool]) -> bool:
    if nested := blocks(s):
        return any(_matters(x, needed, root) for b in nested for x in b)
    return root(s) or not needed.isdisjoint(writes(s))


def _jumps(s: ir.Statement) -> bool:
    return isinstance(s, ir.Break | ir.Continue) or (
        isinstance(s, ir.If) and any(_jumps(x) for b in blocks(s) for x in b)
    )
