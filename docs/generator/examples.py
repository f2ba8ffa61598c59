"""The page of the programs of examples/, by what their docstrings say, and of the products, with
pictures.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from docs.generator.scenes import SCENES, Scene

ROOT = Path(__file__).resolve().parents[2]
NEEDS_MOVIE = (
    "It writes a movie as MP4, which needs the [extra](../install.md#extras) `movie`; the name of "
    "a movie may end in `.gif` instead."
)


def pages() -> dict[str, str]:
    """The page of the examples."""
    lines = [
        "# Examples",
        "",
        "Programs of the checkout that run as they are: `python examples/NAME.py`. They need no "
        "extras unless a row says so. Their first lines say which arguments they take.",
        "",
        "| picture or output | program, and names that it uses |",
        "| --- | --- |",
        *(_row(path) for path in sorted((ROOT / "examples").glob("*.py"))),
        "",
        "## Simulations",
        "",
        "With `--plot FILE.png` the commands draw these pictures at the end "
        "([gravity](../gravity.md), [flow](../lbm.md), [flocks](../flocks.md), "
        "[gravitational waves](../waves.md)).",
        "",
        "| picture | command |",
        "| --- | --- |",
        *(_row_of_scene(name, scene) for name, scene in SCENES.items()),
        "",
        "`python -m docs.generator.pictures` draws all of these pictures again.",
    ]
    return {"examples.md": "\n".join(lines) + "\n"}


def _row(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    about = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
    used = ", ".join(f"`lw.{n}`" for n in _used(tree))
    picture = f"![What {path.name} shows](../pictures/examples/{path.stem}.png)"
    needs = NEEDS_MOVIE if re.search(r'else "\w+\.mp4"', path.read_text(encoding="utf-8")) else ""
    said = " ".join(filter(None, [about, used, needs]))
    return f"| {picture} | [{path.name}](../../examples/{path.name}): {said} |"


def _row_of_scene(name: str, scene: Scene) -> str:
    commands = "<br>".join(f"`{line}`" for line in (scene.before, scene.command) if line)
    picture = f"![{scene.title}](../pictures/products/{name}.png)"
    return f"| {picture} | {scene.title}: {commands} |"


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
