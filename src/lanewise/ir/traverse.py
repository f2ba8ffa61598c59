"""Walk and rebuild the IR. Every pass goes through these, so that a new node is added in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from lanewise.ir import nodes as ir


def children(e: ir.Expression) -> tuple[ir.Expression, ...]:
    """The direct sub-expressions of an expression."""
    match e:
        case ir.Literal() | ir.Local() | ir.Builtin():
            return ()
        case ir.Unary() | ir.Cast():
            return (e.operand,)
        case ir.Binary() | ir.Compare() | ir.Logical():
            return (e.left, e.right)
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
    yield e
    for child in children(e):
        yield from subexpressions(child)


def rewrite(e: ir.Expression, change: Callable[[ir.Expression], ir.Expression]) -> ir.Expression:
    """Rebuild an expression from the leaves up, giving each node to `change` once its children are done."""

    def go(child: ir.Expression) -> ir.Expression:
        return rewrite(child, change)

    match e:
        case ir.Literal() | ir.Local() | ir.Builtin():
            return change(e)
        case ir.Unary() | ir.Cast():
            return change(replace(e, operand=go(e.operand)))
        case ir.Binary() | ir.Compare() | ir.Logical():
            return change(replace(e, left=go(e.left), right=go(e.right)))
        case ir.Select():
            return change(replace(e, condition=go(e.condition), if_true=go(e.if_true), if_false=go(e.if_false)))
        case ir.Call():
            return change(replace(e, arguments=tuple(go(a) for a in e.arguments)))
        case ir.Element():
            return change(replace(e, index=go(e.index)))
        case _:
            assert_never(e)


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
        case ir.LoadRecord() | ir.Load():
            return (s.index,)
        case ir.StoreRecord():
            return (s.index, *(value for _, value in s.writes))
        case ir.Store():
            return (s.index, *s.values)
        case ir.LoadElement():
            return s.indices
        case ir.StoreElement():
            return (*s.indices, *s.values)
        case ir.ScatterElement():
            return (*s.indices, s.value)
        case ir.Scatter():
            return (s.index, s.value)
        case ir.Rotate():
            return s.values
        case ir.Shuffle():
            return (s.value,)
        case ir.Draw():
            return (s.total,)
        case ir.AwaitTurn():
            return (s.index, s.turn)
        case ir.EndTurn():
            return (s.index, s.following)
        case ir.CopyAsync() | ir.CopyLanes():
            return (s.index, s.source_index)
        case ir.DeclareArray() | ir.Break() | ir.Continue() | ir.Barrier() | ir.WaitAsync():
            return ()
        case _:
            assert_never(s)


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
        for nested in blocks(s):
            yield from statements(nested)


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
        case ir.Draw() | ir.Shuffle():
            return (s.name,)
        case _:
            return ()


def reads(e: ir.Expression) -> Iterator[str]:
    """The variables and local arrays that an expression reads."""
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
    """Rebuild one statement: its expressions, nested blocks and the names of variables it writes."""
    match s:
        case ir.Assign():
            return replace(s, name=name(s.name), value=expression(s.value))
        case ir.DeclareArray():
            return replace(s, name=name(s.name))
        case ir.SetElement():
            return replace(s, array=name(s.array), index=expression(s.index), value=expression(s.value))
        case ir.If():
            return replace(s, condition=expression(s.condition), then=block(s.then), otherwise=block(s.otherwise))
        case ir.For():
            start, stop, step = expression(s.start), expression(s.stop), expression(s.step)
            return replace(s, variable=name(s.variable), start=start, stop=stop, step=step, body=block(s.body))
        case ir.While():
            return replace(s, condition=expression(s.condition), body=block(s.body))
        case ir.Return():
            return replace(s, values=tuple(expression(v) for v in s.values))
        case ir.Apply():
            arguments = tuple(expression(a) for a in s.arguments)
            return replace(s, arguments=arguments, results=tuple(name(r) for r in s.results))
        case ir.Parallel():
            return replace(s, variable=name(s.variable), extent=expression(s.extent), body=block(s.body))
        case ir.LoadRecord():
            return replace(s, index=expression(s.index), reads=tuple((leaf, name(v)) for leaf, v in s.reads))
        case ir.StoreRecord():
            return replace(s, index=expression(s.index), writes=tuple((leaf, expression(v)) for leaf, v in s.writes))
        case ir.Load():
            return replace(s, index=expression(s.index), names=tuple(name(n) if n else n for n in s.names))
        case ir.Store():
            return replace(s, index=expression(s.index), values=tuple(expression(v) for v in s.values))
        case ir.LoadElement():
            indices, more = tuple(expression(i) for i in s.indices), tuple(name(n) for n in s.more)
            return replace(s, indices=indices, name=name(s.name), more=more)
        case ir.StoreElement():
            indices, more = tuple(expression(i) for i in s.indices), tuple(expression(v) for v in s.more)
            return replace(s, indices=indices, value=expression(s.value), more=more)
        case ir.ScatterElement():
            return replace(s, indices=tuple(expression(i) for i in s.indices), value=expression(s.value))
        case ir.Scatter():
            return replace(s, index=expression(s.index), value=expression(s.value))
        case ir.Rotate():
            return replace(s, values=tuple(replace(v, name=name(v.name)) for v in s.values))
        case ir.Shuffle():
            value = expression(s.value)
            assert isinstance(value, ir.Local)  # a warp exchanges variables
            return replace(s, name=name(s.name), value=value)
        case ir.Draw():
            return replace(s, name=name(s.name), total=expression(s.total))
        case ir.AwaitTurn():
            return replace(s, index=expression(s.index), turn=expression(s.turn))
        case ir.EndTurn():
            return replace(s, index=expression(s.index), following=expression(s.following))
        case ir.CopyAsync() | ir.CopyLanes():
            return replace(s, index=expression(s.index), source_index=expression(s.source_index))
        case ir.Break() | ir.Continue() | ir.Barrier() | ir.WaitAsync():
            return s
        case _:
            assert_never(s)


def rewrite_block(block: ir.Block, change: Callable[[ir.Expression], ir.Expression]) -> ir.Block:
    """Rebuild every expression of a block and of the blocks in it."""
    return tuple(rewrite_statement(s, lambda e: rewrite(e, change), lambda b: rewrite_block(b, change)) for s in block)


def flat_map(block: ir.Block, change: Callable[[ir.Statement], ir.Block]) -> ir.Block:
    """Replace each statement, nested ones first, by the statements that `change` returns for it."""
    done = (rewrite_statement(s, lambda e: e, lambda b: flat_map(b, change)) for s in block)
    return tuple(new for s in done for new in change(s))


def rename(block: ir.Block, names: dict[str, str]) -> ir.Block:
    """Rename variables and local arrays throughout a block."""

    def expression(e: ir.Expression) -> ir.Expression:
        match e:
            case ir.Local():
                return replace(e, name=names.get(e.name, e.name))
            case ir.Element():
                return replace(e, array=names.get(e.array, e.array))
            case _:
                return e

    return tuple(
        rewrite_statement(s, lambda e: rewrite(e, expression), lambda b: rename(b, names), lambda n: names.get(n, n))
        for s in block
    )
