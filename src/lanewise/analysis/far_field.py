"""The proof that a group of sources may be summed up before it meets a target.

    gravity(target, source, softening2):  tier R, of the weight source.mass
        result.x = mass * d.x * (rsqrt(s + softening2))^3, and so y and z
Tier R: every result is linear in the fields of the source and depends on the two places through
their difference d as a sum of products of few components of d and a function of s = d.d: it has
moments and expansions. Tier P: it is linear, whatever it does with places and with fields of the
target: records at chosen points stand for a group. All else is refused, with its line. `lw.same` is
false throughout: a group that is far away does not hold the target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lanewise.analysis.radial_form import Forms, NotRadial, RadialPart, is_branch
from lanewise.analysis.simplification import expression_of
from lanewise.analysis.straight import straight
from lanewise.analysis.value_numbering import NotNumbered, Value, ValueTable, number_function
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.names import index_name, own
from lanewise.ir.printer import print_expression
from lanewise.ir.reductions import COUNT_TRUE, SUM, Reduction
from lanewise.ir.traverse import statements
from lanewise.language.types import BOOL, Scalar, component
from lanewise.support.errors import PACKAGE, CompileError, Location, located

SHOWN = 70  # characters of an expression in a message
LINEAR = "a value that is linear in each field of the source but its position"
STEPPED = frozenset(["floor", "ceil", "trunc", "round", "%"])  # constant, or smooth, between steps
ALL_PAIRS = "use lw.AllPairs(), which meets every source"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a function has no far field, and where."""

    message: str
    location: Location
    found: str
    wanted: str
    hint: str

    def __str__(self) -> str:
        return located(
            self.message, self.location, found=self.found, wanted=self.wanted, hint=self.hint
        )

    def error(self) -> CompileError:
        return CompileError(
            self.message, self.location, found=self.found, wanted=self.wanted, hint=self.hint
        )


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a function is not radial, and where."""

    text: str
    location: Location


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a result, and the value of s that it is multiplied by."""

    part: RadialPart
    radial: Value


@dataclass(frozen=True, slots=True)
class Radial:
    """The results of a function of tier R, a sum of terms each.

    table: of the values of s, which is the leaf number `s` (None: nothing depends on it), of what
    is one value for all, and of the target. branches: the conditions on s, and the values of
    several functions each with its range. kind: the type of the arithmetic.
    """

    table: ValueTable
    s: int | None
    results: tuple[tuple[Term, ...], ...]
    branches: tuple[int, ...]
    kind: Scalar


@dataclass(frozen=True, slots=True)
class FarProof:
    """What was proved of a function.

    tier: R has moments, P has proxies, None is refused. weights: the fields of the source that
    results are linear in. counting: of each result, whether it reads none of them, so that each
    source counts once. axes: of the position. not_radial: why the tier is not R. branch: of tier P,
    where the place of the source decides between two values.
    """

    function: ir.Function
    elements: tuple[str, str]
    position: str
    axes: int
    tier: Literal["R", "P"] | None
    weights: tuple[ir.Parameter, ...] = ()
    counting: tuple[bool, ...] = ()
    radial: Radial | None = None
    not_radial: Reason | None = None
    branch: Location | None = None
    refusal: Refusal | None = None

    @property
    def counted(self) -> bool:
        """Whether a result counts each source once."""
        return any(self.counting)


def prove_far_field(
    function: ir.Function,
    elements: tuple[str, str],
    position: str,
    axes: int,
    *,
    reductions: Sequence[Reduction] = (),
    tables: Mapping[str, Scalar] | None = None,
) -> FarProof:
    """Prove what there is to prove of a pair function.

    elements: the names of its target and its source. position: the field that says where they are,
    of so many axes. reductions: of its results, none where all are sums. tables: the types of the
    arrays that it reads, by name.
    """
    prover = _Prover(function, elements, position, axes, dict(tables or {}))
    try:
        return prover.run(reductions)
    except _Refused as refused:
        (refusal,) = refused.args
        return FarProof(function, elements, position, axes, None, refusal=refusal)


class _Refused(Exception):
    """Carries the `Refusal`."""


Degrees = frozenset[int]
"""The degrees in fields of the source of a value's terms: none for zero, 0, 1, or both."""

_ZERO, _FREE, _LINEAR = frozenset[int](), frozenset({0}), frozenset({1})


