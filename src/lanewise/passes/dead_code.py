"""Drop what nothing reads: assignments, parameters of functions, and the leaves that were loaded
for them; and what no path reaches.

unused = source.mass * 2.0; return d.x; d.x = 0.0   ->   return d.x
load source[j]: position.x, mass                   ->   load source[j]: position.x
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.functions import map_functions
from lanewise.ir.traverse import (
    expressions,
    flat_map,
    reads,
    rewrite_statement,
    statements,
    used_in,
    writes,
    written_in,
)


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """Clean every function, then the calls of them, then the loads of the kernel."""
    kernel = map_functions(kernel, clean_function)
    used = used_in(kernel.body)

    body = flat_map(kernel.body, lambda s: _loaded(s, used))
    return replace(kernel, body=body, uniforms=tuple(u for u in kernel.uniforms if u.name in used))


def _loaded(s: ir.Statement, used: set[str]) -> ir.Block:
    """A statement; of a load those leaves that are read."""
    if not isinstance(s, ir.LoadRecord):
        return (s,)
    kept = tuple((leaf, v) for leaf, v in s.reads if v in used)
    return (replace(s, reads=kept),) if kept else ()


def clean_loops(kernel: ir.Kernel) -> ir.Kernel:
    """Drop the index variables of a shaped kernel that its functions turn out not to need."""
    return replace(kernel, body=_without_unread(kernel.body, set()))


def clean_function(f: ir.Function) -> ir.Function:
    """Drop what one function does not need for its results and its mutable parameters."""
    body = _without_unread(_reachable(f.body), {p.name for p in f.parameters if p.mutable})
    while any(
        isinstance(s, ir.LoadRecord) for s in statements(body)
    ):  # what a read is for may be gone, and then its index
        used = used_in(body)
        kept = flat_map(body, lambda s, used=used: _loaded(s, used))
        if kept == body:
            break
        body = _without_unread(kept, {p.name for p in f.parameters if p.mutable})
    used = used_in(body) | written_in(body)
    return replace(
        f, body=body, parameters=tuple(p for p in f.parameters if p.name in used or p.mutable)
    )


def _without_unread(block: ir.Block, outputs: set[str]) -> ir.Block:
    """Repeat until nothing changes: removing one assignment can make another one dead."""
    # what expressions read, by identity
    known: dict[int, tuple[ir.Expression, frozenset[str]]] = {}

    def names(e: ir.Expression) -> frozenset[str]:
        if id(e) not in known:
            known[id(e)] = e, frozenset(reads(e))
        return known[id(e)][1]

    while True:
        used = outputs.union(*(names(e) for s in statements(block) for e in expressions(s)))
        cleaned = flat_map(block, lambda s, used=used: _drop(s, used))
        if cleaned == block:
            return block
        block = cleaned


def _reachable(block: ir.Block) -> ir.Block:
    """The statements up to the first one that leaves the block on every path."""
    kept: list[ir.Statement] = []
    for s in block:
        kept.append(rewrite_statement(s, lambda e: e, _reachable))
        if _leaves(s):
            break
    return tuple(kept)


def _leaves(s: ir.Statement) -> bool:
    match s:
        case ir.Return() | ir.Break() | ir.Continue():
            return True
        case ir.If():
            return any(map(_leaves, s.then)) and any(map(_leaves, s.otherwise))
        case _:
            return False


def _drop(s: ir.Statement, used: set[str]) -> ir.Block:
    match s:
        case ir.Assign() | ir.DeclareArray() if s.name not in used:
            return ()
        case ir.LoadElement() if used.isdisjoint(s.names):
            return ()
        case ir.SetElement() if s.array not in used:
            return ()
        case ir.Apply() if used.isdisjoint(writes(s)):  # functions do nothing but give values
            return ()
        case ir.If(then=(), otherwise=()):
            return ()
        case ir.If(then=()):
            return (
                replace(
                    s,
                    condition=ir.Unary("not", s.condition, s.condition.type),
                    then=s.otherwise,
                    otherwise=(),
                ),
            )
        case _:
            return (s,)
