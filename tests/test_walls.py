"""Nobody outside its folder asks for a pattern's name, and hardly anybody for a device's: patterns and targets say what
is so.

Nobody outside the engine of calls compiles a kernel, but for what runs none or runs it beside all calls.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from lanewise.ir.pattern import COMBINE, Pattern
from lanewise.language.target import TARGETS
from lanewise.patterns.elementwise.build import ELEMENTWISE, REDUCTION
from lanewise.patterns.pairwise.build import PAIRWISE
from lanewise.patterns.search.build import SEARCH
from lanewise.patterns.sitewise.pattern import SITEWISE
from tests.storeys import modules

PATTERNS: tuple[Pattern, ...] = (ELEMENTWISE, REDUCTION, PAIRWISE, SEARCH, SITEWISE, COMBINE)
RIM = {"launch.executable": 4, "launch.resources": 2}
"""Where the names of devices are told apart: where one target is launched in another way than another."""
COMPILING = {
    "explanation.compiled": "compiles for a GPU that need not be there, and loads nothing: no call can come of it",
    "launch.programs": "the engine: what calls and steps run is compiled here, once",
    "launch.support": "defines it",
    "tuning.measure": "compiles one kernel by many plans on many threads, of which all but one are dropped, and refused plans are answers",
}
"""Who names `compile_kernel`, and why."""


def _compared(tree: ast.AST) -> Iterator[str]:
    """Strings that something is compared with: ==, in, match, startswith, keys of a table by what is looked up."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                for x in (left, *others):
                    yield from _strings(x)
            case ast.MatchValue(value=value):
                yield from _strings(value)
            case ast.Call(func=ast.Attribute(attr="startswith"), args=[first, *_]):
                yield from _strings(first)
            case _:
                pass


def _strings(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            for part in parts:
                yield from _strings(part)
        case _:
            pass


def _tree(path: Path, words: Iterable[str]) -> list[ast.Module]:
    """The tree of a file that has one of the words; of others there is nothing to look at."""
    text = path.read_text(encoding="utf-8")
    return [ast.parse(text)] if any(word in text for word in words) else []


def test_names_of_devices_are_compared_at_the_rim() -> None:
    found: Counter[str] = Counter()
    for name, path in modules().items():
        found[name] += sum(text in TARGETS for tree in _tree(path, TARGETS) for text in _compared(tree))
    assert {n: c for n, c in found.items() if c} == RIM


def test_names_of_patterns_are_compared_nowhere() -> None:
    names = {p.name for p in PATTERNS}
    assert len(names) == len(PATTERNS)
    wrong = [
        f"{name}: {text}"
        for name, path in modules().items()
        for tree in _tree(path, names)
        for text in _compared(tree)
        if text in names and text != "search"  # also a word of profiles and files
    ]
    assert wrong == []


def test_kernels_are_compiled_by_the_engine() -> None:
    found = {
        name
        for name, path in modules().items()
        for tree in _tree(path, ("compile_kernel",))
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id == "compile_kernel")
        or (isinstance(node, ast.Attribute) and node.attr == "compile_kernel")
        or (isinstance(node, (ast.alias, ast.FunctionDef)) and node.name == "compile_kernel")
    }
    assert found == set(COMPILING)
