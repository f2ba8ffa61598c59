"""ARCHITECTURE.md names what there is; docs/walkthrough.md shows gravity after every stage.

The text between the markers of the walk is generated here (--update-golden rewrites it).
"""

from __future__ import annotations

import inspect
import re
from difflib import unified_diff
from pathlib import Path

import pytest

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.llvm import emit_llvm
from lanewise.ir.printer import print_function, print_kernel
from lanewise.planning.plan import Plan
from tests.corpus import case
from tests.harness import program, reference_kernel, stages
from tests.storeys import drawing

ROOT = Path(__file__).parent.parent
WALK = ROOT / "docs/walkthrough.md"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"
STOREYS_BEGIN, STOREYS_END = "<!-- storeys: begin -->", "<!-- storeys: end -->"
PLAN = Plan(block=128, tile=128, targets=2, unroll=8)
MOST = 20  # lines of a stage that the walk shows


def _section(title: str, language: str, text: str) -> str:
    return f"## {title}\n\n```{language}\n{text.rstrip()}\n```\n"


def _new_lines(before: str, after: str) -> str:
    """The lines that a stage writes; dots stand for those that stay as they were."""
    lines = list(unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[3:]
    return _cut([line[1:] if line[0] == "+" else "..." for line in lines if line[0] != "-"])


def _cut(lines: list[str]) -> str:
    more = len(lines) - MOST
    return "\n".join(lines if more <= 0 else [*lines[:MOST], f"... {more} more lines"])


def _block(text: str, begin: str, end: str) -> str:
    """The lines of a text from one that begins so to one that is so."""
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith(begin))
    last = next(n for n in range(first, len(lines)) if lines[n] == end)
    return _cut(lines[first : last + 1])


def generated() -> str:
    c, layout = case("gravity"), lw.SoAoAS()
    reference = print_kernel(reference_kernel(c, layout, "cuda"), with_functions=False)
    parts = [
        _section("The user's source", "python", inspect.getsource(c.kernel.python)),
        _section("Function (frontend/)", "text", print_function(c.kernel.lowered.function)),
        _section("Reference kernel (patterns/pairwise/build.py)", "text", reference),
    ]
    before = reference
    for stage, kernels in stages(c, layout, PLAN, "cuda"):
        text = print_kernel(kernels[0], with_functions=False)
        if text != before:
            parts.append(_section(f"After {stage}", "text", _new_lines(before, text)))
        before = text
    p = program(c, layout, PLAN, "cuda")
    cuda = emit_cuda(p.kernels[0], f"gravity\nplan: {p.plan.short()}")
    parts.append(
        _section(
            "CUDA C++ (emit/cuda.py): the loop over whole tiles", "cuda", _block(cuda, "    for (int tile", "    }")
        )
    )
    cpu = program(c, lw.SoA(), Plan(targets=1), "cpu")
    llvm = emit_llvm(cpu.kernels[0], f"gravity\nplan: {cpu.plan.short()}")
    parts.append(
        _section("LLVM's language for the CPU (emit/llvm.py): the function", "llvm", _block(llvm, "define", "}"))
    )
    return "\n".join(parts)


def test_the_walk_shows_what_the_compiler_does(request: pytest.FixtureRequest) -> None:
    text = WALK.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    shown, tail = rest.split(END)
    if request.config.getoption("--update-golden"):
        WALK.write_text(f"{head}{BEGIN}\n\n{generated()}\n{END}{tail}", encoding="utf-8")
        return
    assert shown.strip() == generated().strip(), "make golden rewrites it"
    assert len(text.splitlines()) <= 250


def test_it_draws_the_storeys(request: pytest.FixtureRequest) -> None:
    head, rest = TEXT.split(STOREYS_BEGIN)
    shown, tail = rest.split(STOREYS_END)
    drawn = f"```text\n{drawing()}\n```"
    if request.config.getoption("--update-golden"):
        (ROOT / "ARCHITECTURE.md").write_text(f"{head}{STOREYS_BEGIN}\n{drawn}\n{STOREYS_END}{tail}", encoding="utf-8")
        return
    assert shown.strip() == drawn, "make golden rewrites it"


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 200


def test_no_document_has_marks_of_a_merge() -> None:
    documents = [p for folder in (".", "docs", "design", "bench/results") for p in (ROOT / folder).glob("*.md")]
    assert len(documents) > 20
    marked = [p.name for p in documents if re.search(r"^(<<<<<<<|>>>>>>>) ", p.read_text(encoding="utf-8"), re.M)]
    assert marked == []


def test_every_path_it_names_exists() -> None:
    named = set(re.findall(r"`([a-z_]+/(?:[a-z_/]+(?:\.py)?)?)`", TEXT)) | set(re.findall(r"`([a-z_]+\.py)`", TEXT))
    root = ROOT / "src" / "lanewise"
    assert named
    own = [n for n in sorted(named) if not n.startswith(("src/", "tests/", "docs/"))]
    assert [n for n in own if not (root / n).exists()] == []
    assert [n for n in sorted(named - set(own)) if not (ROOT / n).exists()] == []
    assert [n for n in re.findall(r"`(tests/\w+)`", TEXT) if not (ROOT / n).is_dir()] == []


def test_it_names_every_folder() -> None:
    table = TEXT.partition("## Folders of src/lanewise\n")[2].partition("\n## ")[0]
    folders = {p.parent.name for p in (ROOT / "src/lanewise").glob("*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE)) == folders


def test_what_it_names_to_add_to_is_there() -> None:
    """The names in capitals, and the methods and classes, of the table of additions."""
    from lanewise.advice import choose
    from lanewise.compiler.optimisations import OPTIMISATIONS
    from lanewise.patterns.search import base
    from lanewise.sims.gravity.initial import plummer
    from lanewise.sims.gravity.integrators import INTEGRATORS
    from lanewise.sims.lbm import arguments
    from lanewise.sims.lbm.cases import cavity
    from lanewise.sims.lbm.operators.registry import LATTICES, OPERATORS

    assert callable(choose.candidates)
    assert callable(lw.SoA().arrange)
    assert issubclass(lw.StaticGrid, base.Search)
    assert base.Walked.walk.__annotations__["return"] == base.Walk.__name__
    assert plummer.CONDITION.name == "plummer"
    assert cavity.CASE.name == "cavity"
    assert set(arguments.LATTICES) == set(LATTICES)
    assert all((OPTIMISATIONS, INTEGRATORS, OPERATORS))
