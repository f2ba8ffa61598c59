"""ARCHITECTURE.md shows gravity after every stage. The text between its markers is generated here (--update-golden rewrites it)."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.numba import emit_numba
from lanewise.ir.printer import print_function, print_kernel
from lanewise.plan import Plan
from tests.corpus import case
from tests.harness import naive_kernel, program, stages

PATH = Path(__file__).parent.parent / "ARCHITECTURE.md"
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"
PLAN = Plan(block=128, tile=128, targets=2, slices=2, parts=2, unroll=8)


def _section(title: str, language: str, text: str) -> str:
    return f"### {title}\n\n```{language}\n{text.rstrip()}\n```\n"


def generated() -> str:
    c, layout = case("gravity"), lw.SoAoAS()
    function = c.kernel.lowered.function
    parts = [
        _section("The user's source", "python", inspect.getsource(c.kernel.python)),
        _section("Function (frontend/)", "text", print_function(function)),
        _section(
            "Naive kernel (patterns/pairwise/build.py)",
            "text",
            print_kernel(naive_kernel(c, layout, "cuda"), with_functions=False),
        ),
    ]
    before = ""
    for stage, kernels in stages(c, layout, PLAN, "cuda"):
        text = print_kernel(kernels[0], with_functions=False)
        if before and text != before:
            parts.append(_section(f"After {stage}", "text", text))
        before = text
    p = program(c, layout, PLAN, "cuda")
    parts.append(_section("The kernel that adds the parts, lowered", "text", print_kernel(p.kernels[1])))
    parts.append(_section("CUDA C++ (emit/cuda.py)", "cuda", emit_cuda(p.kernels[0], f"gravity\nplan: {p.plan}")))
    cpu = program(c, lw.SoA(), Plan(targets=1), "cpu")
    parts.append(
        _section(
            "Python for the CPU (emit/numba.py)", "python", emit_numba(cpu.kernels[0], f"gravity\nplan: {cpu.plan}")
        )
    )
    return "\n".join(parts)


def test_architecture_shows_what_the_compiler_does(request: pytest.FixtureRequest) -> None:
    text = PATH.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    shown, tail = rest.split(END)
    if request.config.getoption("--update-golden"):
        PATH.write_text(f"{head}{BEGIN}\n\n{generated()}\n{END}{tail}", encoding="utf-8")
        return
    assert shown.strip() == generated().strip(), "make golden rewrites it"


def test_every_path_it_names_exists() -> None:
    head = PATH.read_text(encoding="utf-8").split(BEGIN)[0]
    named = set(re.findall(r"`([a-z_]+/(?:[a-z_/]+(?:\.py)?)?)`", head))
    root = PATH.parent / "src" / "lanewise"
    assert named
    assert [n for n in sorted(named) if not (root / n.removeprefix("src/lanewise/")).exists()] == []
