"""Drop what nobody reads: assignments, parameters of functions, and the leaves that were fetched for them."""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import expressions, flat_map, reads, statements, writes
from lanewise.passes.base import map_functions


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """Clean every function, then the calls of them, then the fetches of the kernel."""
    kernel = map_functions(kernel, _clean_function)
    used = _read_names(kernel.body)

    def visit(s: ir.Statement) -> ir.Block:
        if isinstance(s, ir.Fetch):
            kept = tuple((leaf, v) for leaf, v in s.reads if v in used)
            return (replace(s, reads=kept),) if kept else ()
        return (s,)

    body = flat_map(kernel.body, visit)
    return replace(kernel, body=body, uniforms=tuple(u for u in kernel.uniforms if u.name in used))


def clean_loops(kernel: ir.Kernel) -> ir.Kernel:
    """Drop the index variables of a shaped kernel that its functions turn out not to need."""
    while True:
        used = _read_names(kernel.body)
        body = flat_map(kernel.body, lambda s, used=used: _drop(s, used))  # type: ignore[misc]
        if body == kernel.body:
            return kernel
        kernel = replace(kernel, body=body)


def _read_names(block: ir.Block) -> set[str]:
    return {n for s in statements(block) for e in expressions(s) for n in reads(e)}


def _clean_function(f: ir.Function) -> ir.Function:
    """Repeat until nothing changes: removing one assignment can make another one dead."""
    body, outputs = f.body, {p.name for p in f.parameters if p.mutable}
    while True:
        used = _read_names(body) | outputs
        cleaned = flat_map(body, lambda s, used=used: _drop(s, used))  # type: ignore[misc]
        if cleaned == body:
            break
        body = cleaned
    used = _read_names(body) | {n for s in statements(body) for n in writes(s)}
    return replace(f, body=body, parameters=tuple(p for p in f.parameters if p.name in used or p.mutable))


def _drop(s: ir.Statement, used: set[str]) -> ir.Block:
    match s:
        case ir.Assign() | ir.DeclareArray() if s.name not in used:
            return ()
        case ir.SetElement() if s.array not in used:
            return ()
        case ir.If(then=(), otherwise=()):
            return ()
        case _:
            return (s,)
