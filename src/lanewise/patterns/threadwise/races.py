"""Refuse what surely is a race: an element that several threads write, whatever the arguments."""

from __future__ import annotations

from lanewise.analysis.affine import Access, accesses
from lanewise.errors import CompileError
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_expression


def refuse_races(indices: tuple[str, ...], body: ir.Block) -> None:
    """Raise `CompileError` for a store whose place does not hang on one of the indices, and neither does whether it happens."""
    for access in accesses(body, indices):
        if access.is_store and (shared := access.surely_shared(indices)):
            raise _race(access, shared)


def _race(access: Access, shared: tuple[str, ...]) -> CompileError:
    s = access.statement
    place = f"{s.array}[{', '.join(print_expression(i) for i in s.indices)}]"
    which = " and ".join(shared)
    return CompileError(
        "several threads write one element", s.location,
        found=f"{place}, the same for all values of {which}",
        wanted=f"{which} among the indices, or a condition that one value of {which} meets: if {shared[0]} == 0:",
        hint=f"a sum over {shared[0]} is a loop in one thread: leave {shared[0]} out of the indices",
    )  # fmt: skip
