"""What passes share: rewriting the functions of a kernel, and finding its loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lanewise.errors import PlanError
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import flat_map, statements


@dataclass(frozen=True, slots=True)
class Target:
    """What the kernel is compiled for, as far as passes need to know."""

    kind: str  # "cpu" or "cuda"


def map_functions(kernel: ir.Kernel, change: Callable[[ir.Function], ir.Function]) -> ir.Kernel:
    """Rewrite every function that the kernel applies, helpers first, each once. A change may drop parameters."""
    done: dict[str, ir.Function] = {}

    def visit(s: ir.Statement) -> ir.Block:
        if not isinstance(s, ir.Apply):
            return (s,)
        if s.function.name not in done:
            inner = flat_map(s.function.body, visit)
            done[s.function.name] = change(replace(s.function, body=inner))
        new = done[s.function.name]
        kept = {p.name for p in new.parameters}
        arguments = tuple(a for p, a in zip(s.function.parameters, s.arguments, strict=True) if p.name in kept)
        return (replace(s, function=new, arguments=arguments),)

    return replace(kernel, body=flat_map(kernel.body, visit))


def source_loops(kernel: ir.Kernel) -> list[ir.For]:
    """The innermost loops over sources."""
    return [s for s in statements(kernel.body) if isinstance(s, ir.For) and s.role == "sources"]


def refuse(pass_name: str, kernel: ir.Kernel, reason: str) -> PlanError:
    return PlanError(f"{pass_name} cannot be applied to {kernel.name}: {reason}")
