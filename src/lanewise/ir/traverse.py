"""Walk and rebuild the IR. Every pass goes through these, which know nodes by the table of their
fields (`fields.py`): a new one needs no line here.

What nothing changes in stays the same object: rebuilding costs more than looking, and what was
verified need not be looked at again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from lanewise.ir import nodes as ir
from lanewise.ir.fields import ByClass, Fields, Many, Part, each, same, second
from lanewise.ir.roles import FieldRole

Change = Callable[[ir.Expression], ir.Expression]
_Get = Callable[[Any], tuple[Any, ...]]
_Rebuild = Callable[[Any, Any, Any, Any], Any]
"""Of a node, or of what one of its fields holds, with what changes expressions, blocks, names."""


# ---------------------------------------------------------------- what a node is made of


def children(node: ir.Expression | ir.Statement) -> tuple[ir.Expression, ...]:
    """The direct sub-expressions of an expression, or the expressions that a statement evaluates
    itself, not those of nested statements.
    """
    return _EXPRESSIONS[type(node)](node)


expressions = children


def blocks(s: ir.Statement) -> tuple[ir.Block, ...]:
    """The nested blocks of a statement."""
    return _BLOCKS[type(s)](s)


def writes(s: ir.Statement) -> tuple[str, ...]:
    """The variables that a statement itself gives a value."""
    names = _WRITES[type(s)](s)
    if isinstance(s, ir.Apply):  # what a parameter says of its argument no field does
        parameters = zip(s.function.parameters, s.arguments, strict=True)
        changed = (a.name for p, a in parameters if p.mutable and isinstance(a, ir.Local))
        return (*changed, *names)
    return names


def declares(s: ir.Statement) -> tuple[str, ...]:
    """The variables that a statement itself gives a value and with it a type."""
    return _DECLARES[type(s)](s)


def loads(s: ir.Statement) -> tuple[str, ...]:
    """The arrays of a kernel, or its buffers, whose elements a statement itself reads."""
    return _LOADS[type(s)](s)


def stores(s: ir.Statement) -> tuple[str, ...]:
    """Those whose elements it writes."""
    return _STORES[type(s)](s)


def reads(e: ir.Expression) -> Sequence[str]:
    """The variables and local arrays that an expression reads, in order."""
    if isinstance(e, ir.Local):  # as most are
        return (e.name,)
    names: list[str] = []
    waiting = [e]
    while waiting:
        x = waiting.pop()
        if isinstance(x, ir.Local):
            names.append(x.name)
            continue
        names.extend(_READS[type(x)](x))
        if below := _EXPRESSIONS[type(x)](x):
            waiting.extend(reversed(below))
    return names


def _gather(
    parts: Callable[[Fields], tuple[Part, ...]], *, names: bool = False
) -> Callable[[Fields], _Get]:
    """Writes what gives all that these fields of a node hold."""

    def write(table: Fields) -> _Get:
        listed = " ".join(p.listed(names=names) for p in parts(table))
        return eval(f"lambda node: ({listed})")

    return write


def _names(*roles: FieldRole) -> Callable[[Fields], _Get]:
    """Of the names that the fields of these roles hold."""
    return _gather(lambda table: table.of(*roles), names=True)


_EXPRESSIONS = ByClass(_gather(lambda table: table.expressions))
_BLOCKS = ByClass(_gather(lambda table: table.of(FieldRole.BLOCK)))
_WRITES = ByClass(_names(FieldRole.DECLARED, FieldRole.CHANGED))
_DECLARES = ByClass(_names(FieldRole.DECLARED))
_READS = ByClass(_names(FieldRole.READ))
_LOADS = ByClass(_names(FieldRole.LOADED, FieldRole.COUNTED))
_STORES = ByClass(_names(FieldRole.STORED, FieldRole.COUNTED))


# ---------------------------------------------------------------- walking


def subexpressions(e: ir.Expression) -> Iterator[ir.Expression]:
    """The expression and everything below it, parents first."""
    waiting = [e]
    while waiting:
        x = waiting.pop()
        yield x
        if below := _EXPRESSIONS[type(x)](x):
            waiting.extend(reversed(below))


def statements(block: ir.Block) -> Iterator[ir.Statement]:
    """Every statement of a block and of the blocks in it, in order of text."""
    for s in block:
        yield s
        for nested in _BLOCKS[type(s)](s):
            yield from statements(nested)


def used_by(s: ir.Statement) -> set[str]:
    """The variables and local arrays that a statement itself reads."""
    return {n for e in expressions(s) for n in reads(e)}


def used_in(block: ir.Block) -> set[str]:
    """Those that some statement of a block, or of the blocks in it, reads."""
    return {n for s in statements(block) for e in expressions(s) for n in reads(e)}


def written_in(block: ir.Block) -> set[str]:
    """The variables that some statement of a block, or of the blocks in it, gives a value."""
    return {n for s in statements(block) for n in writes(s)}


def write_counts(block: ir.Block) -> Counter[str]:
    """How many of these statements give each variable a value."""
    return Counter(n for s in statements(block) for n in writes(s))


def read_counts(block: ir.Block) -> Counter[str]:
    """How many times these statements read each variable and local array."""
    return Counter(n for s in statements(block) for e in expressions(s) for n in reads(e))


def ends_early(body: ir.Block) -> bool:
    """Whether a round of a loop may end before its last statement, or be the last one."""
    return any(isinstance(s, ir.Break | ir.Continue | ir.Return) for s in statements(body))


def locals_in(e: ir.Expression) -> list[ir.Local]:
    """The variables that an expression reads, in order."""
    return [x for x in subexpressions(e) if isinstance(x, ir.Local)]


def returns(s: ir.Statement) -> bool:
    """Whether some threads do not come to what follows."""
    return any(isinstance(x, ir.Return) for x in statements((s,)))


# ---------------------------------------------------------------- rebuilding


def rewrite(e: ir.Expression, change: Change) -> ir.Expression:
    """Rebuild an expression from the leaves up, giving each node to `change` once its children are
    done.
    """
    below = _EXPRESSIONS[type(e)](e)
    if not below:
        return change(e)
    done = tuple(
        [change(x) if isinstance(x, ir.Local) else rewrite(x, change) for x in below]
    )  # most are names
    if same(below, done):
        return change(e)
    following = iter(done)

    def put(_: ir.Expression) -> ir.Expression:
        return next(following)

    return change(_INSIDE[type(e)](e, put, None, None))


def rewrite_statement(
    s: ir.Statement,
    expression: Change,
    block: Callable[[ir.Block], ir.Block],
    name: Callable[[str], str] | None = None,
) -> ir.Statement:
    """Rebuild one statement: its expressions, nested blocks and the names of variables it
    writes.
    """
    table = _INSIDE if name is None else _WHOLE
    return table[type(s)](s, expression, block, name)


def _rebuild(*roles: FieldRole) -> Callable[[Fields], _Rebuild]:
    """Writes what changes what a node has in the fields of these roles."""

    def write(table: Fields) -> _Rebuild:
        parts = table.of(*roles)
        if not parts:
            return lambda node, expression, block, name: node
        new = {p.name: f"new_{p.name}" for p in parts}
        text = "def rebuild(node, expression, block, name):\n"
        text += "".join(f"    {new[p.name]} = {p.changed(_change(p))}\n" for p in parts)
        text += f"    if {' and '.join(f'{n} is node.{old}' for old, n in new.items())}:\n"
        text += "        return node\n"
        text += f"    return kind({', '.join(new.get(n, f'node.{n}') for n in table.names)})\n"
        given: dict[str, Any] = {
            "kind": table.kind,
            "each": each,
            "second": second,
            "named": _named,
        }
        exec(text, given)
        return given["rebuild"]

    return write


def _change(p: Part) -> str:
    """What changes a thing that a field holds."""
    if p.role in (FieldRole.EXPRESSION, FieldRole.BLOCK):
        return p.role.name.lower()
    if p.kinds:  # a variable that changes as it is read
        return "(lambda v: named(v, name))"
    return "name" if p.many is Many.ONE else "(lambda n: n and name(n))"


def _named(v: ir.Local, name: Callable[[str], str]) -> ir.Local:
    new = name(v.name)
    return v if new is v.name else ir.Local(new, v.type, v.location)


_INSIDE = ByClass(_rebuild(FieldRole.EXPRESSION, FieldRole.BLOCK))
_WHOLE = ByClass(
    _rebuild(FieldRole.EXPRESSION, FieldRole.BLOCK, FieldRole.DECLARED, FieldRole.CHANGED)
)
_RENAMED = ByClass(_rebuild(FieldRole.READ))


def rewrite_block(block: ir.Block, change: Callable[[ir.Expression], ir.Expression]) -> ir.Block:
    """Rebuild every expression of a block and of the blocks in it."""

    def expression(e: ir.Expression) -> ir.Expression:
        return rewrite(e, change)

    def go(inner: ir.Block) -> ir.Block:
        return each(inner, lambda s: rewrite_statement(s, expression, go))

    return go(block)


def scatters(block: ir.Block) -> bool:
    """Whether any element is combined with a value, whatever other threads do."""
    return any(isinstance(s, ir.Scatter | ir.ScatterElement) for s in statements(block))


def adds_in_order(block: ir.Block) -> bool:
    """Whether floats are added to elements of arrays one after the other, which one thread does."""
    return any(
        isinstance(s, ir.Scatter | ir.ScatterElement)
        and s.operation == "add"
        and s.value.type.is_float
        for s in statements(block)
    )


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
        return inner if same(inner, done) else done

    return go(block)


def rename(block: ir.Block, names: dict[str, str]) -> ir.Block:
    """Rename variables and local arrays throughout a block."""

    def name(n: str) -> str:
        return names.get(n, n)

    def one(e: ir.Expression) -> ir.Expression:
        if isinstance(e, ir.Local):  # as most are
            new = names.get(e.name)
            return e if new is None else ir.Local(new, e.type, e.location)
        return _RENAMED[type(e)](e, None, None, name)

    def expression(e: ir.Expression) -> ir.Expression:
        return one(e) if isinstance(e, ir.Local) else rewrite(e, one)

    def go(inner: ir.Block) -> ir.Block:
        return each(inner, lambda s: rewrite_statement(s, expression, go, name))

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
        return each(inner, one)

    return go(block)
