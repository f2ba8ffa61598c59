"""Compute what does not depend on the source once for each target, before the loop over sources.

    for j: sum += f(t, s, e)              f(t, s, e): return exp(t.q * 0.5) * s.q + sqrt(e)
->  $invariant0 = f_invariants(t)         f_invariants(t): return exp(t.q * 0.5)
    $invariant1 = f_constants(e)          f_constants(e): return sqrt(e)
    for j: sum += f(s, $invariant0, $invariant1)
                                          f(s, $invariant0, $invariant1): return $invariant0 * s.q +
                                          $invariant1
The largest such expressions move, equal ones together; a lone sign stays, because it costs nothing.
Those of uniform arguments are
apart, so that the targets that one thread computes share them. They are computed even where the
function would not reach them: they have no effect. The operations and their order stay. A product
that moves is rounded before it meets a sum; in place it may have been contracted with it.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.definitions import definitions
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.names import own
from lanewise.ir.traverse import (
    expressions,
    flat_map,
    reads,
    rewrite,
    rewrite_statement,
    statements,
    subexpressions,
    writes,
)
from lanewise.passes import dead_code
from lanewise.passes.base import is_source_loop, refuse, source_loops

SAME = own("same")


def legal(kernel: ir.Kernel) -> str | None:
    """Why the pass does not apply, or None."""
    if not source_loops(kernel):
        return "it computes every element once: there is no loop over sources to move values out of"
    outer = kernel.body[0]
    if not isinstance(outer, ir.Parallel) or not any(is_source_loop(s) for s in outer.body):
        return "its loop over sources is cut up already"
    if _Motion(kernel, outer).moved:
        return None
    helpers = any(isinstance(s, ir.Apply) for s in statements(_pair(kernel).function.body))
    reason = "it computes nothing from the target and from uniform arguments alone"
    return (
        f"{reason} (the pass does not look inside the functions that it calls)"
        if helpers
        else reason
    )


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """Move the invariants out; raises `PlanError` when there are none.

    The kernel is not tiled or merged yet.
    """
    if reason := legal(kernel):
        raise refuse("invariant code motion", kernel, reason)
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    return dead_code.apply(replace(kernel, body=(_Motion(kernel, outer).run(),)))


def _pair(kernel: ir.Kernel) -> ir.Apply:
    """The application of the pair function."""
    return next(s for s in source_loops(kernel)[0].body if isinstance(s, ir.Apply))


class _Motion:
    """Finds the invariants of a pair function: `moved` maps the name of each to its value, in order
    of text.
    """

    def __init__(self, kernel: ir.Kernel, outer: ir.Parallel) -> None:
        self.kernel, self.outer, self.call = kernel, outer, _pair(kernel)
        self.function = self.call.function
        self.definitions = definitions(self.function)
        self.of_target = self._fixed()
        self.work: set[str] = set()  # variables that take an operation
        for n, value in self.definitions.values.items():
            if n in self.of_target and self._takes_work(value):
                self.work.add(n)
        self.candidates: dict[ir.Expression, str] = {}
        self.values: dict[str, ir.Expression] = {}
        body = self._block(self.function.body)
        read = dict.fromkeys(
            n
            for s in statements(body)
            for e in expressions(s)
            for n in reads(e)
            if n in self.values
        )
        self.moved = {n: self.values[n] for n in read}
        self.names = {n: own(f"invariant{place}") for place, n in enumerate(self.moved)}
        self.body = flat_map(
            body, lambda s: (rewrite_statement(s, lambda e: rewrite(e, self._final), lambda b: b),)
        )

    def run(self) -> ir.Parallel:
        """The loop over targets with the invariants in front of the loop over sources."""
        new = tuple(ir.Parameter(self.names[n], e.type) for n, e in self.moved.items())
        parameters = self.function.parameters
        own_test = tuple(p for p in parameters if p.name == SAME)  # stays the last one
        kept = tuple(p for p in parameters if p.name != SAME)
        function = replace(self.function, parameters=(*kept, *new, *own_test), body=self.body)

        def visit(s: ir.Statement) -> ir.Block:
            if not isinstance(s, ir.Apply) or s.function != self.function:
                return (s,)
            tests = s.arguments[len(kept) :] if own_test else ()
            arguments = (
                *s.arguments[: len(kept)],
                *(ir.Local(p.name, p.type) for p in new),
                *tests,
            )
            return (replace(s, function=function, arguments=arguments),)

        first = next(n for n, s in enumerate(self.outer.body) if is_source_loop(s))
        head = self._computed(of_target=True, ending="invariants") + self._computed(
            of_target=False, ending="constants"
        )
        body = (*self.outer.body[:first], *head, *flat_map(self.outer.body[first:], visit))
        return replace(self.outer, body=body)

    def _fixed(self) -> dict[str, bool]:
        """The names of the function whose values are known before the loop, and whether the target
        decides them.
        """
        inside = {
            n
            for loop in source_loops(self.kernel)
            for s in (loop, *statements(loop.body))
            for n in writes(s)
        }
        uniforms = {p.name for p in self.kernel.uniforms}
        fixed: dict[str, bool] = {}
        for p, a in zip(self.function.parameters, self.call.arguments, strict=True):
            if p.name in self.definitions.fixed and inside.isdisjoint(reads(a)):
                fixed[p.name] = not uniforms.issuperset(reads(a))
        for name, value in self.definitions.values.items():
            names = set(reads(value))
            if names and names <= fixed.keys():
                fixed[name] = any(fixed[n] for n in names)
        return fixed

    def _takes_work(self, e: ir.Expression) -> bool:
        """Whether computing it takes an operation other than a sign."""
        return any(
            x.name in self.work
            if isinstance(x, ir.Local)
            else not isinstance(x, ir.Literal) and not _is_sign(x)
            for x in subexpressions(e)
        )

    def _block(self, block: ir.Block) -> ir.Block:
        return tuple(
            s if isinstance(s, ir.Assign) and s.name in self.of_target
            else rewrite_statement(s, lambda e: rewrite(e, self._node), self._block)
            for s in block
        )  # fmt: skip

    def _node(self, e: ir.Expression) -> ir.Expression:
        """A name for an invariant, in which those of its parts are dissolved again."""
        whole = rewrite(e, lambda x: self.values.get(x.name, x) if isinstance(x, ir.Local) else x)
        names = set(reads(whole))
        if not names or not names <= self.of_target.keys() or not self._takes_work(whole):
            return e
        if whole not in self.candidates:
            self.candidates[whole] = own(f"candidate{len(self.candidates)}")
            self.values[self.candidates[whole]] = whole
        return ir.Local(self.candidates[whole], e.type, e.location)

    def _final(self, e: ir.Expression) -> ir.Expression:
        return replace(e, name=self.names.get(e.name, e.name)) if isinstance(e, ir.Local) else e

    def _computed(self, *, of_target: bool, ending: str) -> ir.Block:
        """The function that computes the invariants of one kind, applied."""
        moved = {
            n: e
            for n, e in self.moved.items()
            if any(self.of_target[x] for x in reads(e)) == of_target
        }
        if not moved:
            return ()
        assigns = tuple(
            s
            for s in statements(self.function.body)
            if isinstance(s, ir.Assign)
            and s.name in self.of_target
            and self.of_target[s.name] <= of_target
        )
        results = tuple(
            ir.Parameter(self.names[n].removeprefix(own("")), e.type) for n, e in moved.items()
        )
        needed = [
            (p, a) for p, a in zip(self.function.parameters, self.call.arguments, strict=True)
            if p.name in self.of_target and self.of_target[p.name] <= of_target
        ]  # fmt: skip
        body = (*assigns, ir.Return(tuple(moved.values())))
        name = _free_name(self.kernel, f"{self.function.name}_{ending}")
        function = ir.Function(
            name, tuple(p for p, _ in needed), results, body, self.function.location
        )
        return (
            ir.Apply(
                function,
                tuple(a for _, a in needed),
                tuple(self.names[n] for n in moved),
                self.call.location,
            ),
        )


def _is_sign(e: ir.Expression) -> bool:
    return isinstance(e, ir.Unary) and e.operator == "-" and e.type.is_float


def _free_name(kernel: ir.Kernel, name: str) -> str:
    taken, n, free = {f.name for f in functions(kernel.body)}, 1, name
    while free in taken:
        n += 1
        free = f"{name}_{n}"
    return free
