"""The examples in docstrings of public names run."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
import textwrap
from pathlib import Path
from typing import Any

import pytest

import lanewise as lw
from docs.generator import names

EXAMPLE = re.compile(r"(?:^    .*\n?|^\s*\n(?=    ))+", re.MULTILINE)
FENCE = re.compile(r"```(\w*)\n(.*?)\n?```\Z", re.DOTALL)
SECTIONS = ("Args:", "Attributes:", "Returns:", "Yields:", "Raises:")  # of indented prose
PREAMBLE = """
import math
import numpy as np
import lanewise as lw

class Body(lw.Record):
    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32

bodies = Body.array(position=np.eye(3), velocity=np.ones((3, 3)), mass=1.0)
"""
# Their examples are about a kernel of the reader's.
NOT_RUN = ("choose_layout", "Call")


def blocks(text: str) -> list[str]:
    """The indented blocks of a docstring that say to be Python: all but sections of prose, what a shell is told after
    `$`, and what a fence says is another language.
    """
    found: list[str] = []
    for block in EXAMPLE.finditer(text):
        code = textwrap.dedent(block.group()).strip()
        before = text[: block.start()].rstrip().rpartition("\n")[2]
        if before in SECTIONS or code.startswith("$"):
            continue
        if fence := FENCE.match(code):
            if fence[1] not in ("", "py", "python"):
                continue
            code = textwrap.dedent(fence[2]).strip()
        found.append(code)
    return found


def examples(thing: object) -> list[str]:
    """The blocks that define or compute something, and those that are broken."""
    if inspect.ismodule(thing):
        return []
    return [code for code in blocks(inspect.getdoc(thing) or "") if error_of(code) or computes(ast.parse(code))]


def error_of(code: str) -> str:
    try:
        ast.parse(code)
    except SyntaxError as error:
        return f"{error}: {code}"
    return ""


def computes(tree: ast.AST) -> bool:
    return any(isinstance(n, ast.Call | ast.FunctionDef | ast.Assign) for n in ast.walk(tree))


WITH = sorted(n for n, thing in names.public().items() if not isinstance(thing, float) and examples(thing))


def test_decorators_have_examples() -> None:
    wanted = {"elementwise", "pairwise", "segmentwise", "threadwise", "sitewise", "stencil", "function"}
    assert wanted <= set(WITH)


def test_examples_are_python() -> None:
    """Those that are not run too."""
    assert [e for name in WITH for code in examples(names.public()[name]) if (e := error_of(code))] == []


@pytest.mark.parametrize(("block", "found", "broken"), [
    ("x = f(1)\n\n    y = x", ["x = f(1)\n\ny = x"], False),
    ("x = f(1", ["x = f(1"], True),
    ("def f(:\n        pass", ["def f(:\n    pass"], True),
    ("x: f32", [], False),
    ("$ lanewise view (", [], False),
    ("```text\n    x = (\n    ```", [], False),
    ("```python\n    x = (\n    ```", ["x = ("], True),
    ("```\n    x = 1\n    ```", ["x = 1"], False),
])  # fmt: skip
def test_a_broken_example_is_found(block: str, found: list[str], broken: bool) -> None:
    def thing() -> None: ...

    thing.__doc__ = f"So it is called:\n\n    {block}\n\nMore.\n\nArgs:\n    x: wanted (always).\n"
    assert examples(thing) == found
    assert any(map(error_of, found)) == broken


@pytest.mark.parametrize("name", [n for n in WITH if n not in NOT_RUN])
def test_examples_of_docstrings_run(name: str, tmp_path: Path) -> None:
    thing: Any = names.public()[name]
    path = tmp_path / f"{name}_example.py"
    path.write_text(PREAMBLE + "\n" + "\n".join(examples(thing)) + "\n")  # kernels need their source
    known = runpy.run_path(str(path))
    for kernel in known.values():
        if isinstance(kernel, lw.Pairwise):
            values = len(inspect.signature(kernel.python).parameters) - 2
            kernel(known["bodies"], known["bodies"], *([1e-4] * values))
