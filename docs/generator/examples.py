"""The programs of examples/, by what their docstrings say."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def pages() -> dict[str, str]:
    """The page of the examples."""
    lines = [
        "# Examples",
        "",
        "Programs of the checkout that run as they are: `python examples/NAME.py`.",
        "",
        "| program | what it shows | names it uses |",
        "| --- | --- | --- |",
    ]
    for path in sorted((ROOT / "examples").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        about = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
        used = ", ".join(f"`lw.{n}`" for n in _used(tree))
        lines.append(f"| [{path.name}](../../examples/{path.name}) | {about} | {used} |")
    return {"examples.md": "\n".join(lines) + "\n"}


def _used(tree: ast.Module) -> list[str]:
    """The names of lanewise that a program uses, without types of numbers."""
    names = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "lw"
    }
    plain = {
        "f32",
        "f64",
        "i32",
        "vec2",
        "vec3",
        "dvec3",
        "Record",
        "dot",
        "length",
        "sqrt",
        "rsqrt",
    }
    return sorted(names - plain, key=str.lower)[:8]
