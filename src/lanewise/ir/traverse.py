"""Walk and rebuild the IR. Every pass goes through these, so that a new node is added in one place.

What nothing changes in stays the same object: rebuilding costs more than looking, and what was
verified need not be looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache
from operator import is_
from typing import Any, TypeVar, assert_never

from lanewise.ir import nodes as ir

_T = TypeVar("_T")
_Node = TypeVar("_Node", bound=ir.Expression | ir.Statement)


def children(e: ir.Expression) -> tuple[ir.Expression, ...]:
    """The direct sub-expressions of an expression."""
    match e:  # the most frequent ones first
        case ir.Local() | ir.Literal():
            return ()
        case ir.Binary() | ir.Compare() | ir.Logical():
            return (e.left, e.right)
        case ir.Builtin():
            return ()
        case ir.Unary() | ir.Cast():
            return (e.operand,)
        case ir.Select():
            return (e.condition, e.if_true, e.if_false)
        case ir.Call():
            return e.arguments
        case ir.Element():
            return (e.index,)
        case _:
            assert_never(e)


def subexpressions(e: ir.Expression) -> Iterator[ir.Expression]:
    """The expression and everything below it, parents first."""
    waiting = [e]
    while waiting:
        x = waiting.pop()
        yield x
        if below := children(x):
            waiting.extend(reversed(below))


def rewrite(e: ir.Expression, change: Callable[[ir.Expression], ir.Expression]) -> ir.Expression:
    """Rebuild an expression from the leaves up, giving each node to `change` once its children are
    done.
    """
    below = children(e)
    if not below:
        return change(e)
    done = tuple([rewrite(child, change) for child in below])
    return change(e if _same(below, done) else _with_children(e, done))


def _with_children(e: ir.Expression, below: tuple[ir.Expression, ...]) -> ir.Expression:
    """An expression with others in the place of its sub-expressions."""
    match e:
        case ir.Literal() | ir.Local() | ir.Builtin():
            return e
        case ir.Unary() | ir.Cast():
            return _changed(e, operand=below[0])
        case ir.Binary() | ir.Compare() | ir.Logical():
            return _changed(e, left=below[0], right=below[1])
        case ir.Select():
            return _changed(e, condition=below[0], if_true=below[1], if_false=below[2])
        case ir.Call():
            return _changed(e, arguments=below)
        case ir.Element():
            return _changed(e, index=below[0])
        case _:
            assert_never(e)


def _same(before: tuple[object, ...], after: tuple[object, ...]) -> bool:
    """Whether these are the same objects."""
    return len(before) == len(after) and all(map(is_, before, after))


def expressions(s: ir.Statement) -> tuple[ir.Expression, ...]:
    """The expressions that a statement itself evaluates, not those of nested statements."""
    match s:
        case ir.Assign():
            return (s.value,)
        case ir.SetElement():
            return (s.index, s.value)
        case ir.If() | ir.While():
            return (s.condition,)
        case ir.For():
            return (s.start, s.stop, s.step)
        case ir.Return():
            return s.values
        case ir.Apply():
            return s.arguments
        case ir.Parallel():
            return (s.extent,)
        case ir.LoadRecord() | ir.Load() | ir.Prefetch():
            return (s.index,)
        case ir.StoreRecord():
            return (s.index, *(value for _, value in s.writes))
        case ir.Store():
            return (s.index, *s.values)
        case ir.LoadElement() | ir.PrefetchElement():
            return s.indices
        case ir.StoreElement():
            return (*s.indices, *s.values)
        case ir.ScatterElement():
            return (*s.indices, s.value)
        case ir.Scatter():
            return (s.index, s.value)
        case ir.Rotate():
            return s.values
        case ir.Shuffle() | ir.Least():
            return (s.value,)
        case ir.Draw():
            return (s.total,)
        case ir.AwaitTurn():
            return (s.index, s.turn)
        case ir.EndTurn():
            return (s.index, s.following)
        case ir.CopyAsync():
            return (s.index, s.source_index)
        case ir.CopyLanes():
            return (s.index, s.source_index, *_if_any(s.there))
        case ir.CopyElement():
            return (*s.indices, *s.source_indices, *_if_any(s.there))
        case (
            ir.DeclareArray()
            | ir.Break()
            | ir.Continue()
            | ir.Barrier()
            | ir.CommitAsync()
            | ir.WaitAsync()
        ):
            return ()
        case _:
            assert_never(s)


def _if_any(e: ir.Expression | None) -> tuple[ir.Expression, ...]:
    return () if e is None else (e,)


_AROUND = (ir.If, ir.For, ir.While, ir.Parallel)  # statements with blocks


def blocks(s: ir.Statement) -> tuple[ir.Block, ...]:
    """The nested blocks of a statement."""
    match s:
        case ir.If():
            return (s.then, s.otherwise)
        case ir.For() | ir.While() | ir.Parallel():
            return (s.body,)
        case _:
            return ()


def statements(block: ir.Block) -> Iterator[ir.Statement]:
    """Every statement of a block and of the blocks in it, in order of text."""
    for s in block:
        yield s
        if isinstance(s, _AROUND):
            for nested in blocks(s):
                yield from statements(nested)


def returns(s: ir.Statement) -> bool:
    """Whether some threads do not come to what follows."""
    return any(isinstance(x, ir.Return) for x in statements((s,)))


def writes(s: ir.Statement) -> tuple[str, ...]:
    """The variables that a statement itself gives a value."""
    match s:
        case ir.Assign() | ir.DeclareArray():
            return (s.name,)
        case ir.SetElement():
            return (s.array,)
        case ir.For() | ir.Parallel():
            return (s.variable,)
        case ir.Apply():
            changed = (
                a.name
                for p, a in zip(s.function.parameters, s.arguments, strict=True)
                if p.mutable and isinstance(a, ir.Local)
            )
            return (*changed, *s.results)
        case ir.LoadRecord():
            return tuple(variable for _, variable in s.reads)
        case ir.Load():
            return tuple(n for n in s.names if n)
        case ir.LoadElement():
            return s.names
        case ir.Rotate():
            return tuple(v.name for v in s.values)
        case ir.Draw() | ir.Shuffle() | ir.Least():
            return (s.name,)
        case _:
            return ()


def reads(e: ir.Expression) -> Iterator[str]:
    """The variables and local arrays that an expression reads."""
    if isinstance(e, ir.Local):  # as most are
        yield e.name
        return
    for x in subexpressions(e):
        match x:
            case ir.Local():
                yield x.name
            case ir.Element():
                yield x.array
            case _:
                pass


def rewrite_statement(
    s: ir.Statement,
    expression: Callable[[ir.Expression], ir.Expression],
    block: Callable[[ir.Block], ir.Block],
    name: Callable[[str], str] = lambda n: n,
) -> ir.Statement:
    """Rebuild one statement: its expressions, nested blocks and the names of variables it
    writes.
    """
    match s:
        case ir.Assign():
            return _changed(s, name=name(s.name), value=expression(s.value))
        case ir.DeclareArray():
            return _changed(s, name=name(s.name))
        case ir.SetElement():
            return _changed(
                s, array=name(s.array), index=expression(s.index), value=expression(s.value)
            )
        case ir.If():
            return _changed(
                s,
                condition=expression(s.condition),
                then=block(s.then),
                otherwise=block(s.otherwise),
            )
        case ir.For():
            start, stop, step = expression(s.start), expression(s.stop), expression(s.step)
            return _changed(
                s, variable=name(s.variable), start=start, stop=stop, step=step, body=block(s.body)
            )
        case ir.While():
            return _changed(s, condition=expression(s.condition), body=block(s.body))
        case ir.Return():
            return _changed(s, values=_each(s.values, expression))
        case ir.Apply():
            return _changed(
                s, arguments=_each(s.arguments, expression), results=_each(s.results, name)
            )
        case ir.Parallel():
            return _changed(
                s, variable=name(s.variable), extent=expression(s.extent), body=block(s.body)
            )
        case ir.LoadRecord():
            return _changed(
                s, index=expression(s.index), reads=_each(s.reads, lambda r: _second(r, name))
            )
        case ir.StoreRecord():
            return _changed(
                s,
                index=expression(s.index),
                writes=_each(s.writes, lambda w: _second(w, expression)),
            )
        case ir.Load():
            return _changed(
                s, index=expression(s.index), names=_each(s.names, lambda n: name(n) if n else n)
            )
        case ir.Store():
            return _changed(s, index=expression(s.index), values=_each(s.values, expression))
        case ir.LoadElement():
            indices = _each(s.indices, expression)
            return _changed(s, indices=indices, name=name(s.name), more=_each(s.more, name))
        case ir.StoreElement():
            indices, value = _each(s.indices, expression), expression(s.value)
            return _changed(s, indices=indices, value=value, more=_each(s.more, expression))
        case ir.ScatterElement():
            return _changed(s, indices=_each(s.indices, expression), value=expression(s.value))
        case ir.PrefetchElement():
            return _changed(s, indices=_each(s.indices, expression))
        case ir.Prefetch():
            return _changed(s, index=expression(s.index))
        case ir.Scatter():
            return _changed(s, index=expression(s.index), value=expression(s.value))
        case ir.Rotate():
            return _changed(s, values=_each(s.values, lambda v: _changed(v, name=name(v.name))))
        case ir.Shuffle() | ir.Least():
            value = expression(s.value)
            assert isinstance(value, ir.Local)  # a warp exchanges variables
            return _changed(s, name=name(s.name), value=value)
        case ir.Draw():
            return _changed(s, name=name(s.name), total=expression(s.total))
        case ir.AwaitTurn():
            return _changed(s, index=expression(s.index), turn=expression(s.turn))
        case ir.EndTurn():
            return _changed(s, index=expression(s.index), following=expression(s.following))
        case ir.CopyAsync():
            return _changed(s, index=expression(s.index), source_index=expression(s.source_index))
        case ir.CopyLanes():
            there = None if s.there is None else expression(s.there)
            return _changed(
                s, index=expression(s.index), source_index=expression(s.source_index), there=there
            )
        case ir.CopyElement():
            there = None if s.there is None else expression(s.there)
            to, source = _each(s.indices, expression), _each(s.source_indices, expression)
            return _changed(s, indices=to, source_indices=source, there=there)
        case ir.Break() | ir.Continue() | ir.Barrier() | ir.CommitAsync() | ir.WaitAsync():
            return s
        case _:
            assert_never(s)


def _changed(node: _Node, **new: Any) -> _Node:
    """A node with these fields; itself, where they are what it has."""
    for n, value in new.items():
        if getattr(node, n) is not value:
            rest = {n: getattr(node, n) for n in _names(type(node)) if n not in new}
            # as `dataclasses.replace` does, which looks at the fields each time
            return type(node)(**new, **rest)
    return node


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


def _each(values: tuple[_T, ...], change: Callable[[_T], _T]) -> tuple[_T, ...]:
    """Every value changed; the same tuple, where none is."""
    if not values:
        return values
    done = tuple([change(v) for v in values])
    return values if _same(values, done) else done


def _second(pair: tuple[str, _T], change: Callable[[_T], _T]) -> tuple[str, _T]:
    """A pair with its second half changed; the same pair, where it is not."""
    done = change(pair[1])
    return pair if done is pair[1] else (pair[0], done)


def rewrite_block(block: ir.Block, change: Callable[[ir.Expression], ir.Expression]) -> ir.Block:
    """Rebuild every expression of a block and of the blocks in it."""

    def expression(e: ir.Expression) -> ir.Expression:
        return rewrite(e, change)

    def go(inner: ir.Block) -> ir.Block:
        return _each(inner, lambda s: rewrite_statement(s, expression, go))

    return go(block)


def flat_map(block: ir.Block, change: Callable[[ir.Statement], ir.Block]) -> ir.Block:
    """Replace each statement, nested ones first, by the statements that `change` returns for it."""

    def go(inner: ir.Block) -> ir.Block:
        done = tuple(
            [
                new
                for s in inner
                for new in change(rewrite_statement(s, lambda e: e, go) if blocks(s) else s)
            ]
        )
        return inner if _same(inner, done) else done

    return go(block)


def rename(block: ir.Block, names: dict[str, str]) -> ir.Block:
    """Rename variables and local arrays throughout a block."""

    def name(n: str) -> str:
        return names.get(n, n)

    def one(e: ir.Expression) -> ir.Expression:
        match e:
            case ir.Local():
                new = names.get(e.name)
                return e if new is None else ir.Local(new, e.type, e.location)
            case ir.Element():
                return _changed(e, array=name(e.array))
            case _:
                return e

    def expression(e: ir.Expression) -> ir.Expression:
        return rewrite(e, one)

    def go(inner: ir.Block) -> ir.Block:
        return _each(inner, lambda s: rewrite_statement(s, expression, go, name))

    return go(block)


def apart(block: ir.Block) -> ir.Block:
    """The same block in which no statement is one object with another, as passes may leave them:
    for who knows them by identity.
    """
    seen = set[int]()

    def one(s: ir.Statement) -> ir.Statement:
        again = id(s) in seen
        seen.add(id(s))
        done = rewrite_statement(s, lambda e: e, go) if blocks(s) else s
        return replace(s) if again and done is s else done

    def go(inner: ir.Block) -> ir.Block:
        return _each(inner, one)

    return go(block)