class _Prover:
    def __init__(
        self,
        function: ir.Function,
        elements: tuple[str, str],
        position: str,
        axes: int,
        tables: dict[str, Scalar],
    ) -> None:
        self.function, self.elements, self.position, self.axes = function, elements, position, axes
        self.table = ValueTable()
        self.table.tables = tables
        self.places: dict[int, tuple[bool, int]] = {}
        self.fields: dict[int, ir.Parameter] = {}
        self.of_target: set[int] = set()
        self.index: int | None = None  # the leaf that is the index of the source
        self.degrees: dict[int, Degrees] = {}

    def run(self, reductions: Sequence[Reduction]) -> FarProof:
        self._check_results(reductions)
        self._check_random()
        results = self._numbered()
        below = sorted(self.table.below({v.number for v in results}))
        for number in below:
            self.degrees[number] = self._degree(number)
        weights = tuple(self.fields[n] for n in below if n in self.fields)
        counting = tuple(0 in self.degrees[v.number] for v in results)
        radial = self._radial(results)
        if isinstance(radial, Reason):
            self._check_proxies(results, weights, radial)
        is_radial = isinstance(radial, Radial)
        return FarProof(
            self.function,
            self.elements,
            self.position,
            self.axes,
            "R" if is_radial else "P",
            weights,
            counting,
            radial if is_radial else None,
            None if is_radial else radial,
            None if is_radial else self._branch(below),
        )

    # ------------------------------------------------------------ what is numbered

    def _check_results(self, reductions: Sequence[Reduction]) -> None:
        for r in reductions:
            if r != SUM:
                self._refuse(
                    f"a result is no sum over the sources: the {r.word} of a group is not known "
                    "from sums of its fields",
                    self.function.location,
                    f"a result that is the {r.word} over all pairs",
                    "results that are sums: -> lw.f32, -> lw.vec3, ...",
                    "return 1.0 where it holds and 0.0 elsewhere, whose sum is the number"
                    if r == COUNT_TRUE
                    else "write a pairwise function that returns the sums alone",
                )
        for p in self.function.results:
            if not p.type.is_float:
                self._refuse(
                    "a result is an integer, a boolean or a fate: its sum is exact, and a "
                    "far field is not",
                    self.function.location,
                    f"{p.name}: {p.type}",
                    "results that are floats",
                    f"return lw.f32(...) of it, or {ALL_PAIRS}",
                )

    def _check_random(self) -> None:
        for s in statements(self.function.body):
            if isinstance(s, ir.Apply) and any(
                f.name == "philox" and f.location.file.startswith(PACKAGE) for f in functions((s,))
            ):
                self._refuse(
                    "a random number stands in the function: it is drawn for each pair, and a "
                    "group of sources has no pair",
                    s.location,
                    "a random number",
                    "a function of fields",
                    "draw it in an elementwise function that keeps it in a field of the record, "
                    f"or {ALL_PAIRS}",
                )

    def _numbered(self) -> list[Value]:
        target, source = self.elements
        components = {f"{self.position}.{component(a)}": a for a in range(self.axes)}
        arguments: dict[str, Value] = {}
        for p in self.function.parameters:
            if p.name == own("same"):
                arguments[p.name] = Value(self.table.add("literal", (), BOOL, False))
                continue
            value = arguments[p.name] = self.table.leaf(p.name, p.type)
            who, _, field = p.name.partition(".")
            if who in self.elements and field in components:
                self.places[value.number] = (who == source, components[field])
            elif who == source:
                self.fields[value.number] = p
            elif who == target or p.name == index_name(target):
                self.of_target.add(value.number)
            elif p.name == index_name(source):
                self.index = value.number
        try:
            return number_function(self.table, straight(self.function), arguments)
        except NotNumbered as reason:
            kinds = (ir.For, ir.While, ir.DeclareArray)
            where = (s.location for s in statements(self.function.body) if isinstance(s, kinds))
            self._refuse(
                f"a far field is not derived from this function: {reason}",
                next(where, self.function.location),
                str(reason),
                "arithmetic, branches, and loops over literal ranges",
                f"write it without, or {ALL_PAIRS}",
            )
            raise AssertionError from reason

    # ------------------------------------------------------------ degrees

    def _degree(self, number: int) -> Degrees:
        node = self.table.nodes[number]
        if number == self.index:
            self._refuse(
                f"lw.index_of({self.elements[1]}) stands in the function: a group of sources has "
                "no index",
                self._where(number),
                f"lw.index_of({self.elements[1]})",
                "a function of fields",
                f"keep what depends on the index in a field of the record, or {ALL_PAIRS}",
            )
        if number in self.fields:
            return _LINEAR
        if node.operation == "leaf":
            return _FREE
        x = [self.degrees[n] for n in node.operands]
        match node.operation:
            case "literal":
                return _ZERO if node.type.is_float and node.payload == 0 else _FREE
            case "+" | "-":
                return x[0] | x[-1]
            case "negate":
                return x[0]
            case "cast" if node.type.is_float:
                return x[0]
            case "*" | "fma":
                return self._multiplied(number, x[0], x[1]) | (x[2] if len(x) > 2 else _ZERO)
            case "mix":
                return x[0] | self._multiplied(number, x[0] | x[1], x[2])
            case "/" if node.type.is_float:
                self._check_free(number, node.operands[1], "stands below a fraction line")
                return x[0]
            case "select":
                self._check_free(number, node.operands[0], "decides a branch")
                return x[1] | x[2]
            case operation:
                words = _in_words(operation, node.type, node.payload)
                for operand in node.operands:
                    self._check_free(number, operand, words)
                return _FREE

    def _multiplied(self, number: int, a: Degrees, b: Degrees) -> Degrees:
        if 1 in a and 1 in b:
            first, second = (self._field_of(n) for n in self.table.nodes[number].operands[:2])
            self._refuse(
                f"{first} is multiplied by {second}: a group of sources has sums of its fields, "
                "and no products of them",
                self._where(number),
                self._shown(number),
                LINEAR,
                f"keep the product in a field of the record, or {ALL_PAIRS}",
            )
        return frozenset(m + n for m in a for n in b)

    def _check_free(self, number: int, operand: int, words: str) -> None:
        """Refuse an operand that depends on fields of the source."""
        if 1 not in self.degrees[operand]:
            return
        name = self._field_of(operand)
        self._refuse(
            f"{name} {words}: a group of sources has no {name.partition('.')[2] or name}",
            self._where(number),
            self._shown(number),
            LINEAR,
            f"take it out, pass it as one value for all, or {ALL_PAIRS}",
        )

    def _field_of(self, number: int) -> str:
        """The first field of the source that a value depends on."""
        return next(
            self.fields[n].name for n in sorted(self.table.below({number})) if n in self.fields
        )

    # ------------------------------------------------------------ forms

    def _radial(self, results: list[Value]) -> Radial | Reason:
        names = {n: p.name for n, p in self.fields.items()}
        forms = Forms(self.table, self.axes, self.places, names, frozenset(self.of_target))
        terms: list[tuple[Term, ...]] = []
        for r in results:
            form = forms.of(r)
            if isinstance(form, NotRadial):
                return Reason(form.reason, self._where(form.number))
            terms.append(tuple(Term(p, v) for p, v in form.items()))
        roots = {t.radial.number for every in terms for t in every}
        branches = tuple(
            n
            for n in sorted(forms.table.below(roots))
            if is_branch(forms.table.nodes[n]) and forms.depends(n)
        )
        kinds = [p.type for p in self.function.results]
        if forms.s is not None:
            kinds = [forms.table.nodes[forms.s].type]
        widest = max(kinds, key=lambda k: k.size)
        return Radial(forms.table, forms.s, tuple(terms), branches, widest)

    def _branch(self, numbers: list[int]) -> Location | None:
        """Where the place of the source decides between two values; None where it does not."""
        here = {n for n, (of_source, _) in self.places.items() if of_source}
        for n in numbers:
            node = self.table.nodes[n]
            steps = node.operation in STEPPED or (
                node.operation == "cast" and not node.type.is_float
            )
            if (steps or is_branch(node)) and not here.isdisjoint(self.table.below({n})):
                return self._where(n)
        return None

    def _check_proxies(
        self, results: list[Value], weights: tuple[ir.Parameter, ...], why: Reason
    ) -> None:
        """Refuse what records at chosen points cannot stand for."""
        for p, r in zip(self.function.results, results, strict=True):
            if self.degrees[r.number] >= {0, 1}:
                self._refuse(
                    f"{p.name} has terms with fields of the source and terms without, and is not "
                    f"radial ({why.text})",
                    self._where(r.number),
                    self._shown(r.number),
                    "results all of whose terms have a field of the source, or none of them",
                    f"return the two sums as two results, or {ALL_PAIRS}",
                )
        for p in weights:
            if not p.type.is_float:
                self._refuse(
                    f"{p.name} is an integer or a boolean, of which a group has no share, "
                    f"and the function is not radial ({why.text})",
                    why.location,
                    f"{p.name}: {p.type}",
                    "weights that are floats",
                    f"keep it as a float in the record, or {ALL_PAIRS}",
                )

    # ------------------------------------------------------------ words

    def _refuse(self, message: str, where: Location, found: str, wanted: str, hint: str) -> None:
        raise _Refused(Refusal(message, where, found, wanted, hint))

    def _where(self, number: int) -> Location:
        """Where a value is written; for what is written nowhere, where what it is made of is."""
        waiting = [number]
        while waiting:
            n = waiting.pop(0)
            if n in self.table.places:
                return self.table.places[n]
            waiting += self.table.nodes[n].operands
        return self.function.location

    def _shown(self, number: int) -> str:
        text = print_expression(self._expression(number, 0))
        return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."

    def _expression(self, number: int, depth: int) -> ir.Expression:
        node = self.table.nodes[number]
        if depth and (label := self.table.labels.get(number)) is not None:
            return ir.Local(label[0], node.type)
        if node.operation == "table":
            assert isinstance(node.payload, tuple)
            return ir.Local(f"{node.payload[0]}[...]", node.type)
        if depth > SHOWN:
            return ir.Local("...", node.type)
        return expression_of(node, tuple(self._expression(n, depth + 1) for n in node.operands))


def _in_words(operation: str, kind: Scalar, payload: object) -> str:
    """What it is to be an operand of an operation, for a field that must not be one."""
    match operation:
        case "and" | "or" | "not":
            return "decides a branch"
        case "==" | "!=" | "<" | "<=" | ">" | ">=":
            return "is compared"
        case "cast":
            return f"becomes {'a boolean' if kind == BOOL else 'an integer'}"
        case "table":
            assert isinstance(payload, tuple)
            return f"is an index of the table {payload[0]}"
        case _:
            return f"stands under {operation}"
