"""Arguments that a function assigns to: each element, or thread, has its own copy."""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import rename, written_in


def with_own_values(body: ir.Block, uniforms: tuple[ir.Parameter, ...]) -> ir.Block:
    """The statements on copies of the arguments that they assign to: the next element, in the same
    loop, begins with the call's value.
    """
    changed = written_in(body)
    names = {u.name: own(f"own.{u.name}") for u in uniforms if u.name in changed}
    first = tuple(
        ir.Assign(names[u.name], ir.Local(u.name, u.type)) for u in uniforms if u.name in changed
    )
    return (*first, *rename(body, names)) if first else body
