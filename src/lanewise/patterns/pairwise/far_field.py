"""`lw.far_field`: what is proved of a pairwise function about groups of sources that are far
away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lanewise.analysis.algebra import Algebra
from lanewise.analysis.far_field import FarProof, Radial, Term
from lanewise.analysis.formulas import formula
from lanewise.analysis.value_numbering import Value
from lanewise.derivatives.jets import Jets
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.search.tree.call import prove
from lanewise.support.attributes import sealed
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, ArgumentTypeError, Location, brief

AXES = (2, 3)
LONGEST = 200  # characters of a formula


@brief
def far_field(function: Pairwise, position: str | None = None) -> FarField:
    """What lanewise can prove about a pairwise function and distant groups of sources.

    Print it to see the tier, the fields of the source that are weights, and every result as a sum;
    or why a group of sources cannot be summed, with the line. `d` is the position of the source
    minus that of the target, and `s` is `dot(d, d)`. Tier R: the function is linear in the fields
    of the source, and depends on positions only through d, as a sum of products of components of d
    and functions of s; it has multipole and local expansions. Tier P: it is linear in the fields of
    the source, and may depend on positions in any way: records at chosen points can represent a
    group. Nothing is compiled, and calls of the function still meet every pair.

    position: the field with the position of an element, of two or three axes; None: that of the
    function's search, by default "position".

    Raises `ArgumentTypeError` for anything but a pairwise function, `ArgumentError` if the records
    do not have this field, and `CompileError` if the function contains something that the language
    does not have.
    """
    if not isinstance(function, Pairwise):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentTypeError(
            f"lw.far_field takes a pairwise function, found {shown(function)}; write @lw.pairwise "
            "above the function of two elements"
        )
    position = function.search.position if position is None else position
    if not isinstance(position, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentTypeError(
            f"lw.far_field(position={shown(position)}): wanted the name of a field, such as "
            "'position'"
        )
    signature, lowered = function.signature, function.lowered
    target, source = list(signature.parameters)[:2]
    axes = {_axes(function, n, position) for n in (target, source)}
    if len(axes) > 1:
        raise ArgumentError(
            f"lw.far_field({function.__name__}): {position} has "
            f"{' and '.join(map(str, sorted(axes)))} axes in the two records; the difference of "
            "two positions has one number of axes"
        )
    proof = prove(signature, lowered, position, axes.pop())
    return FarField(function.__name__, proof)


def _axes(function: Pairwise, element: str, position: str) -> int:
    """The axes of an element's position."""
    record: Any = function.signature.parameters[element]
    assert isinstance(record, Record)
    field = record.field(position)
    kind = None if field is None else field.type
    if isinstance(kind, t.Vector) and kind.element.is_float and kind.length in AXES:
        return kind.length
    found = f"{element} has {', '.join(f'{f.name}: {f.type}' for f in record.fields)}"
    raise ArgumentError(
        f"lw.far_field({function.__name__}, position={position!r}): {found}; wanted a field of "
        f"the name {position!r} that is an lw.vec2, lw.vec3, lw.dvec2 or lw.dvec3, or position= "
        "that names one"
    )


@sealed()
@dataclass(frozen=True, slots=True)
class FarField:
    """What `lw.far_field` proved of a function.

    name: the function's. proof: the facts, for programs.
    """

    name: str
    proof: FarProof

    @property
    def tier(self) -> str | None:
        """R (expansions), P (records at chosen points), or None where it is refused."""
        return self.proof.tier

    @property
    def weights(self) -> tuple[str, ...]:
        """The fields of the source that results are linear in, scalar by scalar."""
        return tuple(p.name for p in self.proof.weights)

    @property
    def reason(self) -> str | None:
        """Why it is refused, or why it is not of tier R: text with the place. None for tier R."""
        if self.proof.refusal is not None:
            return str(self.proof.refusal)
        why = self.proof.not_radial
        return None if why is None else f"{_at(why.location)}{why.text}"

    def __str__(self) -> str:
        if self.tier is None:
            return f"{self.name} has no far field\n{self.reason}"
        counted = ["each source once"] if self.proof.counted else []
        lines = [
            f"{self.name} has a far field of tier {self.tier}",
            f"  weights: {', '.join([*self.weights, *counted])}",
        ]
        if self.proof.radial is None:
            return "\n".join([*lines, f"  not radial: {self.reason}"])
        return "\n".join([*lines, *_formulas(self.proof, self.proof.radial)])

    def __repr__(self) -> str:
        return str(self)


def _at(location: Location) -> str:
    return f"{location.file}:{location.line}:{location.column + 1}: " if location.line else ""


def _formulas(proof: FarProof, radial: Radial) -> list[str]:
    """The results as sums, and the functions of s in them with their derivatives."""
    names: dict[int, str] = {}
    for term in (one for terms in radial.results for one in terms):
        names.setdefault(term.radial.number, f"h{len(names) + 1}")
    lines = [
        f"  {p.name} = {_sum_of(terms, radial, names) or '0'}"
        for p, terms in zip(proof.function.results, radial.results, strict=True)
    ]
    for number, name in names.items():
        lines.append(f"  {name} = {_cut(formula(radial.table, Value(number)))}")
        if radial.s is None:
            continue
        jets = Jets(Algebra(radial.table), radial.s)
        for n, what in ((1, f"d{name}/ds"), (2, f"d2{name}/ds2")):
            taylor = jets.coefficient(Value(number), n)
            kind = radial.table.nodes[taylor.number].type
            derivative = jets.algebra.times(jets.algebra.number(n, kind), taylor)
            lines.append(f"    {what} = {_cut(formula(radial.table, derivative))}")
    if radial.branches:
        conditions = (_cut(formula(radial.table, Value(n))) for n in radial.branches)
        lines.append(
            f"  holds where, for all s between two groups, one side counts of: "
            f"{'; '.join(conditions)}"
        )
    return lines


def _sum_of(terms: tuple[Term, ...], radial: Radial, names: dict[int, str]) -> str:
    texts: list[str] = []
    for term in terms:
        part = term.part
        factors = [part.weight] if part.weight else []
        if part.factor is not None:
            factors.append(formula(radial.table, Value(part.factor)))
        for axis, power in enumerate(part.powers):
            factors += [f"d.{t.component(axis)}"] * power
        product = " * ".join([*factors, names[term.radial.number]])
        sign = "-" if term.radial.negative else ""
        texts.append(f"{sign}{product}" if not texts else f" {sign or '+'} {product}")
    return "".join(texts)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
