"""Loops that count, and those over all elements of an array."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from lanewise.runtime.written.kinds import I64, U64, TextError
from lanewise.runtime.written.values import Arithmetic, TextArray, TextNumber, constant


def counted(
    math: Arithmetic,
    first: TextNumber,
    last: TextNumber,
    step: int,
    each: Callable[[TextNumber], None],
) -> None:
    """Rounds from one number to before another: tested behind a round, as LLVM has loops."""
    kind = U64 if U64 in (first.kind, last.kind) else I64
    begin, end = math.cast(first, kind), math.cast(last, kind)
    room = math.code.room(f"%{math.code.label('counter')}", "i64")
    body, behind = math.code.label("body"), math.code.label("done")
    before = math.code.label("before")
    test: ast.cmpop = ast.Lt() if step > 0 else ast.Gt()
    math.code.branch(math.compare(test, begin, end).name, before, behind)
    math.code.begin(before)
    math.code.do(f"store i64 {begin.name}, ptr {room}")
    math.code.begin(body)
    at = math.code.give(f"load i64, ptr {room}")
    each(TextNumber(kind, at))
    wraps = "nuw" if kind == U64 else "nsw"
    more = TextNumber(kind, math.code.give(f"add {wraps} i64 {at}, {step}"))
    math.code.do(f"store i64 {more.name}, ptr {room}")
    math.code.branch(math.compare(test, more, end).name, body, behind)
    math.code.begin(behind)


def copy(math: Arithmetic, to: TextArray, source: TextArray) -> None:
    """Give the elements of a row those of another one."""
    if to.kind.dimensions != 1 or source.kind.dimensions != 1:
        raise TextError("rows of one dimension are copied")

    def each(at: TextNumber) -> None:
        math.store(math.inner(to, at), math.load(math.inner(source, at)))

    counted(math, constant(0), TextNumber(I64, to.lengths[0]), 1, each)


def fill(math: Arithmetic, to: TextArray, v: TextNumber) -> None:
    """Give all elements of an array one value."""
    if not to.kind.whole:
        raise TextError("arrays whose elements follow each other are filled")
    row = replace(to, kind=replace(to.kind, dimensions=1), lengths=(math.count(to),))
    v = math.cast(v, to.kind.element)

    def each(at: TextNumber) -> None:
        math.store(math.inner(row, at), v)

    counted(math, constant(0), TextNumber(I64, row.lengths[0]), 1, each)
