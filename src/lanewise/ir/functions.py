"""The functions that a kernel applies: find them, rewrite them, keep their names apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import flat_map, statements


def functions(block: ir.Block) -> tuple[ir.Function, ...]:
    """Every function that a block applies, helpers before their users, each once.

    Two may have one name (forms of one helper, of which a literal made two) until
    `with_distinct_functions`.
    """
    applied: dict[str, list[ir.Function]] = {}
    ordered: list[ir.Function] = []

    def visit(block: ir.Block) -> None:
        for s in statements(block):
            if isinstance(s, ir.Apply):
                alike = applied.setdefault(s.function.name, [])
                if not any(f is s.function or f == s.function for f in alike):
                    alike.append(s.function)
                    visit(s.function.body)
                    ordered.append(s.function)

    visit(block)
    return tuple(ordered)


def buffers_read(f: ir.Function) -> tuple[str, ...]:
    """The buffers that a function and its helpers read, in order of text."""
    buffers: dict[str, None] = {}
    for s in statements(f.body):
        match s:
            case ir.Load():
                buffers[s.buffer] = None
            case ir.Apply():
                buffers |= dict.fromkeys(buffers_read(s.function))
            case _:
                pass
    return tuple(buffers)


def arrays_touched(block: ir.Block) -> set[str]:
    """The arrays that a block loads from and stores to, and those that the functions that it
    applies read.
    """
    bodies = (block, *(f.body for f in functions(block)))
    return {
        s.array
        for b in bodies
        for s in statements(b)
        if isinstance(s, ir.LoadRecord | ir.StoreRecord)
    }


def map_functions(kernel: ir.Kernel, change: Callable[[ir.Function], ir.Function]) -> ir.Kernel:
    """Rewrite every function that the kernel applies, helpers first, each once.

    A change may drop parameters.

    The body of a kernel whose function was inlined is changed as the body of a function without
    parameters.
    """
    done: dict[int, ir.Function] = {}  # by identity: forms of one helper share its name

    def visit(s: ir.Statement) -> ir.Block:
        if not isinstance(s, ir.Apply):
            return (s,)
        if id(s.function) not in done:
            inner = flat_map(s.function.body, visit)
            done[id(s.function)] = change(replace(s.function, body=inner))
        new = done[id(s.function)]
        kept = {p.name for p in new.parameters}
        arguments = tuple(
            a for p, a in zip(s.function.parameters, s.arguments, strict=True) if p.name in kept
        )
        return (replace(s, function=new, arguments=arguments),)

    body = flat_map(kernel.body, visit)
    if kernel.pattern.inlined:
        body = change(ir.Function(kernel.name, (), (), body, kernel.location)).body
    return replace(kernel, body=body)


def with_distinct_functions(kernel: ir.Kernel) -> ir.Kernel:
    """Number the functions that share a name (a kernel and its helper, two helpers of two modules),
    the kernel's own function first.

    Everything after this may take a function's name for the function.
    """
    taken = {
        s.function.name: s.function
        for s in reversed(list(statements(kernel.body)))
        if isinstance(s, ir.Apply)
    }
    renamed: list[tuple[ir.Function, ir.Function]] = []

    def distinct(f: ir.Function) -> ir.Function:
        for old, new in renamed:
            if old is f or old == f:
                return new
        name, n = f.name, 1
        while name in taken and taken[name] != f:
            n += 1
            name = f"{f.name}_{n}"
        taken[name] = f
        renamed.append((f, replace(f, name=name, body=flat_map(f.body, visit))))
        return renamed[-1][1]

    def visit(s: ir.Statement) -> ir.Block:
        return (replace(s, function=distinct(s.function)),) if isinstance(s, ir.Apply) else (s,)

    return replace(kernel, body=flat_map(kernel.body, visit))
