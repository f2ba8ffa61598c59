"""The page as it is served: its modules joined into one script, and all of it packed once.

A browser opens a connection for each file, while a run keeps the processors busy. Modules in
`static/` stay what is read and changed; the source map has browsers name them and their lines.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import MappingProxyType
from typing import Any

STATIC = Path(__file__).parent / "static"
KINDS = {
    ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
    ".map": "application/json",
}  # fmt: skip
MAIN, MAP = "main.js", "main.js.map"
NAMES = {"/": "index.html", "/favicon.ico": "icon.svg"}
IMPORT = re.compile(r"^import (\{[^}]*\})(\s+)from \"\./(\w+)\.js\";", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|function|class) ([\w$]+))", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is sent. packed: by gzip."""

    kind: str
    body: bytes
    packed: bytes


@cache
def page_files() -> Mapping[str, PageFile]:
    """What is served, by its path."""
    script, lines = joined()
    texts = {p.name: p.read_text(encoding="utf-8") for p in STATIC.iterdir() if p.suffix != ".js"}
    texts |= {MAIN: f"{script}//# sourceMappingURL={MAP}\n", MAP: json.dumps(lines)}
    files = {
        name: PageFile(KINDS[Path(name).suffix], text.encode(), gzip.compress(text.encode()))
        for name, text in texts.items()
    }
    named = {path: files[name] for path, name in NAMES.items()}
    return MappingProxyType({f"/{name}": file for name, file in files.items()} | named)


@cache
def joined() -> tuple[str, Mapping[str, Any]]:
    """The modules in one script, each a function that gives what it exports, behind those that it
    imports; and the script's source map, by which a line of it is one of a module.

        import { dot } from "./camera.js";  ->  const { dot } = $camera;
        export class Scene {                ->  class Scene {
    """
    texts = {p.stem: p.read_text(encoding="utf-8") for p in sorted(STATIC.glob("*.js"))}
    needs = {name: [m[3] for m in IMPORT.finditer(text)] for name, text in texts.items()}
    made, sections, line = list[str](), list[Any](), 0
    for name in TopologicalSorter(needs).static_order():
        text = texts[name]
        inside = EXPORT.sub("", IMPORT.sub(r"const \1\2= $\3;", text))
        given = ", ".join(m[1] for m in EXPORT.finditer(text))
        made.append(f"const ${name} = (() => {{ {inside}return {{ {given} }}; }})();\n")
        count = text.count("\n")
        source = {
            "version": 3, "names": [], "sources": [f"modules/{name}.js"], "sourcesContent": [text],
            "mappings": ";".join(["AAAA", *["AACA"] * (count - 1)]),
        }  # fmt: skip
        sections.append({"offset": {"line": line, "column": 0}, "map": source})
        line += count + 1
    return "".join(made), {"version": 3, "file": MAIN, "sections": sections}
