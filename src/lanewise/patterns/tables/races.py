"""Refuse what surely is a race: an element that several threads write, whatever the arguments, or
scatter to and touch otherwise.
"""

from __future__ import annotations

from lanewise.analysis.affine import AffineAccess, accesses
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_place
from lanewise.support.errors import CompileError


def refuse_races(indices: tuple[str, ...], body: ir.Block) -> None:
    """Raise `CompileError` for a store whose place does not depend on one of the indices, and
    neither does whether it happens.

    So for an array that is scattered to and read or written otherwise, or scattered to in two ways,
    whose order would matter.
    """
    every = accesses(body, indices)
    _refuse_mixtures(every)
    for access in every:
        if access.is_store and not access.is_scatter and (shared := access.surely_shared(indices)):
            raise _race(access, shared)


def _refuse_mixtures(every: tuple[AffineAccess, ...]) -> None:
    first = {a.array: a.statement for a in every if isinstance(a.statement, ir.ScatterElement)}
    for access in every:
        s, scatter = access.statement, first.get(access.array)
        if scatter is None or (
            isinstance(s, ir.ScatterElement) and s.operation == scatter.operation
        ):
            continue
        does = (
            f"lw.{s.name}"
            if isinstance(s, ir.ScatterElement)
            else "stored"
            if access.is_store
            else "read"
        )
        raise CompileError(
            f"an array that is scattered to is touched by lw.{scatter.name} alone",
            s.location,
            found=f"{print_place(s)}, {does} while other threads scatter to {s.array}",
            wanted="another array, or another kernel for it",
        )


def _race(access: AffineAccess, shared: tuple[str, ...]) -> CompileError:
    s = access.statement
    which = " and ".join(shared)
    return CompileError(
        "several threads write one element",
        s.location,
        found=f"{print_place(s)}, the same for all values of {which}",
        wanted=f"{which} among the indices, or a condition that one value of {which} meets: if "
        f"{shared[0]} == 0:",
        hint=f"a sum over {shared[0]} is a loop in one thread: leave {shared[0]} out of the "
        "indices; numbers are added by many "
        "threads with lw.scatter_add",
    )
