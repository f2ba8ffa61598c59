"""What the instructions behind a line do, in words of Python: comments for people who read a text
of LLVM's language.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from lanewise.emit.names import Names
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.printer import print_block, print_expression

_NAME = re.compile(r"[$\w][\w.$#]*")


def spoken(s: ir.Statement, names: Names) -> str:
    """A statement as one line of Python, with the names of the text; of loops and branches their
    first line.
    """

    def written(e: ir.Expression) -> str:
        return spoken_value(e, names)

    match s:
        case ir.Load():
            return f"{names(s.names[0])} = {names(own(f'{s.buffer}.array'))}[{written(s.index)}]"
        case ir.Store():
            place = f"{names(own(f'{s.buffer}.array'))}[{written(s.index)}]"
            return f"{place} = {written(s.values[0])}"
        case ir.Apply():
            results = ", ".join(names.known(n) for n in s.results)
            arguments = ", ".join(written(a) for a in s.arguments)
            call = f"{s.function.name}({arguments})"
            return f"{results} = {call}" if results else call
        case ir.If():
            s = replace(s, then=(), otherwise=())
        case ir.For() | ir.While() | ir.Parallel():
            s = replace(s, body=())
        case _:
            pass
    first, _, _ = print_block((s,), 0).partition("\n")
    return _named(first.removesuffix("  # user"), names.known)


def spoken_value(e: ir.Expression, names: Names) -> str:
    """An expression with the names of the text."""
    return _named(print_expression(e), names.known)


def _named(text: str, known: Callable[[str], str]) -> str:
    return _NAME.sub(lambda found: known(found[0]), text)
