"""The corpus of test kernels twice: with records within its records, and with their fields spelled out.

Of every record the first field lies two records deep (`inner.core.position`), the last one in none, those between in
one; spelled out they are called `inner_core_position`, `inner_mass`. Everything else of the two texts is the same.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np

from tests import corpus_kernels
from tests.corpus import CASES, Case, Fields

WITHIN = ("inner.core", "inner")


def spelled_out(text: str) -> str:
    """A text about nested records as it is about flat ones."""
    for name in WITHIN:
        text = text.replace(f"{name}.", f"{name.replace('.', '_')}_")
    return text


def _places(fields: list[str]) -> dict[str, str]:
    """Where each field of a record lies, with dots."""
    first, *between = fields[:-1]
    return {first: f"{WITHIN[0]}.{first}"} | {n: f"{WITHIN[1]}.{n}" for n in between} | {fields[-1]: fields[-1]}


class _Rewritten(ast.NodeTransformer):
    def __init__(self, nested: bool) -> None:
        self.nested = nested
        self.records: dict[str, dict[str, str]] = {}
        self.arguments: dict[str, dict[str, str]] = {}

    def visit_Module(self, node: ast.Module) -> ast.Module:
        body: list[ast.stmt] = []
        for statement in node.body:
            if isinstance(statement, ast.ClassDef):
                body += self._classes(statement)
            else:
                body.append(self.visit(statement))
        return ast.Module(body, [])

    def _classes(self, node: ast.ClassDef) -> list[ast.stmt]:
        kinds = {s.target.id: ast.unparse(s.annotation) for s in node.body if isinstance(s, ast.AnnAssign)}
        places = self.records[node.name] = _places(list(kinds))
        held: dict[str, list[str]] = {n: [] for n in ("", *WITHIN)}
        for name, place in places.items():
            holder = place.rpartition(".")[0]
            held[holder if self.nested else ""].append(f"{name if self.nested else spelled_out(place)}: {kinds[name]}")
        core, inner, last = held[WITHIN[0]] or ["x: lw.f32"], held[WITHIN[1]], held[""]
        if self.nested:
            inner, last = [f"core: {node.name}Core", *inner], [f"inner: {node.name}Inner", *last]
        classes = {f"{node.name}Core": core, f"{node.name}Inner": inner or ["x: lw.f32"], node.name: last}
        # in both texts, so that lines have the same numbers: one class a line
        texts = (f"{n} = lw.record(type({n!r}, (), {{'__annotations__': dict({_arguments(fields)}), '__module__': __name__}}))"
                 for n, fields in classes.items())  # fmt: skip
        return [s for text in texts for s in ast.parse(text).body]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        named = {a.arg: a.annotation.id for a in node.args.args if isinstance(a.annotation, ast.Name)}
        self.arguments = {a: self.records[n] for a, n in named.items() if n in self.records}
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self.arguments:
            place = self.arguments[node.value.id][node.attr]
            name = f"{node.value.id}.{place if self.nested else spelled_out(place)}"
            made = ast.parse(name, mode="eval").body
            for part in ast.walk(made):
                if isinstance(part, ast.Attribute):
                    part.ctx = ast.Load()
            assert isinstance(made, ast.Attribute)
            made.ctx = node.ctx
            return made
        return node


def _arguments(fields: list[str]) -> str:
    return ", ".join(f.replace(": ", "=") for f in fields)


def modules(folder: Path) -> tuple[ModuleType, ModuleType]:
    """The kernels with nested records, and those with flat ones."""
    return _module(folder, True), _module(folder, False)


def _module(folder: Path, nested: bool) -> ModuleType:
    name = "nested_kernels" if nested else "flat_kernels"
    tree = ast.parse(Path(corpus_kernels.__file__).read_text())
    path = folder / f"{name}.py"
    path.write_text(ast.unparse(_Rewritten(nested).visit(tree)))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def cases(module: ModuleType) -> tuple[Case, ...]:
    """The cases of the corpus that have records, with the kernels of one of these modules."""
    return tuple(_case(c, module) for c in CASES if c.records)


def _case(case: Case, module: ModuleType) -> Case:
    records = tuple(getattr(module, r.__name__) for r in case.records)
    kinds = case.records[0].__record__
    names = dict(zip((f.name for f in kinds), (f.name for f in records[0].__record__), strict=True))

    def fill(rng: np.random.Generator, n: int) -> Fields:
        return {names[f]: values for f, values in case.fill(rng, n).items()}

    return replace(
        case, kernel=getattr(module, case.name), records=records, fill=fill, reference=_reference(case.reference, names)
    )


def _reference(old: Callable[..., object], names: Mapping[str, str]) -> Callable[..., object]:
    """The answer, of fields with other names."""
    back = {new: name for name, new in names.items()}

    def reference(*records: object, **values: object) -> object:
        known = [{back[n]: v for n, v in r.items()} if isinstance(r, dict) else r for r in records]
        found = old(*known, **values)
        return {names[n]: v for n, v in found.items()} if isinstance(found, dict) else found

    return reference
