"""Where indices go: proofs and refusals against all the places that threads touch, one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lanewise.analysis.bounds import Reached, decisive, reached, sites
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.language.types import BOOL, F32, I32

N, T = ir.Local("n", I32), ir.Local("t", BOOL)


def number(n: int) -> ir.Literal:
    return ir.Literal(n, I32)


def local(name: str) -> ir.Local:
    return ir.Local(name, I32)


def binary(operator: Any, left: ir.Expression, right: ir.Expression) -> ir.Binary:
    return ir.Binary(operator, left, right, I32, bounded=True)


@dataclass(frozen=True)
class Problem:
    """The statements of a thread, and the numbers of a call."""

    body: ir.Block
    extents: dict[str, int]
    n: int
    shape: tuple[int, ...]

    def proved(self) -> tuple[Reached, ...]:
        return reached(self.body, self.extents, {"n": self.n}, {"a": self.shape, "c": self.shape})

    def touched(self) -> dict[tuple[int, int], set[int]]:
        """Every index of every access, by its number and dimension."""
        numbers = {id(s): n for n, s in enumerate(sites(self.body))}
        found: dict[tuple[int, int], set[int]] = {}
        for place in itertools.product(*(range(n) for n in self.extents.values())):
            values = dict(zip(self.extents, place, strict=True)) | {"n": self.n}
            env: dict[str, Any] = {n: np.int32(v) for n, v in values.items()}
            for s, indices in run(self.body, env):
                for d, i in enumerate(indices):
                    found.setdefault((numbers[id(s)], d), set()).add(i)
        return found


class Jump(Exception):
    """A `break` or a `continue`."""


def run(block: ir.Block, env: dict[str, Any]) -> Iterator[tuple[ir.Statement, tuple[int, ...]]]:
    """The accesses of one thread."""
    for s in block:
        match s:
            case ir.LoadElement() | ir.StoreElement():
                yield s, tuple(int(evaluate(i, env)) for i in s.indices)
            case ir.Assign():
                env[s.name] = evaluate(s.value, env)
            case ir.If():
                yield from run(s.then if evaluate(s.condition, env) else s.otherwise, env)
            case ir.For():
                for i in range(*(int(evaluate(e, env)) for e in (s.start, s.stop, s.step))):
                    env[s.variable] = np.int32(i)
                    try:
                        yield from run(s.body, env)
                    except Jump as jump:
                        if jump.args[0]:
                            break
            case ir.Break():
                raise Jump(True)
            case ir.Continue():
                raise Jump(False)
            case _:
                raise AssertionError(s)


# ------------------------------------------------------------ random programs


@st.composite
def affine(draw: st.DrawFn, names: tuple[str, ...]) -> ir.Expression:
    """A sum of coefficients times variables, with a number that all threads share."""
    e: ir.Expression = number(draw(st.integers(-3, 6)))
    for name in names:
        if c := draw(st.integers(-2, 2)):
            e = binary("+", e, binary("*", number(c), local(name)))
    return binary("+", e, N) if draw(st.booleans()) else e


@st.composite
def straight(draw: st.DrawFn, names: tuple[str, ...] = ("y", "x"), depth: int = 0) -> ir.Block:
    """Accesses and loops with bounds that all threads share: nothing decides whether they are reached."""
    block: list[ir.Statement] = []
    for _ in range(draw(st.integers(1, 2))):
        if depth < 2 and draw(st.booleans()):
            k = f"k{depth}"
            start, stop, step = (
                draw(st.integers(-1, 3)),
                draw(st.integers(-1, 5)),
                draw(st.sampled_from([1, 2, -1, -3])),
            )
            block.append(ir.For(k, number(start), number(stop), number(step), draw(straight((*names, k), depth + 1))))
        else:
            block.append(draw(access(names)))
    return tuple(block)


@st.composite
def access(draw: st.DrawFn, names: tuple[str, ...], index: Any = affine) -> ir.Statement:
    indices = (draw(index(names)), draw(index(names)))
    if draw(st.booleans()):
        return ir.StoreElement("c", indices, ir.Literal(0.0, F32))
    return ir.LoadElement("a", indices, "$value")


@st.composite
def one_compared(draw: st.DrawFn, names: tuple[str, ...]) -> ir.Expression:
    """A condition on one variable at a time: what meets it are the places of a smaller box."""
    left = binary("*", number(draw(st.sampled_from([1, 1, -1, 2]))), local(draw(st.sampled_from(names))))
    e: ir.Expression = ir.Compare(
        draw(st.sampled_from(["<", "<=", ">", ">=", "=="])), left, number(draw(st.integers(-2, 5)))
    )
    return ir.Logical("and", e, draw(one_compared(names))) if draw(st.integers(0, 3)) == 0 else e


@st.composite
def parted(draw: st.DrawFn, names: tuple[str, ...] = ("y", "x"), depth: int = 0) -> ir.Block:
    """Accesses, loops over every number, and branches: who comes to a statement are all places of a box."""
    block: list[ir.Statement] = []
    for _ in range(draw(st.integers(1, 2))):
        match draw(st.integers(0, 3)) if depth < 3 else 3:
            case 0:
                k, step = f"k{depth}", draw(st.sampled_from([1, -1]))
                ends = number(draw(st.integers(-1, 3))), number(draw(st.integers(-1, 5)))
                block.append(ir.For(k, *ends, number(step), draw(parted((*names, k), depth + 1))))
            case 1 | 2:
                then = draw(parted(names, depth + 1))
                block.append(ir.If(draw(one_compared(names)), then, ()))
            case _:
                block.append(draw(access(names)))
    return tuple(block)


@st.composite
def any_index(draw: st.DrawFn, names: tuple[str, ...]) -> ir.Expression:
    """Arithmetic of all kinds."""
    e, other = draw(affine(names)), draw(affine(names))
    match draw(st.integers(0, 7)):
        case 0:
            return binary("%", e, number(draw(st.integers(1, 5))))
        case 1:
            return binary("//", e, number(draw(st.integers(1, 3))))
        case 2:
            return ir.Call("clamp", (e, number(0), number(draw(st.integers(0, 5)))), I32)
        case 3:
            return ir.Call(draw(st.sampled_from(["min", "max"])), (e, other), I32)
        case 4:
            return ir.Select(draw(condition(names)), e, other, I32)
        case 5:
            return binary("&", e, number(3))
        case 6:
            return binary("*", e, other)
        case _:
            return local("i") if draw(st.booleans()) else e


@st.composite
def condition(draw: st.DrawFn, names: tuple[str, ...]) -> ir.Expression:
    left = local(draw(st.sampled_from(names))) if draw(st.booleans()) else draw(affine(names))
    e: ir.Expression = ir.Compare(draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="])), left, draw(affine(("y",))))
    match draw(st.integers(0, 4)):
        case 0:
            return ir.Logical(draw(st.sampled_from(["and", "or"])), e, draw(condition(names)))
        case 1:
            return ir.Unary("not", e, e.type)
        case _:
            return e


@st.composite
def anything(draw: st.DrawFn, names: tuple[str, ...] = ("y", "x"), depth: int = 0, loops: int = 0) -> ir.Block:
    """Branches, loops with bounds of their own, variables of numbers and of conditions, jumps."""
    block: list[ir.Statement] = []
    for _ in range(draw(st.integers(1, 3))):
        match draw(st.integers(0, 6 if depth < 3 else 2)):
            case 0 | 1:
                block.append(draw(access(names, any_index)))
            case 2:
                block.append(ir.Assign("i", draw(any_index(names))))
            case 3 | 4:
                then = draw(anything(names, depth + 1, loops))
                otherwise = draw(anything(names, depth + 1, loops)) if draw(st.booleans()) else ()
                if loops and draw(st.booleans()):
                    then = (*then, draw(st.sampled_from([ir.Break(), ir.Continue()])))
                block.append(ir.If(T if draw(st.booleans()) else draw(condition(names)), then, otherwise))
            case 5:
                told = draw(condition(names))
                block.append(ir.Assign("t", ir.Logical("and", T, told) if draw(st.booleans()) else told))
            case _:
                k, step = f"k{loops}", draw(st.sampled_from([1, 2, -1]))
                body = draw(anything((*names, k), depth + 1, loops + 1))
                block.append(ir.For(k, draw(affine(("y",))), draw(affine(("y",))), number(step), body))
    return tuple(block)


EXTENTS = st.fixed_dictionaries({"y": st.integers(0, 4), "x": st.integers(1, 4)})
SHAPES = st.tuples(st.integers(0, 9), st.integers(1, 12))


@settings(max_examples=6 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(straight(), EXTENTS, st.integers(-3, 3), SHAPES)
def test_sums_are_decided(body: ir.Block, extents: dict[str, int], n: int, shape: tuple[int, ...]) -> None:
    """Said to be inside exactly where no index is outside, and surely outside exactly where one is."""
    problem = Problem(body, extents, n, shape)
    proved, touched = {(r.site, r.dimension): r for r in problem.proved()}, problem.touched()
    assert proved.keys() == touched.keys()
    for key, r in proved.items():
        assert r.sure
        assert r.span == (min(touched[key]), max(touched[key]))
        assert (r.below or r.beyond) == any(not 0 <= i < shape[r.dimension] for i in touched[key])


@settings(max_examples=8 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(parted(), EXTENTS, st.integers(-3, 3), SHAPES)
def test_sums_in_branches_are_decided(body: ir.Block, extents: dict[str, int], n: int, shape: tuple[int, ...]) -> None:
    """A condition on one variable leaves a box of places, which some thread surely comes to if it has any."""
    problem = Problem(body, extents, n, shape)
    proved, touched = {(r.site, r.dimension): r for r in problem.proved()}, problem.touched()
    assert proved.keys() == touched.keys()
    for key, r in proved.items():
        assert r.sure
        assert r.span == (min(touched[key]), max(touched[key]))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(anything(), EXTENTS, st.integers(-3, 3), SHAPES)
def test_what_is_said_holds(body: ir.Block, extents: dict[str, int], n: int, shape: tuple[int, ...]) -> None:
    """No index is outside of what was said of it; what surely is outside is."""
    begin = (ir.Assign("i", number(0)), ir.Assign("t", ir.Literal(True, BOOL)))
    problem = Problem((*begin, *body), extents, n, shape)
    proved = {(r.site, r.dimension): r for r in problem.proved()}
    for key, touched in problem.touched().items():
        low, high = proved[key].span
        assert low <= min(touched)
        assert max(touched) <= high
    for key, r in proved.items():
        if r.sure and (r.below or r.beyond):
            assert any(not 0 <= i < shape[r.dimension] for i in problem.touched()[key])


def spans(body: ir.Block, **extents: int) -> list[tuple[tuple[int, int], bool]]:
    return [(r.span, r.sure) for r in Problem(body, extents, 3, (100,)).proved()]


def load(index: ir.Expression) -> ir.LoadElement:
    return ir.LoadElement("a", (index,), "$value")


def test_conditions_narrow_sums() -> None:
    """A window over two variables: what was tested is what is read."""
    place = binary("+", local("x"), local("k"))
    inside = ir.Logical("and", ir.Compare("<=", number(0), place), ir.Compare("<", place, number(10)))
    window = ir.For("k", number(-2), number(3), number(1), (ir.If(inside, (load(place),)), load(place)))
    assert spans((window,), x=10) == [((0, 9), False), ((-2, 11), True)]


def test_conditions_that_some_thread_surely_meets() -> None:
    """An index that is the same for all is wrong wherever it runs: it is refused if somebody comes there."""
    beyond = load(number(100))

    def sure(condition: ir.Expression, x: int = 5, then: ir.Block = (beyond,)) -> list[bool]:
        return [s for _, s in spans((ir.If(condition, then, (beyond,)),), x=x)]

    x, n = local("x"), N  # n is 3
    assert sure(ir.Compare(">", x, number(0))) == [True, True]
    assert sure(ir.Compare(">", x, number(0)), x=1) == [True]  # the other side alone
    assert sure(ir.Compare(">", n, number(1))) == [True]
    assert sure(ir.Compare("!=", x, number(0))) == [True, True]
    assert sure(ir.Compare("!=", x, number(2))) == [False, True]  # a box with a hole
    assert sure(ir.Logical("or", ir.Compare("==", x, number(0)), ir.Compare("==", x, number(4)))) == [False, True]
    assert sure(ir.Unary("not", ir.Compare("<", x, number(3)), BOOL)) == [True, True]
    assert sure(ir.Compare("==", binary("%", x, number(2)), number(0))) == [False, False]
    assert sure(T) == [False, False]  # data decide
    ended = (ir.If(ir.Compare("==", x, number(0)), (ir.Return(()),), ()), beyond)
    assert spans(ended, x=5) == [((100, 100), True)]
    assert spans(ended, x=1) == []


def test_steps_leave_out_what_a_box_has() -> None:
    within = ir.If(ir.Compare("==", local("k"), number(1)), (load(number(100)),), ())
    assert spans((ir.For("k", number(0), number(5), number(2), (within,)),), x=2) == [((100, 100), False)]
    assert spans((ir.For("k", number(0), number(5), number(1), (within,)),), x=2) == [((100, 100), True)]


def test_conditions_may_be_kept_in_variables() -> None:
    """That of `a[i + 1] if i + 1 < 10 else ...`; it is about the `i` that there was."""
    following = binary("+", local("i"), number(1))
    body = (
        ir.Assign("i", local("x")),
        ir.Assign("t", ir.Compare("<", following, number(10))),
        ir.If(T, (load(following),)),
        ir.Assign("i", number(40)),
        ir.If(T, (load(binary("+", local("x"), local("i"))),)),
    )
    assert spans(body, x=20) == [((1, 9), True), ((40, 48), True)]


def test_bounds_of_loops_narrow_sums() -> None:
    """A triangle."""
    behind = binary("-", local("y"), local("k"))
    triangle = ir.For("k", number(0), local("y"), number(1), (load(behind),))
    assert spans((triangle,), y=8) == [((1, 7), False)]


def test_what_never_runs_touches_nothing() -> None:
    assert spans((ir.For("k", number(3), number(3), number(1), (load(local("k")),)),), y=2) == []
    assert spans((ir.If(ir.Compare("<", N, number(3)), (load(number(200)),)),), y=2) == []
    assert spans((load(number(200)),), y=0) == []


def test_the_rest_of_a_round_that_goes_on() -> None:
    """Behind `if k > 4: continue`."""
    rest = (ir.If(ir.Compare(">", local("k"), number(4)), (ir.Continue(),)), load(local("k")))
    assert spans((ir.For("k", number(0), number(50), number(1), rest),), y=1) == [((0, 4), False)]


def test_values_that_indices_are_made_of() -> None:
    """Those of indices and of bounds of loops, also by way of variables; those of conditions where they may hide a
    place outside that no data tell.
    """
    body = (
        ir.Assign("i", binary("+", local("y"), local("m"))),
        ir.If(ir.Compare("<", local("w"), number(3)), (load(binary("+", local("i"), N)),)),
        ir.For("k", number(0), local("r"), number(1), ()),
    )
    names = ["n", "m", "w", "r", "other"]
    values = dict.fromkeys(names, 1)

    def decided(shape: int, **more: int) -> tuple[str, ...]:
        return decisive(body, names, reached(body, {"y": 5}, values | more, {"a": (shape,), "c": (shape,)}))

    assert decided(20) == ("n", "m", "r")
    assert decided(6) == ("n", "m", "w", "r")  # outside, if the condition holds
    assert decided(20, w=7) == ("n", "m", "w", "r")  # not come to: nothing is known
    told = (load(local("y")), ir.If(ir.Compare("<", local("w"), number(3)), (load(local("$value")),)))
    places = reached(told, {"y": 5}, values, {"a": (9,), "c": (9,)})
    assert decisive(told, names, places) == ()  # data tell: no condition makes it surely outside
