"""Moments, shifts and translations of a far field as IR functions.

    P2M   M_k = w (x - z)^k / k!                                    of one source, to be added up
    M2M   M'_k = sum over l <= k of (z - z')^(k-l) / (k-l)! M_l
    M2L   L_l = (-1)^|l| sum over |k| + |l| <= p of M_k D_(k+l)(R),     R = z_source - z_target
    L2L   L'_l = sum over k >= l of y^(k-l) / (k-l)! L_k,               y = z' - z
    L2P   result = sum of L_l y^l / l!,      of a potential minus its gradient
    M2P   result = sum over |k| <= p of M_k D_k(z - x)
with k! = k_x! k_y! k_z!. Lengths are in units of the groups' scales, powers of two near half their
sizes: M_k is stored times scale^-|k|, L_l times scale^|l| (scale^(|l|-1) of a potential), which is
exact. In float32 moments of order 5 are beyond the range of numbers else. Groups of two scales meet
in the larger one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce

from lanewise.analysis.algebra import Algebra
from lanewise.analysis.far_field import FarProof
from lanewise.analysis.radial_form import ONE
from lanewise.analysis.value_numbering import Value, ValueTable
from lanewise.analysis.written_values import function_of_values
from lanewise.derivatives.expansions.shape import (
    ExpansionShape,
    Index,
    Interaction,
    LocalExpansion,
    below,
    indices,
    lowered,
    minus,
    plus,
    raised,
    shape_of,
    text,
)
from lanewise.derivatives.expansions.tensors import Tensors, carried
from lanewise.derivatives.jets import Jets
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import Scalar, component
from lanewise.support.errors import NOWHERE

NAMED = 8  # terms of a sum between two that have a name: no expression is nested deeper


class Operators:
    """The operators of a proof of tier R, of one order."""

    def __init__(self, proof: FarProof, order: int) -> None:
        if proof.radial is None:
            raise ValueError(f"{proof.function.name} is not of tier R")
        self.proof, self.radial, self.order = proof, proof.radial, order
        self.kind, self.axes = proof.radial.kind, proof.axes
        self.types = {p.name: p.type for p in proof.function.parameters}

    @cached_property
    def shape(self) -> ExpansionShape:
        return shape_of(self.radial, self.axes)

    def moments(self) -> tuple[ir.Parameter, ...]:
        """The moments of a group, all of one weight after the other."""
        return tuple(
            ir.Parameter(_moment(w, k), self.kind)
            for w in range(len(self.shape.weights))
            for k in indices(self.axes, self.order)
        )

    def locals(self) -> tuple[ir.Parameter, ...]:
        """The coefficients of a group's local expansions, one after the other."""
        return tuple(
            ir.Parameter(_local(n, k), self.kind)
            for n, local in enumerate(self.shape.locals)
            for k in self.local_indices(local)
        )

    def local_indices(self, local: LocalExpansion) -> tuple[Index, ...]:
        """The value of a potential itself is in no result."""
        return indices(self.axes, self.order)[1 if local.potential else 0 :]

    # ------------------------------------------------------------ sources

    def p2m(self) -> ir.Function:
        """What one source adds to the moments of its group."""
        b = OperatorBuilder(self, "p2m")
        scale = b.parameter(own("scale"))
        u = b.scaled(self.place("source"), b.place("centre"), b.inverse(scale))
        products = {k: b.monomial(u, k) for k in indices(self.axes, self.order)}
        for w in range(len(self.shape.weights)):
            weight = b.weight(w)
            for k, product in products.items():
                b.result(_moment(w, k), b.algebra.product(weight, product))
        return b.function()

    def m2m(self) -> ir.Function:
        """What the moments of a group add to those of a larger one."""
        b = OperatorBuilder(self, "m2m")
        child, parent = b.parameter(own("child.scale")), b.parameter(own("parent.scale"))
        inverse = b.inverse(parent)
        v = b.scaled(b.place("child"), b.place("parent"), inverse)
        ratio = b.algebra.times(child, inverse)
        for w in range(len(self.shape.weights)):
            moments = b.moments(w, self.order, ratio)
            for k in indices(self.axes, self.order):
                terms = [
                    b.algebra.product(b.monomial(v, minus(k, x)), moments[x]) for x in below(k)
                ]
                b.result(_moment(w, k), b.sum(terms))
        return b.function()

    # ------------------------------------------------------------ sources to targets

    def m2l(self) -> ir.Function:
        """What the moments of a group of sources add to the local expansions of one of targets."""
        b = OperatorBuilder(self, "m2l")
        source, target = b.parameter(own("source.scale")), b.parameter(own("target.scale"))
        scale = b.call("max", source, target)
        inverse = b.inverse(scale)
        distance = b.scaled(b.place("source"), b.place("target"), inverse)
        tensors = b.tensors(distance, scale)
        here, there = b.algebra.times(target, inverse), b.algebra.times(source, inverse)
        moments = [b.moments(w, self.order, there) for w in range(len(self.shape.weights))]
        for n, local in enumerate(self.shape.locals):
            into = [i for i in self.shape.interactions if i.local == n]
            for x in self.local_indices(local):
                left = self.order - sum(x)
                terms = [
                    b.algebra.product(moments[i.weight][k], tensors[i].derivative(plus(k, x)))
                    for i in into
                    for k in indices(self.axes, left)
                ]
                shrunk = b.power(here, sum(x) - local.potential)
                total = b.algebra.times(shrunk, b.sum(terms))
                b.result(_local(n, x), b.algebra.negative(total) if sum(x) % 2 else total)
        return b.function()

    def m2p(self) -> ir.Function:
        """What a group of sources adds to the results of one target."""
        b = OperatorBuilder(self, "m2p")
        scale = b.parameter(own("scale"))
        d = b.scaled(b.place("centre"), self.place("target"), b.inverse(scale))
        tensors = b.tensors(d, scale)
        moments = [b.moments(w, self.order, None) for w in range(len(self.shape.weights))]
        terms: dict[int, list[Value]] = {}
        for i in self.shape.interactions:
            local = self.shape.locals[i.local]
            factor = b.factor(local.factor)
            for axis, number in enumerate(local.results):
                products = [
                    b.algebra.product(
                        moments[i.weight][k],
                        tensors[i].derivative(raised(k, axis) if local.potential else k),
                    )
                    for k in indices(self.axes, self.order)
                ]
                total = b.algebra.times(factor, b.sum(products))
                terms.setdefault(number, []).append(total)
        b.results(terms)
        return b.function()

    # ------------------------------------------------------------ targets

    def l2l(self) -> ir.Function:
        """The local expansions of a group, around the centre of a smaller one within it."""
        b = OperatorBuilder(self, "l2l")
        child, parent = b.parameter(own("child.scale")), b.parameter(own("parent.scale"))
        inverse = b.inverse(parent)
        y = b.scaled(b.place("child"), b.place("parent"), inverse)
        ratio = b.algebra.times(child, inverse)
        for n, local in enumerate(self.shape.locals):
            every = self.local_indices(local)
            known = {k: b.parameter(_local(n, k)) for k in every}
            for x in every:
                terms = [
                    b.algebra.product(b.monomial(y, minus(k, x)), known[k])
                    for k in every
                    if all(a >= c for a, c in zip(k, x, strict=True))
                ]
                shrunk = b.power(ratio, sum(x) - local.potential)
                b.result(_local(n, x), b.algebra.times(shrunk, b.sum(terms)))
        return b.function()

    def l2p(self) -> ir.Function:
        """The results of one target from the local expansions of its group."""
        b = OperatorBuilder(self, "l2p")
        scale = b.parameter(own("scale"))
        y = b.scaled(self.place("target"), b.place("centre"), b.inverse(scale))
        terms: dict[int, list[Value]] = {}
        for n, local in enumerate(self.shape.locals):
            factor = b.factor(local.factor)
            if local.potential:
                factor = b.algebra.negative(factor)
            order = self.order - local.potential
            for axis, number in enumerate(local.results):
                products = [
                    b.algebra.product(
                        b.monomial(y, k),
                        b.parameter(_local(n, raised(k, axis) if local.potential else k)),
                    )
                    for k in indices(self.axes, order)
                ]
                total = b.algebra.times(factor, b.sum(products))
                terms.setdefault(number, []).append(total)
        b.results(terms)
        return b.function()

    def place(self, element: str) -> tuple[str, ...]:
        """The names of the position of a target or a source."""
        target, source = self.proof.elements
        who = target if element == "target" else source
        return tuple(f"{who}.{self.proof.position}.{component(a)}" for a in range(self.axes))

    def place_kind(self) -> Scalar:
        """The type of positions."""
        names = (*self.place("source"), *self.place("target"))
        kinds = [self.types[n] for n in names if n in self.types]
        return max(kinds, key=lambda k: k.size) if kinds else self.kind


