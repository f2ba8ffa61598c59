"""The gradient of a function of two elements, or of one: an IR function again.

    G = sum over results r of  cotangent_r(target) * df_r(target, source)/dx     and, where both
    elements are of one array,
                            +  cotangent_r(source) * df_r(source, target)/dx
One walk of reverse mode gives the derivatives with respect to all inputs, for they are those of one
number; forward mode walks once for each input. So a function of one scalar input is differentiated
forward, and so are functions with loops whose rounds are not known. Whatever both directions of a
pair share is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lanewise.analysis.straight import straight
from lanewise.analysis.value_numbering import NotNumbered, Value, ValueTable, number_function
from lanewise.analysis.written_values import ValueWriter
from lanewise.derivatives.forward import forward
from lanewise.derivatives.reverse import ConditionalSum, backward
from lanewise.derivatives.writing import write_results
from lanewise.ir import nodes as ir
from lanewise.ir.names import own, owner
from lanewise.ir.traverse import used_in
from lanewise.language import types as t

Mode = Literal["forward", "reverse"]
SAME = own("same")


@dataclass(frozen=True, slots=True)
class GradientValue:
    """One value of a gradient: its scalars, by the names that they have as parameters, and its
    type.

    there: the derivative through f(source, target) counts; here: that through f(target, source).
    """

    leaves: tuple[str, ...]
    kind: t.ValueType
    here: bool = True
    there: bool = False


@dataclass(frozen=True, slots=True)
class Cotangents:
    """The parameters that weigh the results, one a scalar of the results; None: the weight is 1.

    `record`: of which they are fields.
    """

    names: tuple[str | None, ...]

    def of(self, place: int, record: str) -> str | None:
        """The name of a weight as a parameter, where it is a field of a record."""
        name = self.names[place]
        return name if name is None or not record else f"{record}.{name}"


@dataclass(frozen=True, slots=True)
class Gradient:
    """A function's gradient, and how it was made: the mode, and why, as text."""

    function: ir.Function
    mode: Mode
    why: str


def gradient(
    f: ir.Function,
    name: str,
    asked: Sequence[GradientValue],
    cotangents: Cotangents,
    records: tuple[str, str] | None,
) -> Gradient:
    """The function of the values that are requested. records: the names of the two elements of a
    pair; None for one element.
    """
    makes = _Maker(f, name, tuple(asked), cotangents, records)
    scalars = sum(len(a.leaves) for a in asked)
    if scalars == 1 and not any(a.there for a in asked):
        return Gradient(makes.forward(), "forward", "one scalar input")
    try:
        return Gradient(makes.reverse(), "reverse", f"{scalars} scalar inputs")
    except NotNumbered as reason:
        return Gradient(makes.forward(), "forward", str(reason))


