"""Loops whose rounds several threads may share: they only gather values, or write elements that no
other round touches.

    for k in range(n): s += a[y, k] * x[k]; if a[y, k] > m: m = a[y, k]       s: a sum, m: an
    extreme for k in range(n): c[y, k] = a[y, k] / s                                  c: apart
A variable that gathers is read by nothing but its own updates. The order of a sum of floats is
free, but fixed for a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanewise.analysis import carried as carried_values
from lanewise.analysis.affine import accesses
from lanewise.ir import nodes as ir
from lanewise.ir.folds import Fold, Operation
from lanewise.ir.traverse import (
    blocks,
    expressions,
    reads,
    rename,
    rewrite,
    statements,
    subexpressions,
    writes,
    written_in,
)
from lanewise.language.types import Scalar

FOLDS = (
    "by x += e, x -= e, x *= e, x = lw.min(x, e), x = lw.max(x, e), if e > x: x = e, "
    "or by x = x or e or x = x and e, where e reads no element"
)
_CHAINS: dict[str, Operation] = {"+": "+", "-": "+", "*": "*", "&": "&", "|": "|", "^": "^"}


@dataclass(frozen=True, slots=True)
class Halves:
    """Of a round that reads what was gathered so far: the early one gathers it, the late one reads
    it. folds: the variables whose running values these are.
    """

    folds: tuple[Fold, ...]
    early: ir.Block
    late: ir.Block


@dataclass(frozen=True, slots=True)
class Shareable:
    """A loop whose rounds may be shared. `inner`: the loop in it whose rounds are shared in its
    place, or itself.

    halves: of its rounds, where they read running values (`analysis/running.py`).
    """

    loop: ir.For
    inner: ir.For
    folds: tuple[Fold, ...]
    stores: bool
    halves: Halves | None = None

    @property
    def is_nest(self) -> bool:
        return self.inner is not self.loop


def shareable(body: ir.Block, place: int, indices: tuple[str, ...]) -> Shareable | str:
    """The loop at a place of the body of a thread, as one that threads may share; or why they may
    not.
    """
    loop = body[place]
    if not isinstance(loop, ir.For):
        return "it is no loop over a range"
    folds = folds_of(loop, body[place + 1 :], carrying=True)
    if isinstance(folds, str):
        return folds
    if reason := stores_meet(body, loop, indices):
        return reason
    stores = any(isinstance(s, ir.StoreElement) for s in statements(loop.body))
    inner = loop
    plain = not stores and not any(f.carried for f in folds)
    while plain and (below := _only_loop(inner, folds)) is not None:
        inside = folds_of(below, inner.body[inner.body.index(below) + 1 :])
        if isinstance(inside, str) or {f.name for f in inside} - {f.name for f in folds}:
            break
        inner = below
    return Shareable(loop, inner, folds, stores)


def folds_of(loop: ir.For, after: ir.Block, *, carrying: bool = False) -> tuple[Fold, ...] | str:
    """The variables that a loop gathers values in, or why its rounds depend on each other.
    carrying: whether extremes may carry values along, such as their places.
    """
    if _leaves(loop.body):
        return "a round may be the last one: it has a break"
    body, folds, loads = loop.body, list[Fold](), _loads(loop.body)
    carried = carried_values.carrying(loop, lambda e: _meant(e, loads)) if carrying else ()
    done = {n for f in carried for n in (f.name, *(x.name for x in f.carried))}
    changed = dict.fromkeys(n for s in statements(body) for n in writes(s))
    bounds = {n for e in (loop.start, loop.stop, loop.step) for n in reads(e)}
    if moved := [n for n in changed if n in bounds and n != loop.variable]:
        return f"{moved[0]} says where the loop begins or ends, and its rounds change it"
    for name in changed:
        if name in done:
            continue
        again, kept = first_access(body, name) == "read", first_access(after, name) == "read"
        if not again and not kept:
            continue
        fold = fold_of(body, name)
        if fold is None:
            what = (
                "keeps a value from one round to the next"
                if again
                else "is what the last round made it"
            )
            return f"{name} {what}, and is not gathered {FOLDS}"
        folds.append(fold)
    if first_access(after, loop.variable) == "read":
        return f"{loop.variable} is read after the loop"
    return (*folds, *carried)


# ------------------------------------------------------------ variables


def first_access(block: ir.Block, name: str) -> str:
    """How a block may meet a variable first: "read" where a run of it can read it before it is
    written, else "write" or "none".
    """
    for s in block:
        if any(n == name for e in expressions(s) for n in reads(e)):
            return "read"
        if isinstance(s, ir.SetElement) and s.array == name:
            return "read"  # the other elements
        if name in writes(s):
            return "write"
        inner = [first_access(b, name) for b in blocks(s)]
        if "read" in inner:
            return "read"
        if isinstance(s, ir.If) and inner == ["write", "write"]:
            return "write"
    return "none"


def fold_of(body: ir.Block, name: str) -> Fold | None:
    """The way in which all the updates of a variable gather values, if they do."""
    updates: list[tuple[Operation, Scalar]] = []
    taken = 0  # reads of the variable by its updates
    loads = _loads(body)
    for s in statements(body):
        if isinstance(s, ir.If) and (extreme := _extreme(s, name, loads)) is not None:
            updates.append(extreme)
            taken += 1
            continue
        if name not in writes(s):
            continue
        if isinstance(s, ir.Assign) and (operation := _gathers(s.value, name)) is not None:
            updates.append((operation, s.value.type))
            taken += 1
        elif (
            isinstance(s, ir.Assign)
            and isinstance(s.value, ir.Literal)
            and isinstance(s.value.value, bool)
        ):
            updates.append(("or" if s.value.value else "and", s.value.type))
        elif not any(
            isinstance(x, ir.If) and _extreme(x, name, loads) and s in x.then
            for x in statements(body)
        ):
            return None
    read = sum(n == name for s in statements(body) for e in expressions(s) for n in reads(e))
    if not updates or read != taken or len(set(updates)) != 1:
        return None
    ((operation, kind),) = set(updates)
    return Fold(name, kind, operation)


def _gathers(e: ir.Expression, name: str) -> Operation | None:
    """The operation of `x + e1 - e2`, `e1 * x`, `max(e1, max(x, e2))`: a chain with the variable at
    one end.
    """
    match e:
        case ir.Binary(
            operator="+" | "-" | "*" | "&" | "|" | "^" as operator, left=left, right=right
        ):
            return _chain(
                name, _CHAINS[operator], left, right if operator != "-" else None, (right,)
            )
        case ir.Logical(operator="and" | "or" as operator, left=left, right=right):
            return _chain(name, operator, left, right, ())
        case ir.Call(intrinsic="min" | "max" as operator, arguments=(left, right)):
            return _chain(name, operator, left, right, ())
        case ir.Call(intrinsic="fma", arguments=(one, other, rest)):
            return _chain(name, "+", rest, None, (one, other))
        case _:
            return None


def _chain(
    name: str,
    operation: Operation,
    left: ir.Expression,
    right: ir.Expression | None,
    others: tuple[ir.Expression, ...],
) -> Operation | None:
    """The operation, if one of the sides is the variable or such a chain with it, and the others do
    not read it.
    """
    ends = (left,) if right is None else (left, right)
    with_it = [e for e in ends if name in reads(e)]
    if len(with_it) != 1 or (right is None and any(name in reads(e) for e in others)):
        return None
    (end,) = with_it
    if isinstance(end, ir.Local):
        return operation
    return operation if _gathers(end, name) == operation else None


Loads = dict[str, tuple[object, ...]]


def _loads(body: ir.Block) -> Loads:
    """What is loaded into variables that one statement assigns: two loads of one element are one
    value.
    """
    stored = {s.array for s in statements(body) if isinstance(s, ir.StoreElement)}
    often = [n for s in statements(body) for n in writes(s)]
    loads: Loads = {}
    for s in statements(body):
        match s:
            case ir.LoadElement() if s.array not in stored and often.count(s.name) == 1:
                moving = {n for i in s.indices for n in reads(i)}
                if not any(often.count(n) > 1 for n in moving):
                    loads[s.name] = (s.array, *s.indices)
            case ir.Assign(value=ir.Local(name=source)) if (
                source in loads and often.count(s.name) == 1
            ):
                loads[s.name] = loads[source]
            case _:
                pass
    return loads


def _extreme(s: ir.If, name: str, loads: Loads) -> tuple[Operation, Scalar] | None:
    """`if e > x: x = e`."""
    test = next((t for t in carried_values.compared(s.condition) if t[0] == name), None)
    if test is None or s.otherwise:
        return None
    _, operation, value = test
    *before, last = s.then or (None,)
    if (
        not isinstance(last, ir.Assign)
        or last.name != name
        or not all(isinstance(x, ir.LoadElement) for x in before)
    ):
        return None
    if (
        name in reads(value)
        or name in reads(last.value)
        or _meant(value, loads) != _meant(last.value, loads)
    ):
        return None
    return operation, last.value.type


def _meant(e: ir.Expression, loads: Loads) -> object:
    """An expression, where variables that hold one element are one variable."""
    first: dict[object, str] = {}
    same = {n: first.setdefault(element, n) for n, element in loads.items()}
    return rewrite(
        e,
        lambda x: replace(x, name=same.get(x.name, x.name)) if isinstance(x, ir.Local) else x,
    )


def _leaves(block: ir.Block) -> bool:
    """Whether a `break` leaves the loop that these statements are the body of."""
    for s in block:
        if isinstance(s, ir.Break):
            return True
        if isinstance(s, ir.If) and (_leaves(s.then) or _leaves(s.otherwise)):
            return True
    return False


# ------------------------------------------------------------ nests and stores


def _only_loop(loop: ir.For, folds: tuple[Fold, ...]) -> ir.For | None:
    """The loop of more than a few rounds in a loop that alone gathers for it."""
    below = [s for s in loop.body if isinstance(s, ir.For) and not isinstance(s.stop, ir.Literal)]
    if len(below) != 1:
        return None
    others = tuple(s for s in loop.body if s is not below[0])
    gathered = {f.name for f in folds}
    touched = written_in(others)
    return None if touched & gathered else below[0]


def stores_meet(body: ir.Block, loop: ir.For, indices: tuple[str, ...]) -> str | None:
    """Why two rounds, or threads, might touch one element that one of them writes; or None."""
    inside = list(statements(loop.body))
    written = {s.array for s in inside if isinstance(s, ir.StoreElement)}
    if not written:
        return None
    for access in accesses(body, indices):
        s = access.statement
        if access.array not in written or not any(s is x for x in inside):
            continue
        around = tuple(x.variable for x in access.loops if x.variable)
        if not any(access.keeps_apart((*indices, *names)) for names in ((loop.variable,), around)):
            return (
                f"two rounds, or two threads, may touch one element of {access.array}, which it "
                "writes"
            )
    return None


def alike(loop: ir.For, other: ir.For) -> bool:
    """Whether two loops run over the same range."""
    return (loop.start, loop.stop, loop.step) == (other.start, other.stop, other.step)


def over_one_range(loops: dict[int, Shareable]) -> dict[int, ir.For]:
    """The loops that are no nests, if all of them go over one range from 0 on; else none."""
    plain = {n: x.loop for n, x in loops.items() if not x.is_nest}
    if not plain:
        return {}
    first = next(iter(plain.values()))
    begins = first.start == ir.Literal(0, first.start.type)
    return plain if begins and all(alike(x, first) for x in plain.values()) else {}


def indices_in(
    s: ir.LoadElement | ir.StoreElement, loop: ir.For, first: ir.For
) -> tuple[ir.Expression, ...]:
    """The indices of an access in one of several loops over one range, in the words of the
    first.
    """
    (renamed,) = rename((s,), {loop.variable: first.variable})
    assert isinstance(renamed, ir.LoadElement | ir.StoreElement)
    return renamed.indices


def is_steady(e: ir.Expression, changed: frozenset[str]) -> bool:
    """Whether an expression reads none of these variables."""
    return not any(isinstance(x, ir.Local) and x.name in changed for x in subexpressions(e))
