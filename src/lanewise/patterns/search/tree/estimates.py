"""Which nodes are far enough for an accuracy: by the estimate of their error.

    E = T(D) P,   P = sum of |w| |x - z|^q of the node's sources,   q the first order left out
    far: E <= accuracy * (the size of the result near the group) * (s / D)^2
T, the size of derivatives at a distance (`derivatives/expansions/estimates.py`), is computed once a
call for distances in equal ratios, and interpolated between them. P is summed up in leaves. Of a
parent it follows from its children, of weight p and spread s, whose centres lie a away:
P <= sum of p (s + a)^q (Minkowski), with p s^q = P.

(s / D)^2 is the part of a sphere that a node of spread s covers at the distance D, for errors of
nodes add up. Nodes of half the size are four times as many in a sheet, whose errors have one sign:
what is left out of a flat node is. So each has a part of the accuracy, and the sum does not grow
where more is requested. All of it is in powers of two:
    log2 (T(D) D^2) + size <= log2 accuracy + log2 strength,    size = log2 (P / s^2)
The first order left out tells little of a node whose sources lie at its centre and one far outside,
nearly at the target: the rest of the series is larger. An angle (`search.WIDEST`) keeps these near.

The strength of a group is what far sources give its first target, by its own walk at a wide
angle, in which such targets are neighbours: it costs less than a thirty-second part of a walk. Near
sources are left out: a close companion of this one target says nothing about the others.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce

from lanewise.analysis.radial_form import ONE
from lanewise.derivatives.expansions.estimates import DISTANCE, sizes_of_errors
from lanewise.derivatives.expansions.operators import OperatorBuilder, Operators
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of, identifier, own
from lanewise.ir.pattern import HostCode, Pattern
from lanewise.ir.values import uniform_leaves, value_array
from lanewise.language.types import F32, F64, I64, Scalar
from lanewise.launch.tasks import Buffer, Role
from lanewise.patterns.search.tree.arguments import (
    ACCURACY,
    ENTRIES,
    ENTRY_COUNT,
    TreeArguments,
)
from lanewise.patterns.search.tree.group import GROUP_SIZE
from lanewise.patterns.search.tree.nodes import NodeRecord, node_record

SIZES, STRENGTHS = own("tree.sizes"), own("tree.strengths")
OCTAVE = 16  # how many distances of the table double it
ABOVE = 3  # octaves between the radius of the root and the largest distance
TOP = own("walk.top")
SIZED = Pattern("sizes", host=HostCode(inline=True, widest_stride=None))


def cannot_estimate(operators: Operators, results: int) -> str | None:
    """Why the error of a function's nodes is not estimated, or None. results: of the function."""
    if results != 1:
        return "it has several results, whose sizes have nothing to do with each other"
    if len({x.factor for x in operators.shape.locals}) != 1:
        return "its terms are multiplied by different values of the target"
    target = f"{operators.proof.elements[0]}."
    sizes = sizes_of_errors(operators)
    if names := [p.name for p in sizes.parameters if p.name.startswith(target)]:
        return f"{names[0]} decides how it falls with the distance"
    return None


def estimate_buffers(target: str) -> dict[str, Buffer]:
    """The memory of the table, and of the strengths of groups of so many targets."""
    groups = build.ceil_divide(ir.Local(count_of(target), I64), GROUP_SIZE)
    lengths = {SIZES: ir.Literal(ENTRIES, I64), STRENGTHS: groups}
    arrangement = value_array(SIZES, F32, written=True).arrangement
    what = "the estimates of a tree"
    return {
        n: Buffer(n, Role.TEMPORARY, arrangement, length, what=what)
        for n, length in lengths.items()
    }


def _covered(operators: Operators) -> int:
    """The power of a node's size that its part of the accuracy falls with: P has no less."""
    return min(2, operators.order + 1)


def factor_of(operators: Operators) -> ir.Function | None:
    """The value of the target that all of the result is multiplied by; None: 1."""
    (factor,) = {x.factor for x in operators.shape.locals}
    if factor is None:
        return None
    b = OperatorBuilder(operators, "factor")
    b.result(own("factor"), b.factor(factor))
    return b.function()