@dataclass(frozen=True, slots=True)
class _Maker:
    f: ir.Function
    name: str
    asked: tuple[GradientValue, ...]
    cotangents: Cotangents
    records: tuple[str, str] | None

    # ------------------------------------------------------------ reverse

    def reverse(self) -> ir.Function:
        table, f = ValueTable(), straight(self.f)
        types = {p.name: p.type for p in f.parameters}
        seeds: dict[bool, list[tuple[Value, Value]]] = {}
        for there in sorted(
            {x for a in self.asked for x, counts in ((False, a.here), (True, a.there)) if counts}
        ):
            labels = dict(table.labels)
            names = {p.name: self._exchanged(p.name) if there else p.name for p in f.parameters}
            results = number_function(
                table, f, {n: table.leaf(x, types[n]) for n, x in names.items()}
            )
            # names mean what they mean for the target, where that is there
            table.labels = labels or table.labels
            seeds[there] = self._seeds(table, results, there)
        choices: dict[tuple[bool, bool, str], ConditionalSum] = {}
        for directions in dict.fromkeys((a.here, a.there) for a in self.asked):
            group = [a for a in self.asked if (a.here, a.there) == directions]
            leaves = {table.leaf(x, t.scalar_of(a.kind)).number: x for a in group for x in a.leaves}
            pairs = [
                s for there, counts in enumerate(directions) if counts for s in seeds[bool(there)]
            ]
            gradients = backward(table, pairs, leaves)
            choices |= {(*directions, leaves[n]): c for n, c in gradients.items()}
        scalars = [
            (choices[a.here, a.there, x], t.scalar_of(a.kind)) for a in self.asked for x in a.leaves
        ]
        return self._function(
            write_results(ValueWriter(table), [c for c, _ in scalars], [k for _, k in scalars])
        )

    def _seeds(
        self, table: ValueTable, results: list[Value], there: bool
    ) -> list[tuple[Value, Value]]:
        pairs: list[tuple[Value, Value]] = []
        for place, (value, r) in enumerate(zip(results, self.f.results, strict=True)):
            if r.type.is_float:
                weight = self._weight(place, there)
                one = Value(table.add("literal", (), r.type, 1.0))
                pairs.append((value, one if weight is None else table.leaf(weight, r.type)))
        return pairs

    # ------------------------------------------------------------ forward

    def forward(self) -> ir.Function:
        """One function for a direction of the pair; both are called where both count."""
        if not any(a.there for a in self.asked):
            leaves = [x for a in self.asked for x in a.leaves]
            return self._function(forward(self.f, leaves, self._weights()))
        body: list[ir.Statement] = []
        scalars = [(a, x, t.scalar_of(a.kind)) for a in self.asked for x in a.leaves]
        terms: list[list[ir.Expression]] = [[] for _ in scalars]
        for there in (False, True):
            counted = [n for n, (a, _, _) in enumerate(scalars) if (a.there if there else a.here)]
            body += self._direction(
                [(n, scalars[n][1], scalars[n][2]) for n in counted], there, terms
            )
        sums = [
            ir.Binary("+", x[0], x[1], kind)
            if len(x) == 2
            else x[0]
            if x
            else ir.Literal(0.0, kind)
            for x, (_, _, kind) in zip(terms, scalars, strict=True)
        ]
        return self._function((*body, ir.Return(tuple(sums))))

    def _direction(
        self,
        scalars: list[tuple[int, str, t.Scalar]],
        there: bool,
        terms: list[list[ir.Expression]],
    ) -> ir.Block:
        """The call of the derivative in one direction; adds what it gives to the terms."""
        read = {p.name for p in self.f.parameters}
        pairs = [(self._exchanged(x) if there else x, n, kind) for n, x, kind in scalars]
        pairs = [p for p in pairs if p[0] in read]
        if not pairs:
            return ()
        weights = self._weights()
        suffix = "reaction" if there else "action"
        inner = replace(
            self._named(
                f"{self.f.name}_{suffix}", forward(self.f, [p[0] for p in pairs], weights, suffix)
            ),
            results=tuple(ir.Parameter(f"result{i}", kind) for i, (_, _, kind) in enumerate(pairs)),
        )
        arguments = tuple(
            ir.Local(self._exchanged(p.name) if there else p.name, p.type) for p in inner.parameters
        )
        names = tuple(own(f"{suffix}{i}") for i in range(len(pairs)))
        for name, (_, n, kind) in zip(names, pairs, strict=True):
            terms[n].append(ir.Local(name, kind))
        return (ir.Apply(inner, arguments, names),)

    def _weights(self) -> list[ir.Expression | None]:
        weights = [self._weight(place, there=False) for place in range(len(self.f.results))]
        return [
            None if w is None else ir.Local(w, r.type)
            for w, r in zip(weights, self.f.results, strict=True)
        ]

    # ------------------------------------------------------------ names and parameters

    def _weight(self, place: int, there: bool) -> str | None:
        return self.cotangents.of(place, "" if self.records is None else self.records[there])

    def _exchanged(self, name: str) -> str:
        """A parameter of the opposite direction of the pair."""
        if self.records is None:
            return name
        target, source = self.records
        who = owner(name)
        other = {target: source, source: target}.get(who)
        return name if other is None else other + name[len(who) :]

    def _function(self, body: ir.Block) -> ir.Function:
        f = self._named(self.name, body)
        results = [
            ir.Parameter(leaf, t.scalar_of(a.kind))
            for n, a in enumerate(self.asked)
            for leaf in t.leaves("result" if len(self.asked) == 1 else f"result{n}", a.kind)
        ]
        return replace(f, results=tuple(results))

    def _named(self, name: str, body: ir.Block) -> ir.Function:
        """A function whose parameters are what its body uses, the flag `same` last."""
        used = used_in(body)
        types: dict[str, t.Scalar] = {}
        for p in self.f.parameters:
            types |= {p.name: p.type, self._exchanged(p.name): p.type}
        for place, r in enumerate(self.f.results):
            types |= {
                w: r.type
                for there in (False, True)
                if (w := self._weight(place, there)) is not None
            }
        flag = types.pop(SAME, None)
        ordered = [*types.items(), *([(SAME, flag)] if flag is not None else [])]
        parameters = tuple(ir.Parameter(n, kind) for n, kind in ordered if n in used)
        return ir.Function(name, parameters, (), body, self.f.location)