def _moment(weight: int, k: Index) -> str:
    return own(f"moment{weight}.{text(k)}")


def _local(number: int, k: Index) -> str:
    return own(f"local{number}.{text(k)}")


class OperatorBuilder:
    """The values of one operator, its parameters and its results.

    kind: of all floats, instead of the function's own types.
    """

    def __init__(self, operators: Operators, name: str, kind: Scalar | None = None) -> None:
        self.operators, self.kind, self.only = operators, kind or operators.kind, kind
        self.name = f"{operators.proof.function.name}_{name}"
        self.table = ValueTable()
        self.algebra = Algebra(self.table)
        self.one = self.algebra.number(1, self.kind)
        self.parameters: dict[str, ir.Parameter] = {}
        self.values: list[tuple[ir.Parameter, Value]] = []
        self._monomials: dict[tuple[tuple[Value, ...], Index], Value] = {}

    def parameter(self, name: str, kind: Scalar | None = None) -> Value:
        p = self.parameters.setdefault(name, ir.Parameter(name, kind or self.kind))
        return self.table.leaf(name, p.type)

    def weight(self, number: int) -> Value:
        """A weight of a source."""
        name = self.operators.shape.weights[number]
        return (
            self.one if name == ONE else self.cast(self.parameter(name, self.operators.types[name]))
        )

    def number(self, value: float) -> Value:
        return self.algebra.number(value, self.kind)

    def call(self, intrinsic: str, *x: Value) -> Value:
        """A function of values."""
        operands = tuple(self.table.plain(v) for v in x)
        return Value(self.table.add(intrinsic, operands, self.kind))

    def place(self, who: str) -> tuple[str, ...]:
        """The names of a group's centre."""
        return tuple(own(f"{who}.{component(a)}") for a in range(self.operators.axes))

    def scaled(self, to: Sequence[str], of: Sequence[str], inverse: Value) -> tuple[Value, ...]:
        """The difference of two places in units of a scale. Places are subtracted in their own
        type.
        """
        kind = self.operators.place_kind()
        values: list[Value] = []
        for a, c in zip(to, of, strict=True):
            near = self.algebra.negative(self.parameter(c, kind))
            difference = self.algebra.add(self.parameter(a, kind), near)
            values.append(self.algebra.times(self.cast(difference), inverse))
        return tuple(values)

    def kind_of(self, kind: Scalar) -> Scalar:
        """The type here of what the function has in this one."""
        return kind if self.only is None or not kind.is_float else self.only

    def cast(self, value: Value) -> Value:
        return self.algebra.cast(value, self.kind)

    def inverse(self, value: Value) -> Value:
        return self.algebra.divide(self.one, value)

    def power(self, value: Value, n: int) -> Value:
        return reduce(self.algebra.times, [value] * n, self.one)

    def monomial(self, u: tuple[Value, ...], k: Index) -> Value:
        """u^k / k!"""
        if not any(k):
            return self.one
        if (u, k) not in self._monomials:
            axis = max(a for a, n in enumerate(k) if n)
            rest = self.algebra.times(u[axis], self.monomial(u, lowered(k, axis)))
            number = self.algebra.number(1 / k[axis], self.kind)
            self._monomials[u, k] = self.algebra.times(number, rest)
        return self._monomials[u, k]

    def moments(self, weight: int, order: int, ratio: Value | None) -> dict[Index, Value]:
        """Moments in units of another scale, which is larger by one over `ratio`."""
        return {
            k: self.algebra.times(
                self.one if ratio is None else self.power(ratio, sum(k)),
                self.parameter(_moment(weight, k)),
            )
            for k in indices(self.operators.axes, order)
        }

    def tensors(self, d: tuple[Value, ...], scale: Value) -> dict[Interaction, Tensors]:
        """The derivatives along d, which is in units of the scale, of what interactions have."""
        shape, times = self.operators.shape, self.algebra.times
        square = self.sum([times(x, x) for x in d])
        scale2 = times(scale, scale)
        s = times(scale2, square)
        known = self.carried_radials(s)
        jets = Jets(self.algebra, s.number, scale2)
        made: dict[tuple[Value, bool, Index], Tensors] = {}
        found: dict[Interaction, Tensors] = {}
        for i in shape.interactions:
            potential = shape.locals[i.local].potential
            key = (i.radial, potential, i.powers)
            if key not in made:
                value = known[i.radial.number]
                value = self.algebra.negative(value) if i.radial.negative else value
                h = times(self.power(scale, sum(i.powers) + potential), value)
                made[key] = Tensors(jets, d, h, i.powers, potential=potential)
            found[i] = made[key]
        return found

    def carried_radials(self, s: Value) -> dict[int, Value]:
        """The functions of s that interactions have, for this s, by their numbers in the proof."""
        radial, known = self.operators.radial, self._leaves()
        if radial.s is not None:
            known[radial.s] = s
        numbers = [i.radial.number for i in self.operators.shape.interactions]
        carried(Algebra(radial.table), numbers, self.algebra, known, self.kind_of)
        return known | {n: self.cast(known[n]) for n in numbers}

    def factor(self, number: int | None) -> Value:
        """A value of the target."""
        if number is None:
            return self.one
        known = self._leaves()
        table = self.operators.radial.table
        carried(Algebra(table), [number], self.algebra, known, self.kind_of)
        return self.cast(known[number])

    def _leaves(self) -> dict[int, Value]:
        """The parameters that the values of the proof are made of; `s` is none."""
        radial = self.operators.radial
        return {
            n: self.parameter(str(node.payload), self.kind_of(node.type))
            for n, node in enumerate(radial.table.nodes)
            if node.operation == "leaf" and n != radial.s
        }

    def sum(self, terms: Sequence[Value]) -> Value:
        """Terms added in their order; some sums on the way have names."""
        total = self.algebra.number(0, self.kind)
        for n, term in enumerate(terms, 1):
            total = self.algebra.add(total, term)
            if n % NAMED == 0 and self.table.nodes[total.number].operands:
                self.table.labels.setdefault(total.number, (own(f"sum{total.number}"), NOWHERE))
        return total

    def result(self, name: str, value: Value) -> None:
        self.values.append((ir.Parameter(name, self.kind), value))

    def results(self, terms: dict[int, list[Value]]) -> None:
        """The results of the user's function, in their types."""
        for number, p in enumerate(self.operators.proof.function.results):
            total = self.sum(terms.get(number, []))
            self.values.append((p, self.algebra.cast(total, p.type)))

    def function(self) -> ir.Function:
        return function_of_values(
            self.name, self.table, tuple(self.parameters.values()), self.values
        )
