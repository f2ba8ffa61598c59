"""How much a compiler is given: the operations and statements of a kernel, each as often as the
loops around it are written out, those of a function as often as it is called.
"""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.traverse import blocks, children, expressions, statements


def length(kernel: ir.Kernel) -> int:
    """The length of a kernel when everything is written out."""
    return block_length(kernel.body)


def block_length(block: ir.Block) -> int:
    """The same of a block."""
    return _block(block, {})


def own_length(kernel: ir.Kernel) -> int:
    """The length of what its user wrote: each function once."""
    parts = (kernel.body, *(f.body for f in functions(kernel.body)))
    return sum(own_statement(s) for b in parts for s in statements(b))


def own_statement(s: ir.Statement) -> int:
    """Of a statement without those in it."""
    return 1 + sum(map(own_operations, expressions(s)))


def _block(block: ir.Block, known: dict[int, int]) -> int:
    return sum(_statement(s, known) for s in block)


def _statement(s: ir.Statement, known: dict[int, int]) -> int:
    """known: of functions, by identity."""
    own = own_statement(s)
    inner = sum(_block(b, known) for b in blocks(s))
    match s:
        case ir.For():
            return own + inner * copies(s)
        case ir.Apply():
            key = id(s.function)
            if key not in known:
                known[key] = _block(s.function.body, known)
            return own + known[key]
        case _:
            return own + inner


def copies(s: ir.For) -> int:
    """How often the body of a loop is written out. One that is written out completely, but whose
    an unknown number of rounds, is left to the compiler.
    """
    if s.unroll:
        return s.unroll
    if not (isinstance(s.start, ir.Literal) and isinstance(s.stop, ir.Literal)):
        return 1
    step = s.step.value if isinstance(s.step, ir.Literal) else 1
    return max(1, -(-int(s.stop.value - s.start.value) // int(step)))


def own_operations(e: ir.Expression) -> int:
    """Of an expression: names and numbers are none."""
    below = children(e)
    return 1 + sum(map(own_operations, below)) if below else 0
