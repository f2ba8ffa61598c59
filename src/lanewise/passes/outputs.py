"""Keep some of what a function or a kernel computes, and drop what serves only the rest (a backward
slice).

    function f(mutable x, mutable v, a): v = v + a; x = x + v        only x:    function f(mutable
    x, v, a): v = v + a; x = x + v
                                                                     only v:    function f(mutable
                                                                     v, a): v = v + a
Loops and conditions stay where something in them is kept. `dead_code` alone would not do: a sum
that is not wanted reads itself.

What two kernels compute both may come out in two ways where it decides something: tests of floats,
and steps from floats to integers, of rounded arithmetic.

    r2 = x * x + y * y; if r2 < limit: ...
One compilation may fuse the product with the sum and another one may not, as their surroundings
suggest; a borderline element would then be on both sides of such a test. Comparisons of fields,
integers, and single operations come out the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.printer import print_expression
from lanewise.ir.traverse import (
    children,
    expressions,
    reads,
    rewrite_statement,
    statements,
    subexpressions,
    used_by,
    writes,
)


def keep_outputs(f: ir.Function, results: list[int], changed: set[str]) -> ir.Function:
    """The function that gives these results (by position) and changes these parameters; others are
    its own parameters use.
    """

    def trim(block: ir.Block) -> ir.Block:
        return tuple(
            replace(s, values=tuple(s.values[n] for n in results))
            if isinstance(s, ir.Return)
            else rewrite_statement(s, lambda e: e, trim)
            for s in block
        )

    body = sliced(trim(f.body), changed, lambda s: isinstance(s, ir.Return))
    body = body if results else _without_last_returns(body)
    parameters = tuple(replace(p, mutable=p.mutable and p.name in changed) for p in f.parameters)
    return replace(
        f, parameters=parameters, results=tuple(f.results[n] for n in results), body=body
    )


def keep_stores(kernel: ir.Kernel, kept: Callable[[str, str], bool]) -> ir.Kernel:
    """The kernel that writes only the leaves (of an array) that pass the test, with the functions
    that this takes.
    """

    def trim(block: ir.Block) -> ir.Block:
        done: list[ir.Statement] = []
        for s in block:
            if not isinstance(s, ir.StoreRecord):
                done.append(rewrite_statement(s, lambda e: e, trim))
            elif some := tuple((leaf, value) for leaf, value in s.writes if kept(s.array, leaf)):
                done.append(replace(s, writes=some))
        return tuple(done)

    body = sliced(trim(kernel.body), set(), lambda s: isinstance(s, ir.StoreRecord))
    needed = {n for s in statements(body) for e in _inputs(s) for n in reads(e)}
    body = _specialised(body, needed)
    used = {s.array for s in statements(body) if isinstance(s, ir.LoadRecord | ir.StoreRecord)}
    written = {s.array for s in statements(body) if isinstance(s, ir.StoreRecord)}
    # of pairs, an array may serve its count alone
    own = {a.name for a in kernel.arrays if a.name in used or not a.written}
    arrays = tuple(replace(a, written=a.name in written) for a in kernel.arrays if a.name in own)
    return replace(kernel, body=body, arrays=arrays)


def _without_last_returns(block: ir.Block) -> ir.Block:
    """Without what only leaves a function that ends there anyway."""
    while block:
        last = block[-1]
        if isinstance(last, ir.If):
            last = replace(
                last,
                then=_without_last_returns(last.then),
                otherwise=_without_last_returns(last.otherwise),
            )
            if last.then or last.otherwise:
                return (*block[:-1], last)
        elif not isinstance(last, ir.Return):
            return block
        block = block[:-1]
    return block


def _inputs(s: ir.Statement) -> tuple[ir.Expression, ...]:
    """What a statement needs; a variable that a function only changes counts as its output."""
    if not isinstance(s, ir.Apply):
        return expressions(s)
    pairs = zip(s.function.parameters, s.arguments, strict=True)
    return tuple(a for p, a in pairs if not p.mutable)


def _specialised(block: ir.Block, needed: set[str]) -> ir.Block:
    def visit(s: ir.Statement) -> ir.Statement:
        if not isinstance(s, ir.Apply):
            return rewrite_statement(s, lambda e: e, lambda b: _specialised(b, needed))
        results = [n for n, name in enumerate(s.results) if name in needed]
        pairs = zip(s.function.parameters, s.arguments, strict=True)
        changed = {
            p.name for p, a in pairs if p.mutable and isinstance(a, ir.Local) and a.name in needed
        }
        return replace(
            s,
            function=keep_outputs(s.function, results, changed),
            results=tuple(s.results[n] for n in results),
        )

    return tuple(map(visit, block))


def sliced(block: ir.Block, outputs: set[str], root: Callable[[ir.Statement], bool]) -> ir.Block:
    """The statements that a statement which passes `root` needs, or that `outputs` need where the
    block ends or returns.
    """
    kept, _ = _Slice(frozenset(outputs), root).block(block, set(outputs), None)
    return kept


@dataclass(frozen=True, slots=True)
class _Slice:
    """Walks backwards with the variables whose values are still wanted (`live`); `loop` are those
    wanted where a loop continues or ends.
    """

    outputs: frozenset[str]
    root: Callable[[ir.Statement], bool]

    def block(
        self, block: ir.Block, live: set[str], loop: set[str] | None
    ) -> tuple[ir.Block, set[str]]:
        kept: list[ir.Statement] = []
        for s in reversed(block):
            new, live = self.statement(s, live, loop)
            kept += [] if new is None else [new]
        return tuple(reversed(kept)), live

    def statement(
        self, s: ir.Statement, live: set[str], loop: set[str] | None
    ) -> tuple[ir.Statement | None, set[str]]:
        match s:
            case ir.If():
                then, before_then = self.block(s.then, live, loop)
                otherwise, before_otherwise = self.block(s.otherwise, live, loop)
                if not then and not otherwise:
                    return None, live
                return replace(
                    s, then=then, otherwise=otherwise
                ), before_then | before_otherwise | used_by(s)
            case ir.For() | ir.While():
                body, _ = self.settled(s.body, live, None)
                if not body:
                    return None, live
                body, around = self.settled(s.body, live | used_by(s), live)
                return replace(s, body=body), around
            case ir.Parallel():
                body, inside = self.block(s.body, live, None)
                return (replace(s, body=body), inside | used_by(s)) if body else (None, live)
            case ir.Return():
                return s, {*self.outputs, *used_by(s)}
            case ir.Break() | ir.Continue():
                return (None, live) if loop is None else (s, set(loop))
            case _:
                if not self.root(s) and live.isdisjoint(writes(s)):
                    return None, live
                return s, (live - _replaced(s)) | used_by(s)

    def settled(
        self, body: ir.Block, live: set[str], loop: set[str] | None
    ) -> tuple[ir.Block, set[str]]:
        """The body of a loop, once nothing more is found that a later round wants of an earlier
        one.
        """
        while True:
            kept, inside = self.block(body, live, loop if loop is None else live | loop)
            if inside <= live:
                return kept, live
            live = live | inside


def _replaced(s: ir.Statement) -> set[str]:
    """The variables whose old values a statement surely makes unimportant."""
    match s:
        case ir.Assign() | ir.LoadRecord():
            return set(writes(s))
        case ir.Apply():
            return set(s.results)
        case _:
            return set()


_EXACT_CALLS = frozenset(
    {"min", "max", "abs", "clamp", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite"}
)
_STEPS = frozenset({"floor", "ceil", "trunc", "round"})


def inexact(expressions: Iterable[ir.Expression], *, fast_math: bool = False) -> str | None:
    """What in these expressions (with all below them) compilers may round in several ways, or
    None.
    """
    every = [x for e in expressions for x in subexpressions(e)]
    real = [x for x in every if isinstance(x, ir.Binary | ir.Call) and x.type.is_float]
    if calls := [
        x.intrinsic for x in real if isinstance(x, ir.Call) and x.intrinsic not in _EXACT_CALLS
    ]:
        return f"computes {calls[0]}"
    operators = {x.operator for x in real if isinstance(x, ir.Binary)}
    if "*" in operators and operators & {"+", "-"}:
        return "adds products"
    if odd := operators & {"%", "//"}:
        return f"computes {min(odd)} of floats"
    if fast_math and any(x.type.is_float for x in every):
        return "compares floats under fast_math"
    return None


def decisions(block: ir.Block, *, fast_math: bool = False) -> set[tuple[str, str]]:
    """The place and the text of every such decision in the functions that a block applies."""
    deciding: set[tuple[str, str]] = set()
    outer = {s.function.name for s in statements(block) if isinstance(s, ir.Apply)}
    for f in functions(block):
        for x in (x for e in _of(f.body) for x in subexpressions(e)):
            # What a helper is given may be rounded already.
            if _decides(x) and (
                f.name not in outer or inexact(_behind(f.body, x), fast_math=fast_math)
            ):
                deciding.add((str(x.location), print_expression(x)))
    return deciding


def _decides(x: ir.Expression) -> bool:
    real = any(c.type.is_float for c in children(x))
    match x:
        case ir.Compare():
            return real
        case ir.Cast():
            return real and not x.type.is_float
        case ir.Call():
            return real and x.intrinsic in _STEPS
        case ir.Binary():
            return real and x.operator in ("%", "//")
        case _:
            return False


def _of(block: ir.Block) -> list[ir.Expression]:
    return [e for s in statements(block) for e in expressions(s)]


def _behind(block: ir.Block, x: ir.Expression) -> list[ir.Expression]:
    """The expression and everything that its value comes from."""
    needed = set(reads(x))
    while True:
        used = tuple(
            s
            for s in statements(block)
            if not isinstance(s, ir.For) and not needed.isdisjoint(writes(s))
        )
        wider = needed | {n for s in used for e in expressions(s) for n in reads(e)}
        if wider == needed:
            helpers = (e for f in functions(used) for e in _of(f.body))
            return [x, *(e for s in used for e in expressions(s)), *helpers]
        needed = wider
