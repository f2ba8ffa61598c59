"""Choose between the approximate reciprocal square root and the rounded square root and division.

    r = sqrt(x); return m / (r * r)  "hardware"  ->  $inverse.r = rsqrt(x); return m * ($inverse.r *
    $inverse.r) m / sqrt(x); m / (x * sqrt(x))   "hardware"  ->  m * rsqrt(x); m * (rsqrt(x) *
    rsqrt(x) * rsqrt(x)) x ** -1.5                        "hardware"  ->  rsqrt(x) * rsqrt(x) *
    rsqrt(x) rsqrt(x)                         "exact"     ->  1 / sqrt(x)
`rsqrt` is one instruction on a GPU and an estimate with refinements on a CPU: off by a few units in
the last place; on a GPU a subnormal float32 counts as zero. A variable that holds a square root, or
a product of them, gets a second one next to it that holds its inverse; what is no longer read then
goes. What else stands below a fraction stays there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import zip_longest
from typing import Literal

from lanewise.analysis.definitions import definitions
from lanewise.ir import nodes as ir
from lanewise.ir.functions import map_functions
from lanewise.ir.names import own
from lanewise.ir.traverse import (
    expressions,
    flat_map,
    reads,
    rewrite,
    rewrite_block,
    rewrite_statement,
    statements,
    write_counts,
)
from lanewise.passes import dead_code
from lanewise.passes.base import refuse

Choice = Literal["written", "hardware", "exact"]
_MISSING = {"hardware": "it divides by no square root", "exact": "it takes no lw.rsqrt"}


def legal(kernel: ir.Kernel, choice: Choice) -> str | None:
    """Why the pass does not apply, or None."""
    if choice != "written" and choice not in _MISSING:
        return f"'written', 'hardware' or 'exact' was wanted, found {choice!r}"
    return (
        _MISSING[choice] if choice != "written" and _rewritten(kernel, choice) == kernel else None
    )


def apply(kernel: ir.Kernel, choice: Choice) -> ir.Kernel:
    """Rewrite every function; raises `PlanError` when there is nothing to rewrite."""
    if reason := legal(kernel, choice):
        raise refuse("reciprocal square root", kernel, reason)
    if choice == "written":
        return kernel
    return map_functions(dead_code.apply(_rewritten(kernel, choice)), _share_squares)


def _rewritten(kernel: ir.Kernel, choice: Choice) -> ir.Kernel:
    if choice == "exact":
        return map_functions(kernel, lambda f: replace(f, body=rewrite_block(f.body, _rounded)))
    return map_functions(kernel, lambda f: _Approximation(f).run())


def _rounded(e: ir.Expression) -> ir.Expression:
    match e:
        case ir.Call(intrinsic="rsqrt"):
            one = ir.Literal(1.0, e.type, e.location)
            return ir.Binary("/", one, replace(e, intrinsic="sqrt"), e.type, e.location)
        case _:
            return e


class _Approximation:
    """Rewrites one function, statement by statement."""

    def __init__(self, function: ir.Function) -> None:
        self.function = function
        self.fixed = definitions(function).fixed
        self.written = write_counts(function.body)
        self.written.update(p.name for p in function.parameters)
        self.inverses: dict[str, ir.Expression] = {}  # by name: one over the value of a variable
        self.roots: dict[str, ir.Expression] = {}  # by name: what it is the square root of
        self.before: list[ir.Assign] = []  # what the statement at hand needs
        self.bases = 0
        self.repeated = False
        self.changed = False

    def run(self) -> ir.Function:
        """The function with divisions replaced, and the inverses that they need."""
        body = self._block(self.function.body)
        return (
            replace(self.function, body=self._with_inverses(body))
            if self.changed
            else self.function
        )

    def _block(self, block: ir.Block) -> ir.Block:
        done: list[ir.Statement] = []
        around = self.before
        for s in block:
            self.before = []
            self.repeated = isinstance(s, ir.While)
            new = rewrite_statement(s, lambda e: rewrite(e, self._node), self._block)
            # Written once, so that the inverse is always as new as its variable.
            if isinstance(new, ir.Assign) and self.written[new.name] == 1:
                self._note(new.name, new.value)
            done += [*self.before, new]
        self.before = around
        return tuple(done)

    def _note(self, name: str, value: ir.Expression) -> None:
        inverted, rest = self._inverted(_factors(value))
        if inverted and not rest:
            self.inverses[name] = _product(inverted)
            if isinstance(value, ir.Call):
                self.roots[name] = value.arguments[0]

    def _node(self, e: ir.Expression) -> ir.Expression:
        match e:
            case ir.Binary(operator="/", left=above, right=below) if e.type.is_float:
                inverted, rest = self._inverted(_factors(below))
                if not inverted:
                    return e
                self.changed = True
                one = isinstance(above, ir.Literal) and above.value == 1
                value = (
                    _product(inverted)
                    if one
                    else ir.Binary("*", above, _product(inverted), e.type, e.location)
                )
                return ir.Binary("/", value, _product(rest), e.type, e.location) if rest else value
            case ir.Call(
                intrinsic="pow", arguments=(x, ir.Literal(value=-0.5 | -1.5 | -2.5 as power))
            ):
                self.changed = True
                return _product(
                    [ir.Call("rsqrt", (self._named(x),), e.type, e.location)] * round(-2 * power)
                )
            case _:
                return e

    def _named(self, e: ir.Expression) -> ir.Expression:
        """A name for an expression that is needed several times; none for what the condition of a
        loop computes anew.
        """
        if isinstance(e, ir.Local | ir.Literal) or self.repeated:
            return e
        self.bases += 1
        base = ir.Local(own(f"base.{self.bases}"), e.type, e.location)
        self.before.append(ir.Assign(base.name, e, e.location))
        return base

    def _inverted(
        self, factors: list[ir.Expression]
    ) -> tuple[list[ir.Expression], list[ir.Expression]]:
        """One over those factors that are square roots, or the square of one among them; and the
        other factors.
        """
        roots = {
            x: inverse
            for f in factors
            if (x := self._squared(f)) is not None
            for inverse in [self._inverse(f)]
        }
        inverted: list[ir.Expression] = []
        rest: list[ir.Expression] = []
        for f in factors:
            if (inverse := self._inverse(f)) is not None:
                inverted.append(inverse)
            elif (inverse := roots.get(f)) is not None:
                inverted += [inverse, inverse]
            else:
                rest.append(f)
        return inverted, rest

    def _inverse(self, e: ir.Expression) -> ir.Expression | None:
        match e:
            case ir.Call(intrinsic="sqrt"):
                return replace(e, intrinsic="rsqrt")
            case ir.Local(name=name) if name in self.inverses:
                return ir.Local(_inverse_name(name), e.type, e.location)
            case _:
                return None

    def _squared(self, e: ir.Expression) -> ir.Expression | None:
        """What a factor is the square root of, if that has not changed since."""
        match e:
            case ir.Call(intrinsic="sqrt", arguments=(x,)):
                return x
            case ir.Local(name=name) if name in self.roots and self.fixed.issuperset(
                reads(self.roots[name])
            ):
                return self.roots[name]
            case _:
                return None

    def _with_inverses(self, block: ir.Block) -> ir.Block:
        """Compute each inverse that is read right behind its variable."""
        inverted = self._names_read(block)

        def visit(s: ir.Statement) -> ir.Block:
            if not isinstance(s, ir.Assign) or s.name not in inverted:
                return (s,)
            return s, ir.Assign(_inverse_name(s.name), self.inverses[s.name], s.location)

        return flat_map(block, visit)

    def _names_read(self, block: ir.Block) -> set[str]:
        """The variables whose inverses are read, by another inverse too."""
        waiting = [n for s in statements(block) for e in expressions(s) for n in reads(e)]
        names = {_inverse_name(n): n for n in self.inverses}
        inverted: set[str] = set()
        while waiting:
            name = names.get(waiting.pop())
            if name is not None and name not in inverted:
                inverted.add(name)
                waiting += reads(self.inverses[name])
        return inverted


def _share_squares(function: ir.Function) -> ir.Function:
    """Where a root and its inverse are both read, give what they are the roots of a name."""

    def visit(block: ir.Block) -> ir.Block:
        done: list[ir.Statement] = []
        for s, following in zip_longest(block, block[1:]):
            match s, following:
                case (
                    ir.Assign(name=name, value=ir.Call(intrinsic="sqrt", arguments=(x,))),
                    ir.Assign(name=inverse, value=ir.Call(intrinsic="rsqrt", arguments=(y,))),
                ) if x == y and inverse == _inverse_name(name) and not isinstance(x, ir.Local):
                    square = ir.Local(own(f"square.{name}"), x.type, s.location)
                    done += [
                        ir.Assign(square.name, x, s.location),
                        replace(s, value=replace(s.value, arguments=(square,))),
                    ]
                    shared[inverse] = square
                case ir.Assign(name=name), _ if name in shared:
                    done.append(
                        replace(
                            s, value=ir.Call("rsqrt", (shared[name],), s.value.type, s.location)
                        )
                    )
                case _:
                    done.append(rewrite_statement(s, lambda e: e, visit))
        return tuple(done)

    shared: dict[str, ir.Local] = {}
    return replace(function, body=visit(function.body))


def _factors(e: ir.Expression) -> list[ir.Expression]:
    if isinstance(e, ir.Binary) and e.operator == "*":
        return _factors(e.left) + _factors(e.right)
    return [e]


def _product(factors: list[ir.Expression]) -> ir.Expression:
    return reduce(lambda a, b: ir.Binary("*", a, b, a.type, a.location), factors)


def _inverse_name(name: str) -> str:
    return own(f"inverse.{name}")
