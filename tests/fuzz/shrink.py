"""Smaller programs that fail in the same way: statements and operands left out one after the other."""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator


def shrunk(text: str, fails: Callable[[str], bool], seconds: float = 60.0) -> str:
    """The smallest text found within the time that `fails` says true of. What does not compile does not fail in the
    same way.
    """
    until = time.monotonic() + seconds
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(text):
            if time.monotonic() > until:
                return text
            if len(candidate) < len(text) and fails(candidate):
                text, smaller = candidate, True
                break
    return text


def _smaller(text: str) -> Iterator[str]:
    """Texts with one thing less, the largest things first."""
    tree = ast.parse(text)
    count = sum(1 for _ in _changes(tree))
    sizes = sorted(range(count), key=lambda n: -_size(text, n))
    for n in sizes:
        yield _without(text, n)


def _size(text: str, n: int) -> int:
    return len(text) - len(_without(text, n))


def _without(text: str, n: int) -> str:
    tree = ast.parse(text)
    for number, change in enumerate(_changes(tree)):
        if number == n:
            change()
            break
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _changes(tree: ast.Module) -> Iterator[Callable[[], None]]:
    """Everything that can be left out, as functions that do it."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                for place, x in enumerate(value):
                    if isinstance(x, ast.stmt) and (len(value) > 1 or name == "orelse"):
                        yield lambda block=value, place=place: block.pop(place)  # type: ignore[misc]
                    if isinstance(x, ast.If | ast.For | ast.While):
                        yield lambda block=value, place=place, x=x: block.__setitem__(slice(place, place + 1), x.body)  # type: ignore[misc]
                    if isinstance(x, ast.expr):
                        for part in _parts(x):
                            yield lambda block=value, place=place, part=part: block.__setitem__(
                                place, copy.deepcopy(part)
                            )  # type: ignore[misc]
            elif isinstance(value, ast.expr) and name not in ("annotation", "returns", "func"):
                for part in _parts(value):
                    yield lambda node=node, name=name, part=part: setattr(node, name, copy.deepcopy(part))  # type: ignore[misc]


def _parts(x: ast.expr) -> list[ast.expr]:
    """What an expression is made of, and may be replaced by."""
    match x:
        case ast.BinOp():
            return [x.left, x.right]
        case ast.UnaryOp():
            return [x.operand]
        case ast.BoolOp():
            return list(x.values)
        case ast.IfExp():
            return [x.body, x.orelse]
        case ast.Call():
            return list(x.args)
        case _:
            return []
