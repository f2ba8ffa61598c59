"""What passes share: finding loops, and refusing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.support.errors import PlanError


def source_loops(kernel: ir.Kernel) -> list[ir.For]:
    """The innermost loops over sources."""
    return [s for s in statements(kernel.body) if is_source_loop(s)]


def is_source_loop(s: ir.Statement) -> TypeGuard[ir.For]:
    """Whether a statement is an innermost loop over sources."""
    return isinstance(s, ir.For) and s.role == "sources"


def has_tiles(kernel: ir.Kernel) -> bool:
    """Whether the sources are cut into tiles."""
    return any(isinstance(s, ir.For) and s.role == "tiles" for s in statements(kernel.body))


def find_parallel(kernel: ir.Kernel, variable: str) -> ir.Parallel | None:
    """The parallel loop of this variable, if there is one."""
    return next(
        (
            s
            for s in statements(kernel.body)
            if isinstance(s, ir.Parallel) and s.variable == variable
        ),
        None,
    )


def refuse(pass_name: str, kernel: ir.Kernel, reason: str) -> PlanError:
    """The error of a pass that does not apply."""
    return PlanError(f"{pass_name} cannot be applied to {kernel.name}: {reason}")


def chosen(
    test: Callable[[ir.Statement], bool], change: Callable[[ir.Statement], ir.Block]
) -> Callable[[ir.Statement], ir.Block]:
    """A rule for `flat_map` that changes the statements that pass a test and keeps the others."""
    return lambda s: change(s) if test(s) else (s,)
