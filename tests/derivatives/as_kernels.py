"""IR functions of scalars as elementwise kernels: every parameter an array, every result an array."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import lanewise as lw
from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import rewrite_block
from lanewise.patterns.elementwise.kernel import Elementwise


@lw.elementwise
def written(x: lw.f64) -> lw.f64:
    """Stands in for a function of the user's."""
    return x


@dataclass(frozen=True)
class Given:
    """A `Derived` of any function."""

    function: ir.Function

    @property
    def name(self) -> str:
        return self.function.name

    def signature(self, written: Signature, /) -> Signature:
        kinds: dict[str, Any] = {p.name: p.type for p in self.function.parameters}
        return replace(written, parameters=kinds, results=[r.type for r in self.function.results])

    def lowered(self, written: Signature, lowered: Lowered, /) -> Lowered:
        return Lowered(self.function, tuple(r.type for r in self.function.results), False)


def as_kernel(f: ir.Function) -> tuple[Elementwise, tuple[str, ...]]:
    """The kernel, and the names of the function's parameters in the order of its own."""
    names = {p.name: f"x{n}" for n, p in enumerate(f.parameters)}

    def renamed(e: ir.Expression) -> ir.Expression:
        return replace(e, name=names[e.name]) if isinstance(e, ir.Local) and e.name in names else e

    parameters = tuple(replace(p, name=names[p.name]) for p in f.parameters)
    several = len(f.results) > 1
    results = tuple(replace(r, name=f"result{n}" if several else "result") for n, r in enumerate(f.results))
    plain = ir.Function(f.name, parameters, results, rewrite_block(f.body, renamed))
    return Elementwise(written.python, Given(plain)), tuple(names)