def build_sizes(operators: Operators, arguments: TreeArguments, index: Scalar) -> ir.Kernel:
    """The kernel that fills the table of T, after the nodes are filled."""
    record, entry = node_record(operators, arguments), ir.Local(own("entry"), index)
    sizes = sizes_of_errors(operators)
    results = tuple(r.name for r in sizes.results)
    largest = reduce(build.maximum, [ir.Local(n, F64) for n in results])
    root = record.local("radius")
    octaves = build.minus(
        _log2(ir.Cast(root, F64)), build.times(ir.Cast(entry, F64), _real(1 / OCTAVE))
    )
    octaves = build.plus(octaves, _real(float(ABOVE)))
    distance = ir.Call("exp2", (octaves,), F64)
    known: dict[str, ir.Expression] = {DISTANCE: distance}
    f = operators.proof.function
    plain = {p.name: p for p in uniform_leaves(f, dict(arguments.uniforms))}
    given = tuple(
        known.get(p.name) or build.cast(ir.Local(p.name, plain[p.name].type), p.type)
        for p in sizes.parameters
    )
    inside = build.less(entry, ENTRIES - 1)
    wide = build.times(octaves, _real(float(_covered(operators))))
    value = ir.Select(inside, build.plus(_log2(largest), wide), _real(float("inf")), F64)
    body = (
        record.load(ir.Literal(0, index), ("radius",)),
        ir.Apply(sizes, given, results),
        ir.StoreRecord(SIZES, entry, (("value", ir.Cast(value, F32)),)),
    )
    used = {p.name for p in sizes.parameters}
    return ir.Kernel(
        identifier(f"{f.name}_sizes"),
        SIZED,
        (record.array(written=False), value_array(SIZES, F32, written=True)),
        tuple(p for n, p in plain.items() if n in used),
        (ir.Parameter(ENTRY_COUNT, index),),
        (ir.Parallel(entry.name, ir.Local(ENTRY_COUNT, index), body),),
        location=f.location,
    )


# ---------------------------------------------------------------- nodes


class Spread:
    """Statements that fill what an estimate asks of a node: `weight`, `spread` and `size`."""

    def __init__(self, operators: Operators, record: NodeRecord) -> None:
        self.operators, self.record, self.kind = operators, record, record.precision
        self.order = operators.order + 1
        self.power = ir.Local(own("power"), self.kind)

    def start(self) -> ir.Block:
        """Before the sources of a leaf."""
        none = build.zero(self.kind)
        return (ir.Assign(self.weight.name, none), ir.Assign(self.power.name, none))

    def source(self, square_distance: ir.Expression) -> ir.Block:
        """One source of a leaf."""
        weight, length = (ir.Local(own(f"source.{n}"), self.kind) for n in ("weight", "length"))
        root = ir.Call("sqrt", (square_distance,), self.kind)
        scale = build.cast(self.record.local("scale"), self.kind)
        term = build.times(weight, self._to_the_order(length))
        return (
            ir.Assign(weight.name, self._weight()),
            ir.Assign(length.name, build.over(root, scale)),
            ir.Assign(self.weight.name, build.plus(self.weight, weight)),
            ir.Assign(self.power.name, build.plus(self.power, term)),
        )

    def leaf(self) -> ir.Block:
        """After the sources of a leaf."""
        return self._finish(build.cast(self.record.local("scale"), self.kind), self.power)

    def parent(self, ways: dict[str, ir.Expression]) -> ir.Block:
        """ways: how far the centres of the children are from that of the parent."""
        body, largest = list[ir.Statement](), ir.Local(own("spread.largest"), self.kind)
        reach = {side: ir.Local(own(f"{side}.reach"), self.kind) for side in ways}
        for side, way in ways.items():
            spread = self.record.local("spread", side)
            body.append(ir.Assign(reach[side].name, build.plus(spread, way)))
        weights = [self.record.local("weight", side) for side in ways]
        terms: list[ir.Expression] = []
        for weight, x in zip(weights, reach.values(), strict=True):
            share = ir.Local(f"{x.name}.share", self.kind)
            terms.append(build.times(weight, self._to_the_order(share)))
        body.append(ir.Assign(largest.name, build.maximum(*reach.values())))
        for x in reach.values():
            share = self._where(largest, build.over(x, largest))
            body.append(ir.Assign(f"{x.name}.share", share))
        body.append(ir.Assign(self.weight.name, build.plus(*weights)))
        body.append(ir.Assign(self.power.name, build.plus(*terms)))
        return (*body, *self._finish(largest, self.power))

    def _finish(self, unit: ir.Expression, power: ir.Local) -> ir.Block:
        """power: the sum of |w| (length / unit)^q."""
        mean = self._where(self.weight, build.over(power, self.weight))
        root = ir.Literal(1 / self.order, self.kind)
        length = ir.Call("exp2", (build.times(_log2(mean), root),), self.kind)
        spread, size = self.record.local("spread"), self.record.local("size")
        rest = self.order - _covered(self.operators)
        value: ir.Expression = _log2(self.weight)
        if rest:
            powers = build.times(ir.Literal(float(rest), self.kind), _log2(spread))
            value = build.plus(value, powers)
        return (
            ir.Assign(
                spread.name,
                build.minimum(build.times(unit, length), self.record.local("radius")),
            ),
            ir.Assign(size.name, value),
        )

    @property
    def weight(self) -> ir.Local:
        return self.record.local("weight")

    def _weight(self) -> ir.Expression:
        """Of a source: its weights, each as often as it adds to one local expansion."""
        shape = self.operators.shape
        terms: list[ir.Expression] = []
        for number, name in enumerate(shape.weights):
            into = Counter(i.local for i in shape.interactions if i.weight == number)
            times = ir.Literal(float(max(into.values())), self.kind)
            if name == ONE:
                terms.append(times)
                continue
            field = ir.Local(name, self.operators.types[name])
            size = ir.Call("abs", (build.cast(field, self.kind),), self.kind)
            terms.append(size if times.value == 1 else build.times(times, size))
        return reduce(build.plus, terms)

    def _to_the_order(self, e: ir.Expression) -> ir.Expression:
        return reduce(build.times, [e] * self.order)

    def _where(self, positive: ir.Expression, e: ir.Expression) -> ir.Expression:
        """Zero where nothing is there to be divided by."""
        some = ir.Compare("!=", positive, build.zero(self.kind))
        return ir.Select(some, e, build.zero(self.kind), self.kind)


