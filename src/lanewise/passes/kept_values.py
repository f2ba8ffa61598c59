"""Keep values that several loops over one range compute alike: an exponential or a quotient is
computed once, and read again.

    for k in range(n): load a[y, k]: u; s += exp(u - m)          for k in range(n): load a[y, k]: v;
    store c[y, k] = exp(v - m) / s
->  for k in range(min(n, 16384)): load a[y, k]: u; $value = exp(u - m); store $values[k] = $value;
s += $value
    for k in range(min(n, 16384)): load $values[k]: $value; store c[y, k] = $value / s
Further rounds compute them again. A value is the same in both loops where it is made of elements of
arrays that the kernel does not write and of variables that nothing between the loops changes.
Functions and quotients are worth it, whose results are rounded where they
end: what is kept has the bits that would be computed again. Loops that share rounds
(loop_sharing.py) give a round to one thread in all loops, so that every thread reads what it kept
itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanewise.analysis.reductions import Shareable, indices_in, over_one_range
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import (
    children,
    expressions,
    reads,
    rewrite,
    rewrite_statement,
    statements,
    subexpressions,
    used_in,
    writes,
    written_in,
)
from lanewise.ir.values import shared_values
from lanewise.language.types import Scalar

# as fast as a load
CHEAP = frozenset(("min", "max", "clamp", "mix", "abs", "fma", "floor", "ceil", "trunc", "round"))
NOTHING = "no two of its loops over one range, from 0 on, compute the same value"


@dataclass(frozen=True, slots=True)
class KeptValue:
    """A value that several loops compute: what it is in the words of the first of them, and the
    numbers of the loops.
    """

    name: str
    type: Scalar
    meaning: ir.Expression
    loops: tuple[int, ...]
    first: ir.For

    @property
    def array(self) -> str:
        return f"{self.name}.kept"

    def argument(self, lanes: int, rounds: int) -> ir.ArrayArgument:
        """The memory that keeps it: a row for each of the points of a block."""
        return shared_values(self.array, self.type, lanes, rounds)


def values_of(
    kernel: ir.Kernel, body: ir.Block, loops: dict[int, Shareable]
) -> tuple[KeptValue, ...]:
    """The values worth keeping, of the shareable loops of a thread's body (by their places in it)
    that begin at 0.
    """
    if not (plain := over_one_range(loops)):
        return ()
    first = next(iter(plain.values()))
    meanings: dict[ir.Expression, list[int]] = {}
    for n, loop in plain.items():
        loads = _Loads(kernel, loop, first)
        costly = (
            x for s in loop.body for e in expressions(s) for x in subexpressions(e) if _is_costly(x)
        )
        for meaning in dict.fromkeys(m for x in costly if (m := loads.meaning(x)) is not None):
            meanings.setdefault(meaning, []).append(n)
    steady = {
        m: numbers
        for m, numbers in meanings.items()
        if len(numbers) > 1 and _is_steady(m, body, numbers, first)
    }
    whole = [
        m
        for m in steady
        if not any(m is not o and m in _below(o) and steady[o] == steady[m] for o in steady)
    ]
    return tuple(
        KeptValue(own(f"value.{i}"), m.type, m, tuple(steady[m]), first)
        for i, m in enumerate(whole)
    )


def kept(
    kernel: ir.Kernel, loop: ir.For, number: int, values: tuple[KeptValue, ...], lane: ir.Expression
) -> ir.Block:
    """The body of a loop that keeps the values (the first of their loops) or reads them. lane: the
    point among those of a block.
    """
    block = loop.body
    for value in values:
        if number in value.loops:
            block = _with_value(
                kernel, replace(loop, body=block), value, lane, computes=number == value.loops[0]
            )
    used = used_in(block)
    return tuple(
        s for s in block if not isinstance(s, ir.LoadElement) or not used.isdisjoint(s.names)
    )


def _with_value(
    kernel: ir.Kernel, loop: ir.For, value: KeptValue, lane: ir.Expression, *, computes: bool
) -> ir.Block:
    loads = _Loads(kernel, loop, value.first)
    place = (lane, ir.Local(loop.variable, loop.start.type))
    local = ir.Local(value.name, value.type)

    def read(e: ir.Expression) -> ir.Expression:
        return rewrite(e, lambda x: local if loads.meaning(x) == value.meaning else x)

    done: list[ir.Statement] = []
    is_there = False
    for s in loop.body:
        same = next(
            (
                x
                for e in expressions(s)
                for x in subexpressions(e)
                if loads.meaning(x) == value.meaning
            ),
            None,
        )
        if same is None:
            done.append(s)
            continue
        if not is_there and computes:
            done += [ir.Assign(value.name, same), ir.StoreElement(value.array, place, local)]
        elif not is_there:
            done.append(ir.LoadElement(value.array, place, value.name))
        is_there = True
        done.append(rewrite_statement(s, read, lambda b: b))
    return tuple(done)


class _Loads:
    """What the variables of a loop's round stand for: elements of arrays that the kernel does not
    write, and values made of them.
    """

    def __init__(self, kernel: ir.Kernel, loop: ir.For, first: ir.For) -> None:
        self.loop, self.first = loop, first
        written = {
            s.array
            for s in statements(kernel.body)
            if isinstance(s, ir.StoreElement | ir.ScatterElement)
        }
        often = [n for s in statements(loop.body) for n in writes(s)]
        self.changed = set(often)
        self.stands_for: dict[str, ir.Expression] = {}
        for s in loop.body:
            match s:
                case ir.LoadElement(more=()) if s.array not in written and often.count(s.name) == 1:
                    if self.changed.isdisjoint(n for i in s.indices for n in reads(i)):
                        kind = kernel.array(s.array).leaves[0].type
                        element = f"element of {s.array}"  # compared, and never computed
                        self.stands_for[s.name] = ir.Call(element, indices_in(s, loop, first), kind)
                case ir.Assign() if (
                    often.count(s.name) == 1 and (meaning := self.meaning(s.value)) is not None
                ):
                    self.stands_for[s.name] = meaning
                case _:
                    pass

    def meaning(self, e: ir.Expression) -> ir.Expression | None:
        """An expression of a round in the words of the first loop, or None where it is made of what
        rounds change.
        """
        if any(n in self.changed and n not in self.stands_for for n in reads(e)):
            return None

        def change(x: ir.Expression) -> ir.Expression:
            match x:
                case ir.Local() if x.name in self.stands_for:
                    return self.stands_for[x.name]
                case ir.Local() if x.name == self.loop.variable:
                    return replace(x, name=self.first.variable)
                case _:
                    return x

        return rewrite(e, change)


def _is_costly(e: ir.Expression) -> bool:
    if not e.type.is_float:
        return False
    match e:
        case ir.Call():
            return e.intrinsic not in CHEAP
        case ir.Binary(operator="/", right=right):
            return not isinstance(right, ir.Literal)
        case _:
            return False


def _is_steady(meaning: ir.Expression, body: ir.Block, numbers: list[int], first: ir.For) -> bool:
    """Whether a value depends on the round, and nothing from the first of its loops to the last one
    changes what else it is made of.
    """
    names = {*reads(meaning)}
    changed = written_in(body[numbers[0] : numbers[-1] + 1])
    return first.variable in names and changed.isdisjoint(names - {first.variable})


def _below(e: ir.Expression) -> set[ir.Expression]:
    return {x for child in children(e) for x in subexpressions(child)}
