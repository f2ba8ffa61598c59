"""Which elements the threads of a kernel touch: indices as sums over the indices of threads and the
variables of loops.

    a[y, 2 * k + r]      ->  (y), (2 k + r)      r: the same for all threads
An index is affine when it is a sum of whole coefficients times such variables, plus what all
threads share. From that follows which threads and rounds read the same element, which of them read
neighbours, the box that some of them touch together, and that no two threads write one element.
Sums do not wrap: arithmetic that makes an index is `bounded`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from lanewise.analysis.dependence import NONE, Dependence, Names, assigned_often, dependence
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import expressions, reads, statements, writes

Way = Literal["same", "next", "apart", "row", "unknown"]
"""How the places of two neighbours along a variable lie.

One place, side by side, some elements apart, in other rows, or not known.
"""


@dataclass(frozen=True, slots=True)
class Affine:
    """`constant + sum(coefficient * variable) + sum(coefficient * term)`.

    coefficients: of indices of threads and variables of loops, none of them 0. terms: of
    expressions that all threads share and no round changes. scaled: variables whose coefficient is
    such an expression, besides those of `coefficients`.
    """

    coefficients: tuple[tuple[str, int], ...] = ()
    terms: tuple[tuple[ir.Expression, int], ...] = ()
    constant: int = 0
    scaled: Names = NONE

    def coefficient(self, variable: str) -> int | None:
        """Of a variable; None where it is not known before the kernel runs."""
        return None if variable in self.scaled else dict(self.coefficients).get(variable, 0)

    @property
    def variables(self) -> Names:
        return frozenset(n for n, _ in self.coefficients) | self.scaled

    @property
    def is_shared(self) -> bool:
        """Whether it is the same for all threads and rounds."""
        return not self.variables

    @property
    def fixed(self) -> Affine:
        """The part that is the same for all threads and rounds."""
        return Affine(terms=self.terms, constant=self.constant)

    @property
    def moving(self) -> tuple[object, ...]:
        """All but the constant: places that agree in it are a fixed distance apart."""
        return self.coefficients, frozenset(self.terms), self.scaled


@dataclass(frozen=True, slots=True)
class AccessLoop:
    """A loop around an access. shared: all threads run the same rounds of it. rounds: how many,
    where literals say so.

    start, stop: where it begins and ends, as far as that is affine.
    """

    variable: str
    shared: bool
    rounds: int | None
    statement: ir.For | ir.While = field(compare=False, repr=False)
    start: Affine | None = field(default=None, compare=False, repr=False)
    stop: Affine | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AffineAccess:
    """A load, store or scatter of an element. indices: None for one that is not affine.

    loops: around it, the outermost first. guards: the indices of threads that decide whether a
    thread comes here; without any, all threads come here together.
    """

    statement: ir.ElementAccess
    indices: tuple[Affine | None, ...]
    loops: tuple[AccessLoop, ...]
    guards: Names

    @property
    def array(self) -> str:
        return self.statement.array

    @property
    def is_store(self) -> bool:
        return isinstance(self.statement, ir.ElementWrite)

    @property
    def is_scatter(self) -> bool:
        return isinstance(self.statement, ir.ScatterElement)

    def way(self, variable: str) -> Way:
        """How the places for neighbouring values of a variable lie."""
        steps = [None if i is None else i.coefficient(variable) for i in self.indices]
        if None in steps:
            return "unknown"
        if any(steps[:-1]):
            return "row"
        return "same" if not steps[-1] else "next" if abs(steps[-1]) == 1 else "apart"

    def stride(self, variable: str) -> int | None:
        """Elements between neighbours along a variable, where they lie in one row."""
        return (
            None
            if self.way(variable) in ("row", "unknown") or self.indices[-1] is None
            else self.indices[-1].coefficient(variable)
        )

    def slides(self, indices: Collection[str]) -> bool:
        """Whether an index of a thread and the variable of a loop move the place along one
        dimension, as in a window.
        """
        loops = {x.variable for x in self.loops}
        return any(
            i is not None and i.variables & {*indices} and i.variables & loops for i in self.indices
        )

    def footprint(self, box: Mapping[str, int]) -> tuple[int, ...] | None:
        """The elements per dimension that `box` neighbouring values of each variable touch; None
        where that is not known.

        Variables that `box` leaves out stay as they are.
        """
        sides: list[int] = []
        for i in self.indices:
            if i is None or i.scaled & box.keys():
                return None
            sides.append(sum(abs(c) * (box[v] - 1) for v, c in i.coefficients if v in box) + 1)
        return tuple(sides)

    def reused(self, variables: tuple[str, ...]) -> tuple[str, ...]:
        """The variables along which every value reads the same element."""
        return tuple(v for v in variables if self.way(v) == "same")

    def keeps_apart(self, indices: tuple[str, ...]) -> bool:
        """Whether no two threads surely touch one element, in whatever rounds.

        A dimension tells the values of an index when the others in it are known, or move it by less
        than the index does.
        """
        rounds = {x.variable: x.rounds for x in self.loops}
        determined: set[str] = set()
        while len(determined) < len(indices):
            new = {
                v
                for i in self.indices
                if i is not None
                for v in indices
                if v not in determined and _determines(i, v, indices, determined, rounds)
            }
            if not new:
                return False
            determined |= new
        return True

    def surely_shared(self, indices: tuple[str, ...]) -> tuple[str, ...]:
        """The indices of threads that neither the place nor any condition depends on: threads that
        differ in them meet here.
        """
        if any(i is None for i in self.indices) or any(not x.shared for x in self.loops):
            return ()
        return tuple(v for v in indices if self.way(v) == "same" and v not in self.guards)


def _determines(
    i: Affine,
    v: str,
    indices: tuple[str, ...],
    determined: set[str],
    rounds: Mapping[str, int | None],
) -> bool:
    """Whether a dimension's place gives the value of an index, when those in `determined` are
    known.
    """
    own = i.coefficient(v)
    if not own or i.scaled - determined:
        return False
    spread = 0
    for n, c in i.coefficients:
        if n == v or n in determined:
            continue
        if n in indices or (turns := rounds.get(n)) is None:
            return False
        spread += abs(c) * max(0, turns - 1)
    return spread < abs(own)


# ------------------------------------------------------------ from a kernel to its accesses


def nest(kernel: ir.Kernel) -> tuple[tuple[ir.Parallel, ...], ir.Block]:
    """The parallel loops of a reference kernel, the slowest first, and the body of the
    innermost.
    """
    loops, body = list[ir.Parallel](), kernel.body
    while len(body) == 1 and isinstance(loop := body[0], ir.Parallel):
        loops.append(loop)
        body = loop.body
    return tuple(loops), body


def nest_of(kernel: ir.Kernel) -> tuple[tuple[str, ...], ir.Block]:
    """The indices of these loops, and the body of the innermost."""
    loops, body = nest(kernel)
    return tuple(loop.variable for loop in loops), body


def accesses(body: ir.Block, indices: tuple[str, ...]) -> tuple[AffineAccess, ...]:
    """Every access of a block that runs for all points of these indices, in order of text."""
    return tuple(_Walk(body, indices).run())


class _Walk:
    """Goes through a block in order; `forms` holds what variables stand for, as far as it is
    affine.
    """

    def __init__(self, body: ir.Block, indices: tuple[str, ...]) -> None:
        self.body, self.indices = body, indices
        self.dependence: Dependence = dependence(body, indices)
        self.often = assigned_often(body)
        self.forms: dict[str, Affine] = {i: Affine(((i, 1),)) for i in indices}

    def run(self) -> Iterator[AffineAccess]:
        yield from self.block(self.body, (), NONE)

    def block(
        self, block: ir.Block, loops: tuple[AccessLoop, ...], guards: Names
    ) -> Iterator[AffineAccess]:
        for s in block:
            own = self.dependence.threads(self.dependence.expressions(expressions(s)))
            match s:
                case ir.LoadElement() | ir.StoreElement() | ir.ScatterElement():
                    yield AffineAccess(s, tuple(map(self.form, s.indices)), loops, guards)
                case ir.If():
                    for side in (s.then, s.otherwise):
                        yield from self.block(side, loops, guards | own)
                case ir.For():
                    yield from self.loop(s, loops, guards | own | self.jumps(s.body))
                case ir.While():
                    around = guards | own | self.jumps(s.body)
                    yield from self.block(
                        s.body, (*loops, AccessLoop("", not around - guards, None, s)), around
                    )
                    self.leave(s.body, "")
                case ir.Assign() if (
                    s.name not in self.often and (form := self.form(s.value)) is not None
                ):
                    self.forms[s.name] = form
                case _:
                    pass

    def loop(
        self, s: ir.For, loops: tuple[AccessLoop, ...], guards: Names
    ) -> Iterator[AffineAccess]:
        before = self.forms.get(s.variable)
        start, stop = self.form(s.start), self.form(s.stop)
        self.forms[s.variable] = Affine(((s.variable, 1),))
        shared = not self.dependence.threads(
            self.dependence.expressions((s.start, s.stop, s.step))
        ) and not self.jumps(s.body)
        yield from self.block(
            s.body, (*loops, AccessLoop(s.variable, shared, _rounds(s), s, start, stop)), guards
        )
        self.leave(s.body, s.variable)
        self.forms.pop(s.variable)
        if before is not None:
            self.forms[s.variable] = before

    def jumps(self, body: ir.Block) -> Names:
        """The indices of threads that decide whether a loop is left early."""
        branches = (s for s in statements(body) if isinstance(s, ir.If))
        jumping = (
            s
            for s in branches
            if any(isinstance(x, ir.Break | ir.Continue) for x in statements((s,)))
        )
        return frozenset(
            d
            for s in jumping
            for d in self.dependence.threads(self.dependence.expression(s.condition))
        )

    def leave(self, body: ir.Block, variable: str) -> None:
        """Behind a loop its variable is gone, and what stood for a sum with it."""
        for s in statements(body):
            for n in writes(s):
                form = self.forms.get(n)
                if form is not None and (not variable or variable in form.variables):
                    del self.forms[n]

    def form(self, e: ir.Expression) -> Affine | None:
        match e:
            case ir.Literal(value=value) if e.type.is_integer:
                return Affine(constant=int(value))
            case ir.Local(name=name) if name in self.forms:
                return self.forms[name]
            case ir.Cast(operand=operand) if e.type.is_integer and operand.type.is_integer:
                return self.form(operand)
            case ir.Unary(operator="-", operand=operand) if e.type.is_integer:
                inner = self.form(operand)
                return None if inner is None else scaled(inner, -1)
            case ir.Binary(operator="+" | "-" | "*" as operator, left=left, right=right) if (
                e.type.is_integer
            ):
                return self.combined(operator, e, self.form(left), self.form(right))
            case _:
                return self.shared(e)

    def shared(self, e: ir.Expression) -> Affine | None:
        """An expression that depends on no thread and no round, and that nothing changes, as a
        term.
        """
        if (
            not e.type.is_integer
            or self.dependence.expression(e)
            or not self.often.isdisjoint(reads(e))
        ):
            return None
        return Affine(terms=((e, 1),))

    def combined(
        self, operator: str, e: ir.Binary, left: Affine | None, right: Affine | None
    ) -> Affine | None:
        if left is None or right is None:
            return self.shared(e)
        if operator != "*":
            return added(left, right if operator == "+" else scaled(right, -1))
        for one, other in ((left, right), (right, left)):
            if one.is_shared and not one.terms:
                return scaled(other, one.constant)
        if left.is_shared and right.is_shared:
            return self.shared(e)
        for one, other in ((left, right), (right, left)):
            if one.is_shared and not other.scaled:
                return Affine(scaled=other.variables) if _bare(other) else None
        return None


def _bare(form: Affine) -> bool:
    """A sum of nothing but variables."""
    return not form.terms and not form.constant


def scaled(form: Affine, factor: int) -> Affine:
    """So many times a sum."""
    if not factor:
        return Affine()
    return Affine(
        tuple((n, c * factor) for n, c in form.coefficients),
        tuple((t, c * factor) for t, c in form.terms),
        form.constant * factor,
        form.scaled,
    )


def difference(a: Affine, b: Affine) -> int | None:
    """How much larger one sum is than another one; None where that is no literal."""
    left = added(a, scaled(b, -1))
    return left.constant if not left.variables and not left.terms else None


def added(a: Affine, b: Affine) -> Affine:
    """Two sums together."""
    both: dict[str, int] = {}
    for n, c in (*a.coefficients, *b.coefficients):
        both[n] = both.get(n, 0) + c
    terms: dict[ir.Expression, int] = {}
    for term, c in (*a.terms, *b.terms):
        terms[term] = terms.get(term, 0) + c
    return Affine(
        tuple(sorted((n, c) for n, c in both.items() if c)),
        tuple((t, c) for t, c in terms.items() if c),
        a.constant + b.constant,
        a.scaled | b.scaled,
    )


def _rounds(s: ir.For) -> int | None:
    match s.start, s.stop, s.step:
        case ir.Literal(value=start), ir.Literal(value=stop), ir.Literal(value=step):
            return len(range(int(start), int(stop), int(step)))
        case _:
            return None
