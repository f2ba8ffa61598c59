"""What the nodes of one class are made of, read off the annotations of its fields once.

The table says it of every node (`roles.py`), so that walking, rebuilding and verifying it need no
line for a class. What they do to a node is written for its class when the first one is met, as
`dataclasses` does: compilers ask it of all nodes all the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum, auto
from operator import is_
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from lanewise.ir.roles import ExpressionNode, FieldRole, IrNode, StatementNode

_T = TypeVar("_T")


class Many(Enum):
    """How many things a field holds."""

    ONE = auto()
    ANY = auto()  # one or None
    EACH = auto()  # a tuple
    SECONDS = auto()  # the second halves of a tuple's pairs


@dataclass(frozen=True, slots=True)
class Part:
    """A field that a traversal meets. kinds: the classes that an expression in it may have."""

    name: str
    role: FieldRole
    many: Many
    kinds: tuple[type[ExpressionNode], ...] = ()

    def listed(self, *, names: bool = False) -> str:
        """Python for what it holds, within a tuple. names: of variables the names alone."""
        held, one = f"node.{self.name}", "x.name" if names and self.kinds else "x"
        match self.many:
            case Many.ONE:
                return f"{held},"
            case Many.ANY:
                return f"*(() if {held} is None else ({held},)),"
            case Many.EACH if self.kinds:
                return f"*[{one} for x in {held}],"
            case Many.EACH:  # an empty name stands for none
                return f"*[x for x in {held} if x],"
            case Many.SECONDS:
                return f"*[x for _, x in {held}],"

    def changed(self, change: str) -> str:
        """Python for what it holds after a change of each thing; the same object, where none is."""
        held = f"node.{self.name}"
        match self.many:
            case Many.ONE:
                return f"{change}({held})"
            case Many.ANY:
                return f"None if {held} is None else {change}({held})"
            case Many.EACH:
                return f"each({held}, {change})"
            case Many.SECONDS:
                return f"each({held}, lambda pair: second(pair, {change}))"


@dataclass(frozen=True, slots=True)
class Fields:
    """The parts of the nodes of one class, in the order of its fields.

    names: of all fields. choices: fields of few values, and these.
    """

    kind: type[IrNode]
    names: tuple[str, ...]
    parts: tuple[Part, ...]
    choices: tuple[tuple[str, tuple[Any, ...]], ...]

    @property
    def expressions(self) -> tuple[Part, ...]:
        """Those that are computed with the node."""
        return tuple(p for p in self.parts if p.kinds)

    def of(self, *roles: FieldRole) -> tuple[Part, ...]:
        """Those of some roles."""
        return tuple(p for p in self.parts if p.role in roles)


class ByClass(dict[type[IrNode], _T]):
    """What is made of the fields of a class when its first node is met."""

    def __init__(self, make: Callable[[Fields], _T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, kind: type[IrNode]) -> _T:
        made = self[kind] = self._make(fields_of(kind))
        return made


def each(values: tuple[_T, ...], change: Callable[[_T], _T]) -> tuple[_T, ...]:
    """Every value changed; the same tuple, where none is."""
    if not values:
        return values
    done = tuple([change(v) for v in values])
    return values if same(values, done) else done


def same(before: tuple[object, ...], after: tuple[object, ...]) -> bool:
    """Whether these are the same objects."""
    return len(before) == len(after) and all(map(is_, before, after))


def second(pair: tuple[str, _T], change: Callable[[_T], _T]) -> tuple[str, _T]:
    """A pair with its second half changed; the same pair, where it is not."""
    done = change(pair[1])
    return pair if done is pair[1] else (pair[0], done)


def fields_of(kind: type[IrNode]) -> Fields:
    """The table of a class of nodes."""
    hints = get_type_hints(kind, include_extras=True)
    names = [f.name for f in fields(cast(Any, kind))]
    parts = [p for n in names if (p := _part(hints[n], n)) is not None]
    choices = [(n, get_args(hints[n])) for n in names if get_origin(hints[n]) is Literal]
    return Fields(kind, tuple(names), tuple(parts), tuple(choices))


def _part(hint: Any, name: str) -> Part | None:
    match get_origin(hint):
        case origin if origin is Annotated:
            return Part(name, hint.__metadata__[0], Many.ONE, _expressions(get_args(hint)[0]))
        case origin if origin is tuple and get_args(hint)[-1] is Ellipsis:
            inner = get_args(hint)[0]
            if _is_of(inner, StatementNode):
                return Part(name, FieldRole.BLOCK, Many.ONE)
            pairs = get_origin(inner) is tuple
            one = _part(get_args(inner)[1] if pairs else inner, name)
            many = Many.SECONDS if pairs else Many.EACH
            return None if one is None else Part(name, one.role, many, one.kinds)
        case _:
            kinds = _expressions(hint)
            many = Many.ANY if NoneType in get_args(hint) else Many.ONE
            return Part(name, FieldRole.EXPRESSION, many, kinds) if kinds else None


def _expressions(hint: Any) -> tuple[type[ExpressionNode], ...]:
    if not _is_of(hint, ExpressionNode):
        return ()
    return tuple(m for m in _members(hint) if m is not NoneType)


def _is_of(hint: Any, base: type[IrNode]) -> bool:
    """Whether a hint is a class of such nodes, or some of them."""
    kinds = [m for m in _members(hint) if m is not NoneType]
    return bool(kinds) and all(isinstance(m, type) and issubclass(m, base) for m in kinds)


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
