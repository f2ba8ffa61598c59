"""The storeys of the house, and the imports that lead from one room to another, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Literal

SOURCE = Path(__file__).parent.parent / "src" / "lanewise"
PACKAGE = SOURCE.name

STOREYS = (
    (
        "_version",
        "support",
    ),
    (
        "io",
        "language",
    ),
    (
        "layouts",
        "planning",
        "profiling",
    ),
    (
        "ir",
        "runtime",
    ),
    (
        "analysis",
        "frontend",
        "plot",
        "primitives",
    ),
    (
        "derivatives",
        "emit",
        "passes",
        "records",
    ),
    ("compiler",),
    (
        "launch",
        "models",
    ),
    (
        "patterns",
        "tuning",
    ),
    (
        "patterns.segmentwise",
        "patterns.tables",
    ),
    (
        "patterns.elementwise",
        "patterns.search",
        "patterns.sitewise",
        "patterns.threadwise",
    ),
    (
        "patterns.pairwise",
        "spellings",
    ),
    (
        "advice",
        "explanation",
        "interop",
        "live",
        "loops",
        "patterns.sequential",
    ),
    ("lanewise",),
    ("sims",),
    ("ladders",),
    ("cli",),
    ("__main__", "facade"),
)
"""Rooms (packages and modules) from the ground up. A room may use those below its own storey."""

FACADE = "facade"
"""The one file that rooms below import from: it imports nothing itself but for type checkers, and loads names that lead up when
they are requested.
"""
PATTERNS = "patterns"  # a folder whose folders are rooms of their own


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name. when: at the top of the file, within a function (lazy), or for type checkers alone."""

    source: str
    line: int
    target: str
    name: str
    when: Literal["top", "lazy", "types"]

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.name} of {self.target} ({self.when})"


@cache
def modules() -> dict[str, Path]:
    """The modules below the package by their dotted names without the package's; "lanewise" is the package itself."""
    found: dict[str, Path] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found[".".join(parts) or PACKAGE] = path
    return found


@cache
def imports() -> tuple[Import, ...]:
    """Every import of one module of lanewise by another one."""
    facade = (PACKAGE, SOURCE / "__init__.pyi")  # its names are imported on first use, and the stub says from where
    return tuple(
        i
        for name, path in (*modules().items(), facade)
        for i in _imports(name, ast.parse(path.read_text(encoding="utf-8")), "top")
    )


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """The statements of a module or a statement, and what holds some: without expressions, of which there are ten times as many."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        within = getattr(node, part, ())
        yield from within if isinstance(within, list) else ()


def all_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Those within statements, too."""
    for child in statements_in(node):
        yield child
        yield from all_statements(child)


def _imports(source: str, node: ast.AST, when: Literal["top", "lazy", "types"]) -> Iterator[Import]:
    for child in statements_in(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _imports(source, child, "lazy")
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from _imports(source, child, "types")
            case ast.Import():
                for alias in child.names:
                    if alias.name.split(".")[0] == PACKAGE:
                        yield Import(source, child.lineno, _known(alias.name), alias.name, when)
            case ast.ImportFrom(module=str(module), level=0) if module.split(".")[0] == PACKAGE:
                for alias in child.names:
                    yield Import(source, child.lineno, _known(f"{module}.{alias.name}", module), alias.name, when)
            case ast.ImportFrom(module=module, level=1) if source == PACKAGE:
                for alias in child.names:
                    place = f"{PACKAGE}.{module}" if module else PACKAGE
                    yield Import(source, child.lineno, _known(f"{place}.{alias.name}", place), alias.name, "lazy")
            case ast.ImportFrom(level=level) if level:
                raise AssertionError(f"{source}:{child.lineno}: a relative import")
            case _:
                yield from _imports(source, child, when)


def _known(*names: str) -> str:
    """The first of the dotted names that is a module."""
    short = [n.removeprefix(PACKAGE).removeprefix(".") or PACKAGE for n in names]
    return next(n for n in short if n in modules())


def room(module: str) -> str:
    """The room that a module lies in. Single modules of `patterns/` are one room, on which the folders stand."""
    first, _, rest = module.partition(".")
    folder = f"{first}.{rest.split('.')[0]}"
    return folder if first == PATTERNS and rest and modules()[folder].name == "__init__.py" else first


@cache
def storeys() -> dict[str, int]:
    """The storey of each room, from the ground up."""
    return {r: n for n, rooms in enumerate(STOREYS) for r in rooms}


def leads_down(i: Import) -> bool:
    """Whether an import is of the same room or of one below, or a later one of the facade, which is beside all rooms."""
    here, there = room(i.source), room(i.target)
    later = there == FACADE and i.when != "top"
    return here == there or later or storeys()[there] < storeys()[here]


def drawing() -> str:
    """The rooms as the imports stack them, from the roof down: each stands on the highest room that it uses."""
    below: dict[str, set[str]] = {r: set() for r in storeys() if r != FACADE}
    for i in imports():
        here, there = room(i.source), room(i.target)
        if here != there and FACADE not in (here, there) and storeys()[there] < storeys()[here]:
            below[here].add(there)
    height: dict[str, int] = {}
    for r in TopologicalSorter(below).static_order():
        height[r] = 1 + max((height[b] for b in below[r]), default=-1)
    rows = [sorted(r for r in below if height[r] == h) for h in range(max(height.values()), -1, -1)]
    return "\n".join(f"{len(rows) - n:3}  {'   '.join(row)}" for n, row in enumerate(rows))
