"""What the names in the fields of the IR's nodes stand for, said by their annotations.

`fields.py` reads them, so that walking, renaming, verifying and printing know a node by its class
alone.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Annotated, ClassVar


class FieldRole(Enum):
    """Of a field."""

    EXPRESSION = auto()  # its value is computed when the node is
    BLOCK = auto()  # its statements run within the node
    READ = auto()  # a variable or local array whose value the node is made of
    DECLARED = auto()  # a variable that gets a value, which declares it
    CHANGED = auto()  # a variable or local array that was there before and changes
    LOADED = auto()  # an array of the kernel, or a buffer, that is read
    STORED = auto()  # one that is written
    COUNTED = auto()  # one that is read and written


Read = Annotated[str, FieldRole.READ]
Declared = Annotated[str, FieldRole.DECLARED]
Changed = Annotated[str, FieldRole.CHANGED]
Loaded = Annotated[str, FieldRole.LOADED]
Stored = Annotated[str, FieldRole.STORED]
Counted = Annotated[str, FieldRole.COUNTED]


class IrNode:
    """What is part of a function's or a kernel's text: an expression or a statement.

    form: how it is printed, with its fields in braces; "" where `printer.py` knows more of it, or
    its name and its fields say enough.
    """

    __slots__ = ()
    form: ClassVar[str] = ""


class ExpressionNode(IrNode):
    """Has a value and a type."""

    __slots__ = ()


class StatementNode(IrNode):
    """Has an effect."""

    __slots__ = ()