# ---------------------------------------------------------------- the walk


def limit_of(group: ir.Local, members: int, targets: ir.Expression, record: NodeRecord) -> ir.Block:
    """Once for a group: `$walk.limit`, and where the table begins. members: of the group, whose
    strength is the least of the first target of each `GROUP_SIZE`; targets: the number of all.
    """
    kind, strength = record.precision, ir.Local(own("strength"), F32)
    strengths, each = members // GROUP_SIZE, list[ir.Statement]()
    last = build.subtract(build.ceil_divide(targets, GROUP_SIZE), 1)
    for n in range(strengths):
        one = strength if not n else ir.Local(own(f"strength{n}"), F32)
        place = build.add(build.multiply(group, strengths), n)
        place = place if not n else build.minimum(place, last)
        each.append(ir.LoadRecord(STRENGTHS, place, (("value", one.name),)))
        if n:
            each.append(ir.Assign(strength.name, build.minimum(strength, one)))
    root = record.local("radius")
    asked, size = _log2(ir.Local(ACCURACY, kind)), _log2(build.cast(strength, kind))
    allowed = ir.Binary("+", asked, size, kind)
    above = ir.Literal(float(ABOVE), kind)
    return (
        *each,
        record.load(ir.Literal(0, group.type), ("radius",)),
        ir.Assign(TOP, ir.Binary("+", _log2(root), above, kind)),
        ir.Assign(own("walk.limit"), allowed),
    )


def small_enough(
    gap2: ir.Expression, record: NodeRecord, index: Scalar
) -> tuple[ir.Block, ir.Expression]:
    """Whether the error of a node at this distance is, behind statements that find out."""
    kind = record.precision
    at, first = ir.Local(own("walk.entry"), kind), ir.Local(own("walk.entry.first"), index)
    last = ir.Literal(float(ENTRIES - 2), kind)
    half = ir.Binary("*", ir.Literal(0.5, kind), _log2(gap2), kind)
    below = ir.Binary("-", ir.Local(TOP, kind), half, kind)
    place = ir.Binary("*", below, ir.Literal(float(OCTAVE), kind), kind)
    near, far = ir.Local(own("walk.size.near"), F32), ir.Local(own("walk.size.far"), F32)
    share = ir.Binary("-", at, ir.Cast(first, kind), kind)
    # farther than the table: the last of it is infinite, and so no node there is far
    inside = ir.Select(ir.Compare("<", at, last), at, last, kind)
    slope = ir.Binary("-", build.cast(near, kind), build.cast(far, kind), kind)
    between = ir.Binary("+", build.cast(far, kind), ir.Binary("*", share, slope, kind), kind)
    error = ir.Binary("+", between, record.local("size"), kind)
    return (
        ir.Assign(at.name, build.maximum(place, build.zero(kind))),
        ir.Assign(at.name, inside),
        ir.Assign(first.name, build.index_of(at, index)),
        ir.LoadRecord(SIZES, first, (("value", far.name),)),
        ir.LoadRecord(SIZES, build.add(first, 1), (("value", near.name),)),
    ), ir.Compare("<=", error, ir.Local(own("walk.limit"), kind))


def strength_of(results: list[ir.Expression], factor: ir.Expression | None) -> ir.Expression:
    """The largest component of a result, before it is multiplied by a value of the target."""
    sizes: list[ir.Expression] = [ir.Call("abs", (x,), x.type) for x in results]
    largest = reduce(build.maximum, sizes)
    if factor is not None:
        size = ir.Call("abs", (build.cast(factor, largest.type),), largest.type)
        largest = build.over(largest, size)
    return build.cast(largest, F32)


def _log2(e: ir.Expression) -> ir.Expression:
    return ir.Call("log2", (e,), e.type)


def _real(value: float) -> ir.Literal:
    return ir.Literal(value, F64)
