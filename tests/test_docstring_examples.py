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


def examples(thing: object) -> list[str]:
    """The indented blocks of a docstring that are Python, and define or compute something."""
    if inspect.ismodule(thing):
        return []
    text = inspect.getdoc(thing) or ""
    found: list[str] = []
    for block in EXAMPLE.findall(text):
        code = textwrap.dedent(block).strip()
        try:
            tree = ast.parse(code)
        except SyntaxError:
            continue
        if any(isinstance(n, ast.Call | ast.FunctionDef | ast.Assign) for n in ast.walk(tree)):
            found.append(code)
    return found


WITH = sorted(n for n, thing in names.public().items() if not isinstance(thing, float) and examples(thing))


def test_decorators_have_examples() -> None:
    wanted = {"elementwise", "pairwise", "segmentwise", "threadwise", "sitewise", "stencil", "function"}
    assert wanted <= set(WITH)


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
