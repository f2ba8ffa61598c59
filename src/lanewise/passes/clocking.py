"""Measure how long the records of an element take to arrive: read the clock before its loads, and
when their values were used.

    load body[$i]: ...; $result = f(...); store $result[$i]
->  $clock.start = @clock
    if $clock.start >= 0:                   # the loads wait for this reading
      load body[$i]: ...; $result = f(...)
      if $result == $result:                # the next reading waits for the values
        $clock.stop = @clock; the first thread of the warp: store $cycles[$i // 32]: $clock.stop -
        $clock.start
      store $result[$i]
Both conditions hold for all data but not-a-number; no compiler knows it, so none moves a load or a
reading across them. Indices through which records are gathered are read before the first reading,
which waits for them.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.build import divide, equal, remainder, subtract
from lanewise.ir.names import own
from lanewise.ir.traverse import flat_map
from lanewise.ir.values import value_array
from lanewise.language.target import WARP
from lanewise.language.types import I64
from lanewise.passes.base import refuse
from lanewise.passes.gathering import INDEX
from lanewise.support.articles import an

CYCLES = own("cycles")
START, STOP = ir.Local(own("clock.start"), I64), ir.Local(own("clock.stop"), I64)
CLOCK = ir.Builtin("clock", I64)


def legal(kernel: ir.Kernel) -> str | None:
    """Why the pass does not apply, or None."""
    if not kernel.pattern.one_record:
        return (
            f"it is {an(kernel.pattern.name)} kernel, and only an elementwise one has one use of "
            "its records to wait for"
        )
    if kernel.grid is None:
        return (
            "its elements are not mapped to the threads of a GPU; a thread of a CPU is timed from "
            "outside"
        )
    if any(a.name == CYCLES for a in kernel.arrays):
        return "it reads the clock already"
    guard = _guard(kernel)
    if guard is None:
        return "its loads and stores are lowered already"
    if not any(
        isinstance(s, ir.Apply) and any(r.type.is_float for r in s.function.results)
        for s in guard.then
    ):
        return "its function has no result of floating point that the second reading could wait for"
    return None


def apply(kernel: ir.Kernel) -> ir.Kernel:
    """Add the array `$cycles`: one i64 a warp, the cycles from the loads of its first element to
    the end of its function.
    """
    if reason := legal(kernel):
        raise refuse("clocking", kernel, reason)
    guard = _guard(kernel)

    def visit(s: ir.Statement) -> ir.Block:
        return (replace(s, then=_clocked(s.then)),) if isinstance(s, ir.If) and s == guard else (s,)

    return replace(
        kernel,
        body=flat_map(kernel.body, visit),
        arrays=(*kernel.arrays, value_array(CYCLES, I64, written=True)),
    )


def _guard(kernel: ir.Kernel) -> ir.If | None:
    """The test that a thread has an element, round everything that it does with it."""
    return next(
        (
            s
            for s in kernel.body
            if isinstance(s, ir.If) and any(isinstance(x, ir.LoadRecord) for x in s.then)
        ),
        None,
    )


def _clocked(body: ir.Block) -> ir.Block:
    before = tuple(s for s in body if isinstance(s, ir.LoadRecord) and s.array == INDEX)
    timed = tuple(s for s in body if s not in before and not isinstance(s, ir.StoreRecord))
    stores = tuple(s for s in body if isinstance(s, ir.StoreRecord))
    (call,) = (s for s in timed if isinstance(s, ir.Apply))
    values = [
        ir.Local(n, r.type)
        for n, r in zip(call.results, call.function.results, strict=True)
        if r.type.is_float
    ]
    element = next(s.index for s in stores)
    reading = (ir.Assign(STOP.name, CLOCK), _store(element))
    window = (
        ir.Assign(START.name, CLOCK),
        _when_known([START], (*timed, _when_equal(values, reading), *stores)),
    )
    places = [ir.Local(v, s.index.type) for s in before for _, v in s.reads]
    return (*before, _when_known(places, window)) if places else window


def _store(element: ir.Expression) -> ir.If:
    """The first thread of a warp stores its cycles."""
    thread = ir.Builtin("thread", element.type)
    cycles = subtract(STOP, START)
    return ir.If(
        equal(remainder(thread, WARP), 0),
        (ir.StoreRecord(CYCLES, divide(element, WARP), (("value", cycles),)),),
    )


def _when_known(values: list[ir.Local], body: ir.Block) -> ir.If:
    """What runs once these integers, which are never negative, have arrived."""
    for value in values[1:]:
        body = (ir.If(ir.Compare(">=", value, ir.Literal(0, value.type)), body),)
    return ir.If(ir.Compare(">=", values[0], ir.Literal(0, values[0].type)), body)


def _when_equal(values: list[ir.Local], body: ir.Block) -> ir.If:
    """What runs once these values have been computed: a value equals itself, unless it is not a
    number.
    """
    for value in values[1:]:
        body = (ir.If(ir.Compare("==", value, value), body),)
    return ir.If(ir.Compare("==", values[0], values[0]), body)
